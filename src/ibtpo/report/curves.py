"""Panels of metrics over the training step, one line a method, with a band over its seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ibtpo import IbtpoError

WIDTH, PANEL_HEIGHT = 4.4, 1.6  # inches; the text stays above 6 pt where the figure is set one text column (3.3 in) wide
BANDS = "Lines: mean over seeds; bands: from the lowest to the highest seed"


@dataclass(frozen=True)
class Panel:
    """One metric. `window`: a point is the mean of the run's last so many values, where single batches are too noisy to read."""

    metric: str
    label: str
    scale: float = 1
    window: int = 1


@contextmanager
def style() -> Iterator[None]:
    """One look and no randomness, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcParams.update({k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")})
        sns.set_theme(context="paper", style="ticks", palette="colorblind", font="DejaVu Sans")
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": "ibtpo",
                "pdf.fonttype": 42,
                "savefig.dpi": 240,
                "axes.grid": True,
                "grid.color": "0.9",
                "grid.linewidth": 0.6,
                "axes.edgecolor": "0.3",
                "axes.linewidth": 0.7,
                "xtick.major.width": 0.7,
                "ytick.major.width": 0.7,
                "lines.linewidth": 1.6,
            }
        )
        yield


def curves(panels: Sequence[Panel], frame: pd.DataFrame, titles: Mapping[str, str], columns: int = 2) -> Figure:
    """Draws a grid of panels, `columns` wide. `frame`: method, seed, step, metric, value; `titles`: legend by method, in order."""
    rows = -(-len(panels) // columns)
    with style():
        figure = Figure(figsize=(WIDTH, rows * PANEL_HEIGHT + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            _panel(axis, panel, frame[frame["metric"] == panel.metric], titles)
        for axis in axes[len(panels) :]:
            axis.remove()
        for axis in axes[max(0, len(panels) - columns) : len(panels)]:
            axis.set_xlabel("training step")
            axis.tick_params(labelbottom=True)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, handlelength=2.8, loc="outside upper center", ncols=min(len(labels), 4), frameon=False)
    return figure


def _panel(axis, panel: Panel, rows: pd.DataFrame, titles: Mapping[str, str]) -> None:
    data = rows.sort_values("step").reset_index(drop=True)
    data["value"] = panel.scale * data.groupby(["method", "seed"])["value"].transform(
        lambda v: v.rolling(panel.window, min_periods=1).mean()
    )
    data["method"] = data["method"].map(titles)
    order = list(titles.values())
    options = {
        "hue": "method",
        "hue_order": order,
        "style": "method",
        "style_order": order,
        "palette": sns.color_palette("colorblind", len(order)),
    }
    sns.lineplot(data, x="step", y="value", errorbar=("pi", 100), err_kws={"alpha": 0.2, "linewidth": 0}, ax=axis, **options)
    axis.get_legend().remove()  # one legend for all panels
    axis.set(xlabel="", ylabel="")
    axis.set_title(panel.label, loc="left", fontsize="medium")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.yaxis.set_major_locator(MaxNLocator(nbins=4))
    sns.despine(ax=axis)


def whole(name: str, frame: pd.DataFrame) -> None:
    """Raises IbtpoError if a run ends before another, or a value occurs twice: a mean must be over the same seeds at every step."""
    if frame.duplicated(["method", "seed", "step", "metric"]).any():
        raise IbtpoError(f"{name}: a value of a metric occurs twice; is an input listed twice?")
    last = frame.groupby(["method", "seed"])["step"].max()
    for (method, seed), step in last[last < last.max()].items():
        raise IbtpoError(f"no rows for {name}: missing {method}/{seed} after step {step} of {last.max()}; finish that run")
