"""Table 2: the components of IB-TPO, tree search and advantage, each alone and exchanged. Paper: IB-TPO, Table 2; D.2 rows 24 to 27."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.table import Table

LEAD = (
    "Components of IB-TPO: + IBTree keeps GRPO's advantage, + IB-TPO advantage keeps independent sampling, RandTree and EPTree exchange "
    "the tree search."
)


def table2(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1."""
    return accuracies("table2", config, frames, "grpo", LEAD)
