"""Figure 2: entropy, Eff-Rate and validation accuracy of the GRPO family. Paper: IB-TPO, Figure 2 (trends only)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.training import training

METRICS = ["train/entropy", "train/eff_rate", "validation/accuracy"]


def figure2(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts; errors as Figure 5."""
    return training("figure2", config, frames, METRICS, "The GRPO family during training.")
