"""Rollouts by the number of trees that grow at once: tokens, wall-clock, KV cache and prefix hits [OURS: the paper has Figure 8 only]."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.costs import BOOKKEEPING, CPU, HITS, PEAK, SECONDS, TOKENS, read_costs
from ibtpo.report.table import Table


def rollouts(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from the `costs` artifact of Figure 8. Raises IbtpoError naming the case that is missing."""
    return _parallel("rollouts", config, "figure8", frames)


def rollouts_midsize(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """The same on the larger random model; not part of `all`."""
    return _parallel("rollouts_midsize", config, "figure8-midsize", frames)


def _parallel(name: str, config: Config, measurement: str, frames: Sequence[pd.DataFrame]) -> Table:
    costs = read_costs(name, config, measurement, frames, one=["max_tokens"])
    rows = {case: f"{case.trees} at once: {costs.title(case)}" for case in costs.cases}
    others = {f"vs. {costs.title(costs.cases[0])}": {case: costs.reference(case) for case in rows}}
    if len(costs.measurement.modes) > 1:
        others[f"vs. {costs.measurement.modes[0]}"] = {case: costs.first_mode(case) for case in rows}
    shown = (SECONDS, CPU, TOKENS, PEAK, HITS, BOOKKEEPING)
    grid = costs.grid(f"Measured, preset {config.title}", "trees, sampler", rows, shown, others)
    return Table(name, f"Rollouts by the number of trees that grow at once. {costs.notes()}", (grid,))
