"""ERPO's Table 2: pass@k by benchmark. Paper: ERPO (arXiv 2603.28204), Table 2; unbiased pass@k (D.2 row 32)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Intervals
from ibtpo.report.accuracies import notes
from ibtpo.report.erpo1 import MODELS
from ibtpo.report.reported import reported_grid
from ibtpo.report.scores import read_scores
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.wording import judged

PAPER = ("AMC23", "Minerva", "AIME24", "AIME25")
REFERENCE = "grpo"


def erpo2(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1, and IbtpoError if `evaluate.pass_at` has no k above 1."""
    ks = [k for k in config.evaluate.pass_at if k > 1]
    if not ks:
        raise IbtpoError("erpo2 shows pass@k for k > 1: add such a k to evaluate.pass_at")
    scores = read_scores("erpo2", config, config.tables["erpo2"], frames)
    intervals, samples = Intervals(config.evaluate.confidence), config.evaluate.samples
    rates = {(method, k): scores.passes(method, k) for method in scores.titles for k in ks}

    def grid(label: str, cell, methods: Sequence[str], columns: Sequence[Column]) -> Grid:
        cells = {(scores.titles[m], column.name): cell(m, k) for m in methods for k, column in zip(ks, columns, strict=True)}
        return Grid(label, "method", tuple(scores.titles[m] for m in methods), tuple(columns), cells)

    def value(index: int):
        return lambda m, k: Cell(intervals.estimate(rates[m, k][index]), len(rates[m, k][index].T), samples, scores.seeds(m))

    def gain(m: str, k: int) -> Cell:
        estimate = intervals.difference(rates[m, k], rates[REFERENCE, k])
        return Cell(estimate, sum(scores.problems.values()), samples, scores.seeds(REFERENCE), note=estimate.verdict)

    columns = [Column.percent(f"pass@{k}") for k in ks]
    shown = f"Measured, preset {config.title}"
    grids = [grid(f"{shown}: {name}", value(i), list(scores.titles), columns) for i, name in enumerate(scores.benchmarks)]
    others = [method for method in scores.titles if method != REFERENCE]
    if REFERENCE in scores.titles and others:
        label = f"{shown}: difference to {scores.titles[REFERENCE]}, Avg of the benchmarks"
        grids.append(grid(label, gain, others, [column.difference() for column in columns]))
    paper = [reported_grid(f"erpo2-{name}", f"Reported by ERPO, not measured here: {name}", scores.titles, MODELS, 2) for name in PAPER]
    caption = (
        f"pass@k by benchmark, unbiased estimate from {samples} samples. Preset {config.described}. "
        f"{notes(config, scores, verdicts=judged('problem and seed'))}"
    )
    return Table("erpo2", caption, (*grids, *paper), scores.titles)
