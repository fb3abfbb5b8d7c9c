"""Table 4: lambda, the weight of the local advantage. Paper: IB-TPO, Table 4 (its values are not known)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.table import Table

REFERENCE = "ibtpo"


def table4(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1."""
    own = config.methods[REFERENCE]
    lead = (
        f"Weight lambda of the local advantage; {own.title} itself has {own.advantage.local_weight:g}. The paper reports that 0.1 is best, "
        "that 0 (the global advantage alone) falls short and that 0.5 collapses; its values are not known."
    )
    return accuracies("table4", config, frames, REFERENCE, lead)
