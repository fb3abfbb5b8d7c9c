"""Figure 5: what happens during training. Paper: IB-TPO, Figure 5 (accuracy, Eff-Rate, IB-Score and Cov against the training step)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.training import training

METRICS = ["validation/accuracy", "train/eff_rate", "validation/ib_score", "validation/covariance"]


def figure5(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts. Raises IbtpoError naming metric/method/seed where rows are missing."""
    return training("figure5", config, frames, METRICS, "Training.")
