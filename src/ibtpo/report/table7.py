"""Table 7: IB-TPO with as many trajectories as GRPO: what sampling costs, and the accuracy after training. Paper: IB-TPO, Table 7, C.3."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.costs import BOOKKEEPING, HITS, PEAK, SECONDS, TOKENS, read_costs
from ibtpo.report.table import Table

LEAD = "IB-TPO with as many trajectories as GRPO: samplers under the load of one training iteration, then policies trained with them."


def table7(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts and the `costs` artifact, which is the last. Raises IbtpoError naming what is missing."""
    costs = read_costs("table7", config, "table7", frames[-1:], one=["trees", "max_tokens"])
    rows = {case: costs.title(case) for case in costs.cases}
    reference = costs.title(costs.cases[0])
    trees = costs.cases[0].trees
    grid = costs.grid(
        f"Measured, preset {config.title}: sampling of {trees} problems at once",
        "sampler",
        rows,
        (SECONDS, TOKENS, PEAK, HITS, BOOKKEEPING),
        {f"vs. {reference}": {case: costs.reference(case) for case in rows}},
    )
    accuracy = accuracies("table7", config, frames[:-1], "grpo", "Accuracies:")
    return Table("table7", f"{LEAD} Costs: {costs.notes()} {accuracy.caption}", (grid, *accuracy.grids), accuracy.titles)
