"""What Table 3 and Table 6 share: branching strategies on one fixed policy and one fixed problem set.

Paper: IB-TPO, Tables 3 and 6. Eff-Rate = share of groups whose rewards differ, Avg-Rate = mean reward over all trajectories, tokens = newly
generated tokens per problem, shared prefixes once (D.2 row 34). Ours adds intervals over problems, and the differences to a reference,
paired by problem. Unscorable trajectories (NaN) count in neither rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Estimate, Intervals
from ibtpo.report.inputs import gather
from ibtpo.report.table import Cell, Column, Grid
from ibtpo.report.wording import interval, judged, sampling

MEASURES = {"eff_rate": Column.percent("Eff-Rate"), "avg_rate": Column.percent("Avg-Rate"), "tokens": Column("tokens / problem")}
SEARCH = {  # of a tree, the same in all its rows
    "ib_score": Column("mean IB-Score", decimals=3),
    "root_repicked": Column.percent("root picked"),
    "node_repicked": Column.percent("picked before"),
}
KEYS = ["strategy", "seed", "uid", "trajectory", "reward", "new_tokens"]


@dataclass(frozen=True)
class Strategies:
    """Measures of the groups of each sampler: `values[sampler][measure]` has shape (seeds, problems), the same problems for all."""

    name: str
    config: Config
    titles: dict[str, str]
    values: Mapping[str, dict[str, np.ndarray]]

    @property
    def shape(self) -> tuple[int, int]:
        return next(iter(self.values.values()))["tokens"].shape

    @property
    def intervals(self) -> Intervals:
        return Intervals(self.config.evaluate.confidence)

    def cell(self, sampler: str, estimate: Estimate, reported: float | None = None, note: str = "") -> Cell:
        seeds, problems = self.shape
        return Cell(estimate, problems, self.config.samplers[sampler].group_size, seeds, reported, note)

    def measured(self, label: str, reported: Mapping[str, dict[str, float]], against: str = "") -> Grid:
        """All measures, beside what is reported of a sampler, with the tokens as a share of those of `against`."""
        found = {}
        for sampler, row in self.titles.items():
            values, paper = self.values[sampler], reported.get(sampler, {})
            for measure, column in MEASURES.items():
                found[row, column.name] = self.cell(sampler, column.mean(values[measure], self.intervals), paper.get(measure))
            if against:
                ratio = self.intervals.ratio([values["tokens"]], [self.values[against]["tokens"]])
                both = [reported.get(name, {}).get("tokens") for name in (sampler, against)]
                share = round(100 * both[0] / both[1], 1) if all(both) else None
                found[row, f"tokens vs. {self.titles[against]}"] = self.cell(sampler, ratio, share)
        shares = [Column.percent(f"tokens vs. {self.titles[against]}")] if against else []
        return Grid(label, "strategy", tuple(self.titles.values()), (*MEASURES.values(), *shares), found)

    def search(self, label: str) -> Grid:
        """What the search did; a sampler without expansions has no picks."""
        cells = {
            (row, column.name): self.cell(sampler, column.mean(self.values[sampler][measure], self.intervals))
            for sampler, row in self.titles.items()
            for measure, column in SEARCH.items()
            if not np.isnan(self.values[sampler][measure]).any()
        }
        return Grid(label, "strategy", tuple(self.titles.values()), tuple(SEARCH.values()), cells)

    def difference(self, reference: str) -> Grid:
        """All measures of the other samplers minus those of the reference, paired by problem."""
        cells, others = {}, [sampler for sampler in self.titles if sampler != reference]
        for sampler in others:
            for measure, column in MEASURES.items():
                estimate = self.intervals.difference([self.values[sampler][measure]], [self.values[reference][measure]])
                cells[self.titles[sampler], column.name] = self.cell(sampler, estimate, note=estimate.verdict)
        columns = tuple(column.difference() for column in MEASURES.values())
        return Grid(f"Difference to {self.titles[reference]}", "strategy", tuple(self.titles[s] for s in others), columns, cells)

    def notes(self) -> str:
        """What both captions say of measures, counts, sampling and intervals."""
        seeds, problems = self.shape
        return (
            "Eff-Rate: share of groups whose rewards differ; Avg-Rate: mean reward of all trajectories; tokens: newly generated, shared "
            f"prefixes once. Preset {self.config.described}. Problems x trajectories x seeds: {problems} x G x {seeds}. "
            f"{sampling(self.config)} {interval(self.config, seeds)} Ratios are paired by problem. {judged('problem')}"
        )


def read_strategies(name: str, config: Config, titles: dict[str, str], frames: Sequence[pd.DataFrame], search: bool = False) -> Strategies:
    """Measures from `trees` artifacts of the samplers that are the keys of `titles`, for the table `name`; with those of SEARCH if asked.

    Raises IbtpoError naming the sampler where groups are missing or not whole.
    """
    measures = [*MEASURES, *(SEARCH if search else [])]
    trees = gather(name, frames, [*KEYS, *measures[len(MEASURES) :]], [(sampler,) for sampler in titles])
    groups = {s: _groups(f"{name}: {s}", config.samplers[s].group_size, trees[trees["strategy"] == s]) for s in titles}
    (first, index), *others = ((sampler, frame.index) for sampler, frame in groups.items())
    for sampler, other in others:
        if not other.equals(index):
            raise IbtpoError(f"{name}: {sampler} and {first} were not run on the same problems and seeds; compare the samplers again")
    shape = [len(level) for level in index.levels]
    values = {s: {measure: frame[measure].to_numpy(float).reshape(shape) for measure in measures} for s, frame in groups.items()}
    return Strategies(name, config, titles, values)


def _groups(where: str, group_size: int, frame: pd.DataFrame) -> pd.DataFrame:
    """The measures of each group, indexed by seed and uid in order."""
    groups = frame.astype({"reward": float}).groupby(["seed", "uid"])
    sizes = groups["trajectory"].agg(["size", "nunique"])
    wrong = sizes[(sizes != group_size).any(axis=1)]
    if len(wrong):
        (seed, uid), size = wrong.index[0], wrong["size"].iloc[0]
        raise IbtpoError(f"{where}, seed {seed}, problem {uid} has {size} trajectories, not {group_size}; compare the samplers again")
    rewards = groups["reward"]
    table = pd.DataFrame({"eff_rate": rewards.max() != rewards.min(), "avg_rate": rewards.mean(), "tokens": groups["new_tokens"].sum()})
    table = table.join(groups[[measure for measure in SEARCH if measure in frame]].first())
    full = pd.MultiIndex.from_product(table.index.levels, names=table.index.names)
    if len(full) != len(table) or table["avg_rate"].isna().any():
        raise IbtpoError(f"{where} has problems that are missing for a seed, or with no scored trajectory; compare the samplers again")
    return table.reindex(full)
