"""The path of everything a preset makes, as pure functions of its configuration (docs/architecture.md, "folders").

All are relative to the working directory, under results/<preset>. Only `artifact` looks at the disk: for a published file, which no
rule produces. So the inputs of a rule never depend on whether its own output exists.
"""

from __future__ import annotations

from pathlib import Path

from ibtpo.config import slices
from ibtpo.config.models import Config
from ibtpo.config.slices import BASE, slice_hash

SAMPLERS = "samplers"  # artifact of the comparison of samplers


class Paths:
    """Paths of one configuration. A policy is named `base` or `<method>-seed<k>`."""

    def __init__(self, config: Config):
        self.config = config
        self.root = Path("results") / config.preset
        self.data = self.root / "data" / slice_hash(slices.data(config))
        self.policy = self.root / "policy" / slice_hash(slices.policy(config))
        self.runs = {f"{method}-seed{seed}": (method, seed) for method in config.methods for seed in config.seeds}
        self.policies = {BASE: (BASE, config.seeds[0]), **self.runs}

    def run(self, policy: str) -> Path:
        """Folder in which a policy is trained."""
        if policy == BASE:
            return self.policy
        return self.root / "runs" / f"{policy}-{slice_hash(slices.train(self.config, *self.runs[policy]))}"

    def model(self, policy: str) -> Path:
        """Folder of the weights and the tokenizer of a policy."""
        return self.run(policy) if policy == BASE else self.run(policy) / "final"

    def key(self, artifact: str) -> str:
        """File stem of an artifact: its name (`scores-base`, `metrics-grpo-seed0`, `samplers`, ...) and the hash of its slice."""
        kind, _, policy = artifact.partition("-")
        if artifact == SAMPLERS:
            content = slices.comparison(self.config)
        elif kind == "metrics":
            content = slices.train(self.config, *self.runs[policy])
        else:
            content = slices.samples(self.config, *self.policies[policy])
        return f"{artifact}-{slice_hash(content)}"

    def computed(self, artifact: str) -> Path:
        """Where the rules write an artifact."""
        return self.root / "artifacts" / f"{self.key(artifact)}.parquet"

    def published(self, artifact: str) -> Path:
        """Where the committed copy of an artifact lies, if there is one."""
        return self.root / "published" / f"{self.key(artifact)}.parquet"

    def artifact(self, artifact: str) -> Path:
        """The file to read: the published copy if its hash fits and `artifacts` is "cached", else the computed one."""
        published = self.published(artifact)
        return published if self.config.artifacts == "cached" and published.is_file() else self.computed(artifact)

    def shown(self, name: str) -> list[str]:
        """Names of the artifacts that a table or a figure shows."""
        return SHOWN[name](self.config)

    def stem(self, name: str) -> Path:
        """Path of a table or a figure without its extension."""
        return self.root / _kind(name) / name

    def outputs(self, name: str) -> list[Path]:
        """All files of a table or a figure: its formats and its caption."""
        return [Path(f"{self.stem(name)}.{extension}") for extension in FORMATS[_kind(name)]]


def _kind(name: str) -> str:
    return "tables" if name in TABLES else "figures"


def _of_runs(kind: str):
    return lambda config: [f"{kind}-{method}-seed{seed}" for method in config.table1 for seed in config.seeds]


FORMATS = {"tables": ("csv", "md", "tex", "caption.txt"), "figures": ("svg", "pdf", "png", "caption.txt")}
TABLES = {"table1": lambda config: [f"scores-{BASE}", *_of_runs("scores")(config)], "table3": lambda config: [SAMPLERS]}
FIGURES = {"figure5": _of_runs("metrics")}
SHOWN = TABLES | FIGURES
