"""Estimator studies [OURS]: choices of IB-TPO's estimators that the paper leaves open or does not compare.

r against r squared in the posterior entropy (D.1 remark i), literal against hierarchical densities (D.2 row 8), pi of the raw model against
pi at the sampling temperature (row 10), weights of shared steps (row 20), groups of equal rewards (row 21); and the stronger regularisers
of C.3 and C.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.table import Table

LEAD = "Estimator studies, not in the paper: one choice of IB-TPO changed at a time, and stronger regularisers of GRPO."


def studies(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1."""
    return accuracies("studies", config, frames, "ibtpo", LEAD)
