"""What Table 1 and the ablations share: accuracy of policies on the benchmarks, and their differences to a reference.

Paper: IB-TPO, Table 1 (avg@32, Avg = plain mean of the benchmarks; D.2 rows 31 and 32). Ours adds pass@k, intervals clustered by problem
and combined over seeds, and the paired difference to a reference method with a Holm-corrected permutation test [OURS].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Intervals, holm, permutation_test
from ibtpo.report.reported import model_of, reported, reported_grid
from ibtpo.report.scores import Scores, Strata, read_scores
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.wording import UNDECIDED, counted, interval, sampling, tested, told_apart


def accuracies(name: str, config: Config, frames: Sequence[pd.DataFrame], reference: str, lead: str) -> Table:
    """Table of the base policy and `config.tables[name]` from `scores` artifacts; errors as `read_scores`. `lead` opens the caption."""
    samples = config.evaluate.samples
    scores = read_scores(name, config, config.tables[name], frames)
    accuracy = {method: scores.means(method) for method in scores.titles}
    measured = compared(f"Measured, preset {config.title}: avg@{samples}", config, scores, accuracy, reference)
    passes = averages(f"Measured, preset {config.title}: unbiased pass@k, Avg of the benchmarks", config, scores)
    caption = (
        f"{lead} avg@{samples}: mean over problems of the mean over {samples} samples; Avg: plain mean of the benchmarks; pass@k: unbiased "
        f"estimate from the same samples. Preset {config.described}. {notes(config, scores)} {told_apart(measured)}"
    )
    model = model_of(name, config)
    label = f"Reported by the paper for {model}, not measured here: avg@32"
    grids = (measured, passes, *([reported_grid(name, label, scores.titles, (model,))] if reported(name) else []))
    return Table(name, caption, grids, scores.titles)


def compared(label: str, config: Config, scores: Scores, values: Mapping[str, Strata], reference: str) -> Grid:
    """Values by benchmark and on average, and the average's difference to the reference method where that is a row."""
    intervals = Intervals(config.evaluate.confidence)
    samples, total, cells = config.evaluate.samples, sum(scores.problems.values()), {}
    columns = [*map(Column.percent, scores.benchmarks), Column.percent("Avg")]
    for method, row in scores.titles.items():
        for benchmark, strata in zip(scores.benchmarks, values[method], strict=True):
            cells[row, benchmark] = Cell(intervals.estimate(strata), strata.shape[1], samples, len(strata))
        cells[row, "Avg"] = Cell(intervals.estimate(*values[method]), total, samples, scores.seeds(method))
    others = [method for method in scores.titles if method != reference]
    if reference in scores.titles and others:
        gain, p = Column.percent(f"Avg - {scores.titles[reference]}").difference(), Column("p (Holm)", decimals=4)
        columns += [gain, p]
        ps = holm([permutation_test(values[method], values[reference]) for method in others])
        for method, corrected in zip(others, ps, strict=True):
            row, estimate = scores.titles[method], intervals.difference(values[method], values[reference])
            sure = corrected <= 1 - config.evaluate.confidence
            counts = (total, samples, max(scores.seeds(method), scores.seeds(reference)))
            cells[row, gain.name] = Cell(estimate, *counts, note=estimate.verdict if sure else UNDECIDED)
            cells[row, p.name] = Cell(None, *counts, number=float(corrected))
    return Grid(label, "method", tuple(scores.titles.values()), tuple(columns), cells)


def averages(label: str, config: Config, scores: Scores) -> Grid:
    """pass@k for all k of `evaluate.pass_at`, mean of the benchmarks."""
    intervals = Intervals(config.evaluate.confidence)
    total, samples = sum(scores.problems.values()), config.evaluate.samples
    cells = {
        (row, f"pass@{k}"): Cell(intervals.estimate(*scores.passes(method, k)), total, samples, scores.seeds(method))
        for method, row in scores.titles.items()
        for k in config.evaluate.pass_at
    }
    return Grid(label, "method", tuple(scores.titles.values()), tuple(Column.percent(f"pass@{k}") for k in config.evaluate.pass_at), cells)


def notes(config: Config, scores: Scores, at_most: str = "", verdicts: str = "") -> str:
    """What every caption of accuracies says of counts, sampling (`at_most`: see there), intervals and `verdicts` (default: by tests)."""
    seeds = len(config.seeds)
    return (
        f"{counted(scores.problems, config.evaluate.samples, seeds)}; the base policy has one seed. {sampling(config, at_most)} "
        f"{interval(config, seeds)} {verdicts or tested(config)}"
    )
