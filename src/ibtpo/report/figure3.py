"""Figure 3: covariance and IB-Score of the GRPO family. Paper: IB-TPO, Figure 3 (trends only)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.training import training

METRICS = ["validation/covariance", "validation/ib_score"]


def figure3(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts; errors as Figure 5."""
    return training("figure3", config, frames, METRICS, "Information of the GRPO family during training.")
