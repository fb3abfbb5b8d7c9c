"""Figure 8: wall-clock per tree against the number of trees that grow at once. Paper: IB-TPO, Figure 8, C.3 (trends only).

Ours adds the KV cache that running requests hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from ibtpo.config.models import Config
from ibtpo.report.costs import PEAK, SECONDS, Costs, read_costs
from ibtpo.report.curves import bands, dress, grid, looks, style

PANELS = {SECONDS: "Wall-clock / tree, ms", PEAK: "Peak KV / tree, tokens"}


def figure8(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from a `costs` artifact. Raises IbtpoError naming the case that is missing."""
    costs = read_costs("figure8", config, "figure8", frames, one=["max_tokens"])
    lines = looks({costs.title(case): costs.title(case) for case in costs.cases})
    trees = sorted({case.trees for case in costs.cases})
    with style():
        figure, axes = grid(len(PANELS), 2, lines)
        for axis, (column, label) in zip(axes, PANELS.items(), strict=True):
            bands(axis, _repeats(costs, column), "trees", lines, middle="median")
            dress(axis, label)
            axis.set_xscale("log", base=2)
            axis.set_xticks(trees)
            axis.set_xlabel("trees at once")
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            for part in (axis.xaxis, axis.yaxis):
                part.set_major_formatter(ScalarFormatter())
                part.set_minor_locator(NullLocator())
    caption = (
        "Wall-clock and KV cache per tree, by the number of trees that grow at once; a tree is a problem with all its responses. Lines: "
        f"median of the repeats; bands: from the lowest to the highest. {costs.notes()}"
    )
    return figure, caption


def _repeats(costs: Costs, column) -> pd.DataFrame:
    """Columns method (the title of a case), trees, value: one row a repeat."""
    rows = [(costs.title(case), case.trees, value) for case in costs.cases for value in column.scale * costs.figure(case, column)]
    return pd.DataFrame(rows, columns=["method", "trees", "value"])
