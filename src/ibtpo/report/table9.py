"""Table 9: the accuracy of policies that may write longer responses. Paper: IB-TPO, Table 9 (4K and 8K tokens; values not known).

[OURS]: the policies are those of the other tables, trained with the shorter maximum; what we hold of the paper does not say with which
one its policies were trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Intervals
from ibtpo.report.accuracies import compared, notes
from ibtpo.report.scores import Scores, read_scores
from ibtpo.report.table import Cell, Column, Grid, Table


def table9(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts: all policies at the maximum of the training, then at each longer one; errors as Table 1."""
    lengths, methods = (config.sampling.max_tokens, *config.evaluate.longer), config.tables["table9"]
    scores, full, policies = {}, {}, len(frames) // len(lengths)
    for number, length in enumerate(lengths):
        chosen = frames[number * policies : (number + 1) * policies]
        scores[length] = read_scores("table9", config, methods, chosen)
        full[length] = read_scores("table9", config, methods, [frame.assign(reward=frame["tokens"] >= length) for frame in chosen])
    grids = [
        compared(
            f"Measured, preset {config.title}: avg@{config.evaluate.samples}, at most {length} tokens",
            config,
            found,
            {method: found.means(method) for method in found.titles},
            "grpo",
        )
        for length, found in scores.items()
    ]
    first = next(iter(scores.values()))
    caption = (
        f"Accuracy with longer responses: policies trained with at most {lengths[0]} tokens sample with more [OURS]. avg@k: mean over "
        "problems of the mean over k samples; Avg: plain mean of the benchmarks. As long as the maximum: all but those that end just there "
        f"were cut. Preset {config.described}. {notes(config, first, 'what the grid says')}"
    )
    return Table("table9", caption, (*grids, _cut(config, full)), first.titles)


def _cut(config: Config, full: dict[int, Scores]) -> Grid:
    """The share of responses as long as the maximum, mean of the benchmarks."""
    intervals, columns = Intervals(config.evaluate.confidence), {length: Column.percent(f"at most {length}") for length in full}
    cells = {
        (row, columns[length].name): Cell(
            intervals.estimate(*found.means(method)), sum(found.problems.values()), config.evaluate.samples, found.seeds(method)
        )
        for length, found in full.items()
        for method, row in found.titles.items()
    }
    titles = tuple(next(iter(full.values())).titles.values())
    return Grid(f"Measured, preset {config.title}: responses as long as the maximum", "method", titles, tuple(columns.values()), cells)
