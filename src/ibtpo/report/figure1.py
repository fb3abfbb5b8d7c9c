"""Figure 1: over-exploitation (GRPO) and over-exploration (a strong entropy bonus) beside IB-TPO. Paper: IB-TPO, Figure 1 (trends only).

Ours adds the length of responses, which runs away where a policy explores without aim (appendix D of the paper).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.training import training

METRICS = ["validation/accuracy", "train/entropy", "train/eff_rate", "train/response_length"]


def figure1(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts; errors as Figure 5."""
    return training("figure1", config, frames, METRICS, "Over-exploitation and over-exploration.")
