"""Table 8: sampling with longer and longer responses, wall-clock and KV cache. Paper: IB-TPO, Table 8, C.4 (values not known)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.costs import PEAK, SECONDS, TOKENS, read_costs
from ibtpo.report.table import Table

LEAD = "Sampling at 1, 2, ... times the maximal length of a response."


def table8(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from a `costs` artifact. Raises IbtpoError naming the case that is missing."""
    return _lengths("table8", config, "table8", frames)


def table8_midsize(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """The same on the larger random model; not part of `all`."""
    return _lengths("table8_midsize", config, "table8-midsize", frames)


def _lengths(name: str, config: Config, measurement: str, frames: Sequence[pd.DataFrame]) -> Table:
    costs = read_costs(name, config, measurement, frames)
    shortest = costs.cases[0].max_tokens
    rows = {case: f"{case.max_tokens / shortest:g}x = {case.max_tokens}: {costs.title(case)}, {case.trees} trees" for case in costs.cases}
    grid = costs.grid(
        f"Measured, preset {config.title}",
        "maximal length, sampler",
        rows,
        (SECONDS, TOKENS, PEAK),
        {
            f"vs. {costs.title(costs.cases[0])}": {case: costs.reference(case) for case in rows},
            "vs. 1x": {case: case._replace(max_tokens=shortest) for case in rows},
        },
    )
    return Table(name, f"{LEAD} {costs.notes()}", (grid,))
