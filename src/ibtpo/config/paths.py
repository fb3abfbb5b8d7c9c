"""The path of everything a preset makes, as pure functions of its configuration (docs/architecture.md, "folders").

All are relative to the working directory, under results/<preset>. Only `artifact` looks at the disk: for a published file, which no
rule produces. So the inputs of a rule never depend on whether its own output exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from ibtpo.config import slices
from ibtpo.config.load import ConfigError
from ibtpo.config.models import Config
from ibtpo.config.slices import BASE, slice_hash

DEFAULT = "tiny"  # the preset when none is named


class Paths:
    """Paths of one configuration. A policy is named `base` or `<method>-seed<k>`."""

    def __init__(self, config: Config):
        if unknown := [name for name in config.outputs if name not in SHOWN]:
            near = get_close_matches(unknown[0], SHOWN, n=5, cutoff=0.3) or list(SHOWN)
            raise ConfigError(f"outputs: {unknown[0]!r} is no table or figure. Known: {', '.join(near)}.")
        self.config = config
        self.root = Path("results") / config.preset
        self.data = self.root / "data" / slice_hash(slices.data(config))
        self.benchmarks = self.root / "data" / slice_hash(slices.benchmarks(config))  # in the tiny world the same folder
        self.policy = self.root / "policy" / slice_hash(slices.policy(config))
        self.runs = {f"{method}-seed{seed}": (method, seed) for method in config.methods for seed in config.seeds}
        self.policies = {BASE: (BASE, config.seeds[0]), **self.runs}
        looked_at = [name if name == BASE else f"{name}-seed{config.seeds[0]}" for name in config.forest.policies]
        self.forests = {f"forest-{name}-{sampler}": (name, sampler) for name in looked_at for sampler in config.forest.samplers}

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
        elif kind == "forest":
            policy, sampler = self.forests[artifact]
            content = slices.forest(self.config, *self.policies[policy], sampler)
        elif kind == "costs":
            content = slices.costs(self.config, name)
        else:
            longer = kind.removeprefix("samples").removeprefix("scores")  # "scores256": with at most 256 tokens
            slice_of = slices.scores if kind.startswith("scores") else slices.samples
            content = slice_of(self.config, *self.policies[name], int(longer or 0))
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

    def behind(self, artifact: str) -> list[Path]:
        """What an artifact comes from, last made first: the job that sampled it, the run and the base policy, the data.

        A job is named as its artifact is, without an extension; all others are folders.
        """
        kind, _, name = artifact.partition("-")
        if kind == "costs" and self.config.measurements[name].model == "random":
            return [self.root / "artifacts" / self.key(artifact)]
        policy = self.forests[artifact][0] if kind == "forest" else BASE if kind in ("trees", "costs") else name
        sampled = artifact.replace("scores", "samples", 1) if kind.startswith("scores") else artifact
        jobs = [] if kind == "metrics" else [self.root / "artifacts" / self.key(sampled)]
        problems = self.benchmarks if kind.startswith(("samples", "scores")) else self.data
        return list(dict.fromkeys([*jobs, self.run(policy), self.policy, problems, self.data]))

    def corpus(self, name: str) -> Path:
        """A built data set; its report lies beside it."""
        return Path("results") / "corpora" / f"{name}-{slice_hash(slices.corpus(self.config, name))}" / f"{name}.parquet"

    def corpora(self, names: Iterable[str]) -> list[Path]:
        """The built data sets among the names of problems, each once."""
        return [self.corpus(name) for name in dict.fromkeys(names) if name in self.config.corpora.sources]

    @property
    def tables(self) -> list[str]:
        """Tables that are to be made."""
        return [name for name in TABLES if self.config.wanted(name)]

    @property
    def figures(self) -> list[str]:
        """Figures that are to be made."""
        return [name for name in FIGURES if self.config.wanted(name)]

    def shown(self, name: str) -> list[str]:
        """Names of the artifacts that a table or a figure shows."""
        return (SHOWN | EXTRA)[name](self.config)

    @property
    def site(self) -> Path:
        """Folder of the report. That of the default preset lies where one looks first."""
        return Path("results/report") if self.config.preset == DEFAULT else self.root / "report"

    def report_inputs(self) -> list[str]:
        """Names of all artifacts that the report shows, each once."""
        return sorted({*self.forests, *(artifact for name in [*self.tables, *self.figures] for artifact in self.shown(name))})

    def stem(self, name: str) -> Path:
        """Path of a table or a figure without its extension."""
        return self.root / _kind(name) / name

    def outputs(self, name: str) -> list[Path]:
        """All files of a table or a figure: its formats and its caption."""
        return [Path(f"{self.stem(name)}.{extension}") for extension in FORMATS[_kind(name)]]


def _kind(name: str) -> str:
    return "figures" if name in FIGURES else "tables"


def _of_runs(kind: str, shown: str, base: bool = False):
    """Artifacts of a kind for all runs of the methods that a table or a figure shows, with the base policy's where it has one."""

    def names(config: Config) -> list[str]:
        methods = {**config.tables, **config.figures}.get(shown, ())
        return [f"{kind}-{BASE}"] * base + [f"{kind}-{method}-seed{seed}" for method in methods for seed in config.seeds]

    return names


def _of_longer(config: Config) -> list[str]:
    """Scores of the policies of Table 9, with the maximum of the training first, then with each longer one."""
    names = _of_runs("scores", "table9", base=True)(config)
    return [name.replace("scores", f"scores{longer}", 1) for longer in ("", *config.evaluate.longer) for name in names]


FORMATS = {"tables": ("csv", "md", "tex", "caption.txt", "sources.json"), "figures": ("svg", "pdf", "png", "caption.txt")}
ACCURACIES = ("table1", "table2", "table4", "table5", "erpo1", "erpo2", "studies")  # tables of scores
CURVES = ("figure1", "figure2", "figure3", "figure5", "figure6")  # figures of metrics over training
TABLES = {
    **{name: _of_runs("scores", name, base=True) for name in ACCURACIES},
    "table3": lambda config: [f"trees-{name}" for name in config.comparison.table3],
    "table6": lambda config: [f"trees-{name}" for name in config.comparison.table6],
    "table7": lambda config: [*_of_runs("scores", "table7", base=True)(config), "costs-table7"],
    "table8": lambda config: ["costs-table8"],
    "table9": _of_longer,
    "rollouts": lambda config: ["costs-figure8"],
    "ibscore": _of_runs("offline", "ibscore", base=True),
}
EXTRA = {  # tables that `all` leaves out: what they show takes long to measure
    "table8_midsize": lambda config: ["costs-table8-midsize"],
    "rollouts_midsize": lambda config: ["costs-figure8-midsize"],
}
FIGURES = {
    **{name: _of_runs("metrics", name) for name in CURVES},
    "figure7": _of_runs("scores", "figure7", base=True),
    "figure8": lambda config: ["costs-figure8"],
    "ibscores": _of_runs("offline", "ibscores", base=True),
}
SHOWN = TABLES | FIGURES
