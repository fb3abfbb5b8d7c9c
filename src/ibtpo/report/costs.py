"""What the tables and figures of costs share: repeats of measured rollouts, as medians with their range.

A ratio is taken within each repeat, where both cases ran on the same problems, one soon after the other, so a slow minute of the machine
weighs on both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.measurements import Case, Measurement
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Estimate
from ibtpo.report.inputs import gather
from ibtpo.report.table import Cell, Column, Grid
from ibtpo.report.wording import distinct

TITLES = {"independent": "independent", "ibtree": "IBTree"}
KEYS = ["what", *Case._fields]
COUNTS = ["tokens", "kv_peak_tokens", "prefix_queries", "prefix_hits"]
FIGURES = ["seconds", "cpu_seconds", "bookkeeping_seconds", *COUNTS]
FACTS = ["load", "engine", "max_sequences", "block_size", "parameters", "hardware"]

SECONDS, CPU = Column("wall-clock / tree", "ms", 1000, 1), Column("CPU / tree", "ms", 1000, 1)
TOKENS, PEAK = Column("tokens / tree"), Column("peak KV / tree", "tokens")
HITS, BOOKKEEPING = Column.percent("prefix hits"), Column.percent("bookkeeping")
OF = {SECONDS: "seconds", CPU: "cpu_seconds", TOKENS: "tokens", PEAK: "kv_peak_tokens"}  # what is shown a tree, and its column


@dataclass(frozen=True)
class Costs:
    """Repeats of every case of one measurement: `values[case][column]` has shape (repeats,); NaN where the engine does not count."""

    config: Config
    measurement: Measurement
    values: Mapping[Case, Mapping[str, np.ndarray]]
    facts: Mapping[str, tuple]

    @property
    def cases(self) -> list[Case]:
        return list(self.values)

    def reference(self, case: Case) -> Case:
        """The measurement's first sampler under the same load."""
        return next(other for other in self.cases if other[2:] == case[2:])

    def first_mode(self, case: Case) -> Case:
        """The same sampler under the same load, in its first mode."""
        return next(other for other in self.cases if other[2:] == case[2:] and other.sampler == case.sampler)

    def figure(self, case: Case, column: Column) -> np.ndarray:
        """A figure of each repeat, as the columns above have it: by the tree, or as a share."""
        values = self.values[case]
        if column is HITS:
            return values["prefix_hits"] / values["prefix_queries"]
        if column is BOOKKEEPING:
            return values["bookkeeping_seconds"] / values["seconds"]
        return values[OF[column]] / case.trees

    def title(self, case: Case) -> str:
        """Sampler, G, its name where another one has the same, and the mode where the sampler has two."""
        samplers = {name: self.config.samplers[name] for name in self.measurement.samplers}
        titles = distinct({name: f"{TITLES.get(row.name, row.name)}, G = {row.group_size}" for name, row in samplers.items()})
        modes = len(self.measurement.modes) > 1 and samplers[case.sampler].name != "independent"
        return titles[case.sampler] + f", {case.mode}" * modes

    def cell(self, case: Case, values: np.ndarray) -> Cell | None:
        """Median and range over the repeats; each repeat has its own problems and seeds, so it counts as a seed."""
        if np.isnan(values).any():
            return None
        estimate = Estimate(float(np.median(values)), float(values.min()), float(values.max()))
        return Cell(estimate, case.trees, self.config.samplers[case.sampler].group_size, len(values))

    def grid(
        self, label: str, stub: str, rows: Mapping[Case, str], shown: Sequence[Column], others: Mapping[str, Mapping[Case, Case]]
    ) -> Grid:
        """The `shown` figures of each row, and ratios of seconds, CPU seconds and peaks to another case.

        others: for each heading of ratios ("vs. ...") the case that a row is held against; a row that is missing there has none.
        """
        cells: dict[tuple[str, str], Cell | None] = {}
        columns = {column.name: column for column in shown}
        for case, row in rows.items():
            values = self.values[case]
            for column in shown:
                cells[row, column.name] = self.cell(case, self.figure(case, column))
            for heading, against in others.items():
                for column in (SECONDS, CPU, PEAK):
                    ratio = Column.percent(f"{column.name.removesuffix(' / tree')} {heading}")
                    columns[ratio.name] = ratio
                    if against[case] != case:
                        cells[row, ratio.name] = self.cell(case, values[OF[column]] / self.values[against[case]][OF[column]])
        filled = {place: cell for place, cell in cells.items() if cell is not None}
        used = tuple(column for name, column in columns.items() if any(name == place[1] for place in filled))
        return Grid(label, stub, tuple(rows.values()), used, filled)

    def notes(self) -> str:
        """What every caption says of the protocol, the model and the machine."""
        (engine, *_), (most, *_), (block, *_) = (self.facts[fact] for fact in ("engine", "max_sequences", "block_size"))
        sampling = self.config.sampling
        shared = "" if engine == "vllm" else "; running requests share none there"
        blocks = "" if np.isnan(block) else f", in the engine's own blocks of {block:g} token{'' if block == 1 else 's'}{shared}"
        return (
            f"{self._model()} Engine: {engine}, at most {most} requests at once; temperature {sampling.temperature:g}, top-p "
            f"{sampling.top_p:g}, top-k {sampling.top_k}. "
            f"Median [lowest, highest] of {self.measurement.repeats} repeats, in which all cases take turns; a repeat has its own problems "
            "and seeds, and a run starts with an empty prefix cache. Ratios are taken within a repeat. Wall-clock: engine, verifier and "
            f"trees together. Peak KV: the most tokens whose keys and values running requests held at once{blocks}. Measured on "
            f"{' and '.join(self.facts['hardware'])}, load {min(self.facts['load']):.1f} to {max(self.facts['load']):.1f}; another run "
            "gives other times, so tables of costs are made from published measurements where there are some."
        )

    def _model(self) -> str:
        (parameters, *_), m = self.facts["parameters"], self.measurement
        size = f"{parameters / 1e6:,.1f}M parameters"
        if m.model == "policy":
            return f"The base policy of preset {self.config.described} ({size}) on training problems."
        return (
            f"A random model of {size} (preset {self.config.described}), prompts of {m.prompt} tokens, rewards by coin; responses are cut "
            f"at lengths drawn uniformly from {m.shortest:.0%} of the maximum up to it."
        )


