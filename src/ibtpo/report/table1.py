"""Table 1: accuracy of the methods on the benchmarks.

Paper: IB-TPO, Table 1 (avg@32, Avg = plain mean of the benchmarks; D.2 rows 31 and 32). Ours adds pass@k, intervals clustered by problem
and combined over seeds, and the paired difference to GRPO; the base policy is one policy, so it has one seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Bootstrap, complete, pass_rates, sample_matrix
from ibtpo.report.inputs import gather
from ibtpo.report.reported import MODEL, reported
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.wording import counted, distinct, interval, sampling

BASE, BASE_SEED, REFERENCE = "base", -1, "grpo"


def table1(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts. Raises IbtpoError naming method/seed/benchmark where samples are missing."""
    plan, samples = config.evaluate, config.evaluate.samples
    methods = [BASE, *(method for method in config.table1 if method != BASE)]
    titles = distinct({method: "base policy" if method == BASE else config.methods[method].title for method in methods})
    seeds = {method: (BASE_SEED,) if method == BASE else config.seeds for method in methods}
    expected = [(method, seed, benchmark) for method in methods for seed in seeds[method] for benchmark in plan.benchmarks]
    columns = ["method", "seed", "benchmark", "uid", "sample", "reward"]
    scores = gather("table1", [_base_seed(frame) for frame in frames], columns, expected)
    wanted = scores[pd.MultiIndex.from_frame(scores[columns[:3]]).isin(expected)]
    groups = dict(list(wanted.groupby(columns[:3])))
    uids = {benchmark: sorted(wanted["uid"][wanted["benchmark"] == benchmark].unique()) for benchmark in plan.benchmarks}

    rewards = {key: _rewards(groups[key], key, samples, uids[key[2]]) for key in expected}
    by_seed = {(m, b): [rewards[m, seed, b] for seed in seeds[m]] for m in methods for b in plan.benchmarks}
    accuracy = {m: [np.array([r.mean(axis=1) for r in by_seed[m, b]]) for b in plan.benchmarks] for m in methods}

    bootstrap = Bootstrap(plan.bootstrap, plan.confidence)
    average, gain = Column.percent("Avg"), Column.percent("Avg - GRPO").difference()
    total = sum(map(len, uids.values()))
    cells, reached = {}, {}
    for method in methods:
        row, count = titles[method], len(seeds[method])
        for benchmark, values in zip(plan.benchmarks, accuracy[method], strict=True):
            cells[row, benchmark] = Cell(bootstrap.estimate(values), values.shape[1], samples, count)
        cells[row, average.name] = Cell(bootstrap.estimate(*accuracy[method]), total, samples, count)
        for k in plan.pass_at:
            rates = [np.array([pass_rates(r, k) for r in by_seed[method, b]]) for b in plan.benchmarks]
            reached[row, f"pass@{k}"] = Cell(bootstrap.estimate(*rates), total, samples, count)
        if REFERENCE in methods and method != REFERENCE:
            difference = bootstrap.difference(accuracy[method], accuracy[REFERENCE])
            cells[row, gain.name] = Cell(difference, total, samples, len(config.seeds), note=difference.verdict)

    rows = tuple(titles.values())
    shown = (*map(Column.percent, plan.benchmarks), average, *([gain] if REFERENCE in methods else []))
    measured = Grid(f"Measured, preset {config.preset}: avg@{samples}", "method", rows, shown, cells)
    ks = tuple(Column.percent(f"pass@{k}") for k in plan.pass_at)
    passes = Grid(f"Measured, preset {config.preset}: unbiased pass@k, Avg of the benchmarks", "method", rows, ks, reached)
    caption = (
        f"Accuracy by benchmark. avg@{samples}: mean over problems of the mean over {samples} samples; Avg: plain mean of the benchmarks; "
        f"pass@k: unbiased estimate from the same samples. Preset {config.preset}. {counted(uids, samples, len(config.seeds))}; the base "
        f"policy has one seed. {sampling(config)} {interval(config, len(config.seeds))} Problems are drawn within each benchmark. A "
        "difference is paired by problem and seed, and called higher or lower where its interval leaves out 0, else not told apart."
    )
    return Table("table1", caption, (measured, passes, _reported_grid(titles)))


def _base_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The base policy is one policy, whatever seed its rows carry."""
    known = {"method", "seed"} <= set(frame.columns)
    return frame.assign(seed=frame["seed"].mask(frame["method"] == BASE, BASE_SEED)) if known else frame


def _rewards(frame: pd.DataFrame, key: tuple[str, int, str], samples: int, uids: list[str]) -> np.ndarray:
    try:
        return complete(sample_matrix(frame, samples, uids))
    except IbtpoError as error:
        raise type(error)(f"table1, {'/'.join(map(str, key))}: {error}") from error


def _reported_grid(titles: dict[str, str]) -> Grid:
    paper = reported("table1")
    columns = tuple(map(Column.percent, paper["columns"]))
    cells = {
        (title, column): Cell(reported=value) for method, title in titles.items() for column, value in paper[MODEL].get(method, {}).items()
    }
    return Grid(f"Reported by the paper for {MODEL}, not measured here: avg@32", "method", tuple(titles.values()), columns, cells)
