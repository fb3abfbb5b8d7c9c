"""What Figures 1, 2, 3, 5 and 6 share: metrics of training runs, checked, drawn and described.

Accuracy is avg@k on the held-out problems; IB-Score and covariance are measured by the offline probe (D.2 rows 29 and 30), the same for
every method; Eff-Rate: row 34.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config.models import Config
from ibtpo.report.curves import BANDS, Panel, curves, looks, whole
from ibtpo.report.inputs import gather
from ibtpo.report.wording import distinct, sampling

SMOOTHED = 5  # training steps; a batch of a few problems is rough
LAST = f"mean of the last {SMOOTHED} batches"


def panel(metric: str, config: Config) -> Panel:
    """The panel of a metric of `metrics` artifacts. KeyError if none is made for it."""
    train = config.train
    probed = (
        f"offline probe of {train.probe_problems} held-out problems, {train.probe_seeds} seed trajectories each, {train.probe_draws} fresh "
        "rollouts at each step node"
    )
    held_out = config.number("validation")[1] or "all"
    accuracy = f"Validation: avg@{train.validation_samples} on {held_out} held-out problems."
    panels = [
        Panel("validation/accuracy", f"Validation avg@{train.validation_samples}, %", 100, meaning=accuracy),
        Panel("validation/ib_score", "IB-Score", meaning=f"IB-Score: {probed}."),
        Panel("validation/covariance", r"Cov($\eta_1$, $\eta_2$)", meaning=f"Cov(eta1, eta2): {probed}."),
        Panel("train/eff_rate", "Eff-Rate, %", 100, SMOOTHED, meaning=f"Eff-Rate: share of a batch's groups whose rewards differ, {LAST}."),
        Panel("train/entropy", "Entropy, nats", 1, SMOOTHED, meaning=f"Entropy: mean over a batch's response tokens, {LAST}."),
        Panel("train/response_length", "Response, tokens", 1, SMOOTHED, meaning=f"Response: mean length in a batch, {LAST}."),
        Panel("train/ratio", "Mean density ratio", 1, SMOOTHED, 1, f"Ratio: mean of p(a*|s) / p(a*|parent) over a batch's nodes, {LAST}."),
    ]
    return {panel.metric: panel for panel in panels}[metric]


def training(
    name: str, config: Config, frames: Sequence[pd.DataFrame], metrics: Sequence[str], lead: str, columns: int = 2
) -> tuple[Figure, str]:
    """Figure of `metrics` for `config.figures[name]` and its caption. Raises IbtpoError naming metric/method/seed without rows."""
    panels, methods = [panel(metric, config) for metric in metrics], config.figures[name]
    expected = [(metric, method, seed) for metric in metrics for method in methods for seed in config.seeds]
    rows = gather(name, frames, ["metric", "method", "seed", "step", "value"], expected, defined="value")
    rows = rows[pd.MultiIndex.from_frame(rows[["metric", "method", "seed"]]).isin(expected)]
    whole(name, rows)
    caption = (
        f"{lead} Preset {config.described}. Training step: rollout batch of {config.train.problems_per_iteration} problems. "
        f"{_meanings(panels)} {sampling(config)} {BANDS} ({len(config.seeds)} in all)."
    )
    titles = distinct({method: config.methods[method].title for method in methods})
    return curves(panels, rows, looks(titles, config), columns), caption


def _meanings(panels: Sequence[Panel]) -> str:
    """Sentences of the panels; names with the same meaning share one."""
    names: dict[str, list[str]] = {}
    for shown in panels:
        title, meaning = shown.meaning.split(": ", 1)
        names.setdefault(meaning, []).append(title)
    return " ".join(f"{' and '.join(titles)}: {meaning}" for meaning, titles in names.items())
