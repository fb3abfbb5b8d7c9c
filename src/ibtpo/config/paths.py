"""The path of everything a preset makes, as pure functions of its configuration (docs/architecture.md, "folders").

All are relative to the working directory, under results/<preset>. Only `artifact` looks at the disk: for a published file, which no
rule produces. So the inputs of a rule never depend on whether its own output exists.
"""

from __future__ import annotations

from pathlib import Path

from ibtpo.config import slices
from ibtpo.config.models import Config
from ibtpo.config.slices import BASE, slice_hash


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
        """File stem of an artifact: its name (`scores-base`, `metrics-grpo-seed0`, `trees-ibtree12`, ...) and the hash of its slice."""
        kind, _, name = artifact.partition("-")
        if kind == "trees":
            content = slices.comparison(self.config, name)
        elif kind == "metrics":
            content = slices.train(self.config, *self.runs[name])
        elif kind == "offline":
            content = slices.offline(self.config, *self.policies[name])
        else:
            content = slices.samples(self.config, *self.policies[name])
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


def _of_runs(kind: str, shown: str, base: bool = False):
    """Artifacts of a kind for all runs of the methods that a table or a figure shows, with the base policy's where it has one."""

    def names(config: Config) -> list[str]:
        methods = {**config.tables, **config.figures}.get(shown, ())
        return [f"{kind}-{BASE}"] * base + [f"{kind}-{method}-seed{seed}" for method in methods for seed in config.seeds]

    return names


FORMATS = {"tables": ("csv", "md", "tex", "caption.txt"), "figures": ("svg", "pdf", "png", "caption.txt")}
ACCURACIES = ("table1", "table2", "table4", "table5", "erpo1", "erpo2", "studies")  # tables of scores
CURVES = ("figure1", "figure2", "figure3", "figure5", "figure6")  # figures of metrics over training
TABLES = {
    **{name: _of_runs("scores", name, base=True) for name in ACCURACIES},
    "table3": lambda config: [f"trees-{name}" for name in config.comparison.table3],
    "table6": lambda config: [f"trees-{name}" for name in config.comparison.table6],
    "ibscore": _of_runs("offline", "ibscore", base=True),
}
FIGURES = {
    **{name: _of_runs("metrics", name) for name in CURVES},
    "figure7": _of_runs("scores", "figure7", base=True),
    "ibscores": _of_runs("offline", "ibscores", base=True),
}
SHOWN = TABLES | FIGURES
