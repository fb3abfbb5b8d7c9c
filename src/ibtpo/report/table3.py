"""Table 3: branching strategies on one fixed policy and one fixed problem set.

Paper: IB-TPO, Table 3. Eff-Rate = share of groups whose rewards differ, Avg-Rate = mean reward over all trajectories, tokens = newly
generated tokens per problem, shared prefixes once (D.2 row 34). Ours adds intervals over problems, and the differences to independent
sampling, paired by problem. Unscorable trajectories (NaN) count in neither rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Bootstrap
from ibtpo.report.inputs import gather
from ibtpo.report.reported import MODEL, reported
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.wording import distinct, interval, sampling

MEASURES = {"eff_rate": Column.percent("Eff-Rate"), "avg_rate": Column.percent("Avg-Rate"), "tokens": Column("tokens / problem")}
TITLES = {"independent": "independent", "random": "random tree", "ibtree": "IBTree"}


def table3(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from the `samplers` artifact. Raises IbtpoError naming the strategy where groups are missing or not whole."""
    samplers = {name: config.samplers[name] for name in config.comparison.strategies}
    columns = ["strategy", "seed", "uid", "trajectory", "reward", "new_tokens"]
    trajectories = gather("table3", frames, columns, [(name,) for name in samplers])
    by_problem = {name: _by_problem(name, s.group_size, trajectories[trajectories["strategy"] == name]) for name, s in samplers.items()}
    first, *others = by_problem.items()
    for name, frame in others:
        if not frame.index.equals(first[1].index):
            raise IbtpoError(f"table3: {name} and {first[0]} were not run on the same problems and seeds; compare the samplers again")

    seeds, problems = (len(first[1].index.unique(level)) for level in ("seed", "uid"))
    values = {name: {m: frame[m].to_numpy(float).reshape(seeds, problems) for m in MEASURES} for name, frame in by_problem.items()}
    titles = distinct({name: f"{TITLES.get(s.name, s.name)}, G = {s.group_size}" for name, s in samplers.items()})
    paper = {name: reported("table3")[MODEL].get(f"{s.name}-{s.group_size}", {}) for name, s in samplers.items()}
    references = sorted((n for n, s in samplers.items() if s.name == "independent"), key=lambda n: samplers[n].group_size, reverse=True)
    bootstrap = Bootstrap(config.evaluate.bootstrap, config.evaluate.confidence)

    def cell(name: str, estimate, figure: float | None = None, note: str = "") -> Cell:
        return Cell(estimate, problems, samplers[name].group_size, seeds, figure, note)

    cells = {
        (titles[n], column.name): cell(n, bootstrap.estimate(values[n][m]), paper[n].get(m))
        for n in samplers
        for m, column in MEASURES.items()
    }
    shown = [*MEASURES.values()]
    if references:
        largest = references[0]
        shown.append(Column.percent(f"tokens vs. {titles[largest]}"))
        for name in samplers:
            ratio = bootstrap.ratio([values[name]["tokens"]], [values[largest]["tokens"]])
            figure = round(100 * paper[name]["tokens"] / paper[largest]["tokens"], 1) if paper[name] and paper[largest] else None
            cells[titles[name], shown[-1].name] = cell(name, ratio, figure)
    grids = [Grid(f"Measured, preset {config.preset}; reported: {MODEL}", "strategy", tuple(titles.values()), tuple(shown), cells)]
    for reference in references:
        differences, compared = {}, [name for name in samplers if name != reference]
        for name in compared:
            for measure, column in MEASURES.items():
                estimate = bootstrap.difference([values[name][measure]], [values[reference][measure]])
                differences[titles[name], column.name] = cell(name, estimate, note=estimate.verdict)
        gaps = tuple(column.difference() for column in MEASURES.values())
        grids.append(Grid(f"Difference to {titles[reference]}", "strategy", tuple(titles[name] for name in compared), gaps, differences))

    caption = (
        "Branching strategies on the base policy. Eff-Rate: share of groups whose rewards differ; Avg-Rate: mean reward of all "
        f"trajectories; tokens: newly generated, shared prefixes once. Preset {config.preset}. Problems x trajectories x seeds: {problems} "
        f"x G x {seeds}. {sampling(config)} {interval(config, seeds)} Differences and ratios are paired by problem; a difference is called "
        f"higher or lower where its interval leaves out 0, else not told apart. Reported: the paper's numbers for {MODEL} on 1,024 "
        "problems, not measured here."
    )
    return Table("table3", caption, tuple(grids))


def _by_problem(name: str, group_size: int, frame: pd.DataFrame) -> pd.DataFrame:
    """The measures of each group, indexed by seed and uid in order."""
    groups = frame.astype({"reward": float}).groupby(["seed", "uid"])
    sizes = groups["trajectory"].agg(["size", "nunique"])
    wrong = sizes[(sizes != group_size).any(axis=1)]
    if len(wrong):
        (seed, uid), size = wrong.index[0], wrong["size"].iloc[0]
        raise IbtpoError(
            f"table3: {name}, seed {seed}, problem {uid} has {size} trajectories, not {group_size}; compare the samplers again"
        )
    rewards = groups["reward"]
    table = pd.DataFrame({"eff_rate": rewards.max() != rewards.min(), "avg_rate": rewards.mean(), "tokens": groups["new_tokens"].sum()})
    full = pd.MultiIndex.from_product(table.index.levels, names=table.index.names)
    if len(full) != len(table) or table["avg_rate"].isna().any():
        raise IbtpoError(
            f"table3: {name} has problems that are missing for a seed, or with no scored trajectory; compare the samplers again"
        )
    return table.reindex(full)
