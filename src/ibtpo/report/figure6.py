"""Figure 6: the mean density ratio p(a*|s_i) / p(a*|s_{i-1}) stays close to 1. Paper: IB-TPO, Figure 6 (appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.training import training

METRICS = ["train/ratio"]


def figure6(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts; errors as Figure 5."""
    return training("figure6", config, frames, METRICS, "Density ratio during training.", columns=1)
