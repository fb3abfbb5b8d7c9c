"""ERPO's Table 1: accuracy and format rate. Paper: ERPO (arXiv 2603.28204), Table 1.

Format rate = share of responses whose boxed answer could be read, right or wrong. ERPO samples 16 times at T = 1.0 and top-p 0.95; ours is
sampled as all our tables are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import parsed
from ibtpo.report.accuracies import compared, notes
from ibtpo.report.reported import reported_grid
from ibtpo.report.scores import read_scores
from ibtpo.report.table import Table
from ibtpo.report.wording import told_apart

MODELS = ("Qwen2.5-1.5B", "Qwen2.5-3B", "Qwen2.5-7B")


def erpo1(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1."""
    methods, samples = config.tables["erpo1"], config.evaluate.samples
    scores = read_scores("erpo1", config, methods, frames)
    formats = read_scores("erpo1", config, methods, [_as_format(frame) for frame in frames])
    grids = [
        compared(f"Measured, preset {config.title}: {what}", config, values, {m: values.means(m) for m in values.titles}, "grpo")
        for what, values in [(f"accuracy, avg@{samples}", scores), ("format rate", formats)]
    ]
    caption = (
        "Accuracy, and format rate: share of the same responses whose boxed answer could be read. Avg: plain mean of the benchmarks. "
        f"Preset {config.described}. {notes(config, scores)} Accuracy, {told_apart(grids[0])} Format rate, {told_apart(grids[1])}"
    )
    paper = reported_grid("erpo1", "Reported by ERPO, not measured here: accuracy and format rate", scores.titles, MODELS, decimals=2)
    return Table("erpo1", caption, (*grids, paper), scores.titles)


def _as_format(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with reward 1 where the answer could be read, else 0."""
    if "status" not in frame:
        raise IbtpoError("erpo1: an input has no column status; score the samples again")
    return frame.assign(reward=parsed(frame))
