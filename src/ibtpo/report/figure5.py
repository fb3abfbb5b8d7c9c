"""Figure 5: what happens during training.

Paper: IB-TPO, Figure 5 (validation accuracy, Eff-Rate, IB-Score and Cov(eta1, eta2) against the training step). Ours: accuracy is avg@k on
the held-out problems, IB-Score and covariance are measured by the offline probe (D.2 rows 29 and 30), the same for every method.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.curves import BANDS, Panel, curves, whole
from ibtpo.report.inputs import gather
from ibtpo.report.wording import distinct, sampling

SMOOTHED = 5  # training steps; a batch of a few problems has a rough Eff-Rate


def figure5(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `metrics` artifacts. Raises IbtpoError naming metric/method/seed where rows are missing."""
    train = config.train
    panels = [
        Panel("validation/accuracy", f"Validation avg@{train.validation_samples}, %", 100),
        Panel("train/eff_rate", "Eff-Rate, %", 100, window=SMOOTHED),
        Panel("validation/ib_score", "IB-Score"),
        Panel("validation/covariance", r"Cov($\eta_1$, $\eta_2$)"),
    ]
    methods = [name for name in config.table1 if name in config.methods]
    expected = [(panel.metric, method, seed) for panel in panels for method in methods for seed in config.seeds]
    rows = gather("figure5", frames, ["metric", "method", "seed", "step", "value"], expected, defined="value")
    rows = rows[pd.MultiIndex.from_frame(rows[["metric", "method", "seed"]]).isin(expected)]
    whole("figure5", rows)
    caption = (
        f"Training, preset {config.preset}. Training step: rollout batch of {train.problems_per_iteration} problems. Validation: "
        f"avg@{train.validation_samples} on {config.world.validation} held-out problems. Eff-Rate: share of a batch's groups whose rewards "
        f"differ, mean of the last {SMOOTHED} batches. IB-Score and Cov(eta1, eta2): offline probe of {train.probe_problems} held-out "
        f"problems, {train.probe_seeds} seed trajectories each, {train.probe_draws} fresh rollouts at each step node. {sampling(config)} "
        f"{BANDS} ({len(config.seeds)} in all)."
    )
    return curves(panels, rows, distinct({method: config.methods[method].title for method in methods})), caption