def read_costs(name: str, config: Config, measurement: str, frames: Sequence[pd.DataFrame], one: Sequence[str] = ()) -> Costs:
    """The repeats in a `costs` artifact, for the table or figure `name`.

    one: "trees", "max_tokens" where it shows one number only. Raises IbtpoError naming the key that has several, or the case that is
    not whole.
    """
    cases, row = config.cases(measurement), config.measurements[measurement]
    for key in one:
        if len(found := getattr(row, key)) > 1:
            raise IbtpoError(f"{name} shows one number of {key}: leave one of the {len(found)} in measurements.{measurement}.{key}")
    rows = gather(name, frames, [*KEYS, "repeat", *FIGURES, *FACTS], [(measurement, *case) for case in cases])
    rows = rows.astype(dict.fromkeys([*FIGURES, "block_size"], float)).set_index(list(Case._fields)).sort_index()
    values = {}
    for case in cases:
        found = rows.loc[[case]].sort_values("repeat")
        if found["repeat"].tolist() != list(range(row.repeats)):
            there = found["repeat"].tolist()
            raise IbtpoError(f"{name}: {'/'.join(map(str, case))} has the repeats {there}, not 0 to {row.repeats - 1}; measure again")
        values[case] = {column: found[column].to_numpy() for column in FIGURES}
    facts = {fact: tuple(sorted(rows[fact].unique())) for fact in FACTS}
    return Costs(config, row, values, facts)
