"""Table 1: accuracy of the methods on the benchmarks. Paper: IB-TPO, Table 1."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.table import Table


def table1(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts. Raises IbtpoError naming method/seed/benchmark where samples are missing."""
    return accuracies("table1", config, frames, "grpo", "Accuracy by benchmark.")
