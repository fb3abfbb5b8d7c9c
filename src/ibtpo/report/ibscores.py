"""Offline IB-Score and Cov(eta1, eta2) of all policies after training, as dots with intervals; protocol: D.2 rows 29 and 30 [OURS]."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ibtpo.config.models import Config
from ibtpo.config.slices import BASE
from ibtpo.evaluation.statistics import Intervals
from ibtpo.report.curves import WIDTH, Look, looks, style
from ibtpo.report.offline import MEASURES, read_offline
from ibtpo.report.wording import interval, sampling

SHOWN = {"ib_score": "IB-Score", "covariance": r"Cov($\eta_1$, $\eta_2$)"}
ROW = 0.17  # inches of a method


def ibscores(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `offline` artifacts. Raises IbtpoError naming method and seed where something is missing."""
    plan, seeds = config.offline, len(config.seeds)
    offline = read_offline("ibscores", config, config.figures["ibscores"], frames)
    methods, intervals = looks(offline.titles, config), Intervals(config.evaluate.confidence)
    with style():
        figure = Figure(figsize=(WIDTH, 2 * (ROW * len(methods) + 0.5)), layout="constrained")
        axes = figure.subplots(2, 2, sharey=True)
        for row, (where, values) in zip(axes, {"steps": offline.steps, "roots": offline.roots}.items(), strict=True):
            for axis, (measure, label) in zip(row, SHOWN.items(), strict=True):
                _dots(axis, measure, {method: values[method][measure] for method in methods}, methods, intervals)
                axis.set_title(f"{label}, {where}", loc="left", fontsize="medium")
    caption = (
        f"Offline IB-Score and Cov(eta1, eta2) of the policies, the same estimator for all (beta = {plan.beta:g}): {plan.seeds} "
        f"trajectories of each of {offline.problems} {plan.source} problems, {plan.draws} fresh rollouts at each non-terminal step node, "
        f"and at the problem itself (roots). Preset {config.described}, {seeds} seed(s); the base policy has one. {sampling(config)} Dots: "
        f"means; small dots: seeds; dotted line: base policy. {interval(config, seeds, 'Bars')}"
    )
    return figure, caption


def _dots(axis: Axes, measure: str, values: dict, methods: dict[str, Look], intervals: Intervals) -> None:
    axis.axvline(values[BASE].mean(), color="0.5", linewidth=0.8, linestyle=":")
    for place, (method, look) in enumerate(methods.items()):
        estimate = MEASURES[measure].mean(values[method], intervals)
        seeds = values[method].mean(axis=1)
        axis.plot([estimate.low, estimate.high], [place, place], color=look.colour, linewidth=1.4)
        axis.plot([estimate.value], [place], "o", color=look.colour, markersize=4.5)
        if len(seeds) > 1:
            axis.plot(seeds, [place + 0.28] * len(seeds), ".", color=look.colour, markersize=2.5)
    axis.set_yticks(range(len(methods)), [look.title for look in methods.values()])
    axis.set_ylim(len(methods) - 0.4, -0.6)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=3))
    axis.ticklabel_format(axis="x", scilimits=(-2, 3), useMathText=True)
    axis.tick_params(axis="y", length=0)
    sns.despine(ax=axis)
