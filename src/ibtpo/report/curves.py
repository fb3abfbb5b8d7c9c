"""How figures look: one line or dot a method, the same colour and dashes for a method in all figures; panels of metrics over training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.config.slices import BASE

WIDTH, PANEL_HEIGHT = 4.4, 1.6  # inches; the text stays above 6 pt where the figure is set one text column (3.3 in) wide
LEGEND_SIZE, LEGEND_ROW, LEGEND_ENTRY = 7.5, 0.15, 0.5  # points; inches: height of a row, width of an entry without its title
BANDS = "Lines: mean over seeds; bands: from the lowest to the highest seed"
FIRST = ("grpo", "ibtpo")  # the two that all is about take the two strongest colours
COLOURS = [*(sns.color_palette("colorblind")[i] for i in (0, 3, 2, 4, 9, 5, 7, 1)), "#332288"]  # its yellow and pink are too pale for lines
DASHES = [(), (4, 1.2), (1, 1), (5, 1, 1, 1), (2.5, 1), (6, 1.5, 2, 1.5), (5, 1, 1, 1, 1, 1), (8, 2), (1, 2)]
BASE_LOOK = ("0.35", (0.6, 1.4))


@dataclass(frozen=True)
class Panel:
    """One metric. `window`: a point is the mean of the run's last so many values, where single batches are too noisy to read.

    `line`: height of a thin line to hold the metric against. `meaning`: sentence for the caption.
    """

    metric: str
    label: str
    scale: float = 1
    window: int = 1
    line: float | None = None
    meaning: str = ""


@dataclass(frozen=True)
class Look:
    title: str
    colour: tuple | str
    dashes: tuple[float, ...]


def looks(titles: Mapping[str, str], config: Config | None = None) -> dict[str, Look]:
    """Title, colour and dashes by method; with a configuration the same ones in all its figures."""
    shown = [name for chosen in sorted(config.figures.values(), key=len, reverse=True) for name in chosen] if config else []
    order = [name for name in dict.fromkeys([*FIRST, *shown, *titles]) if name != BASE]

    def look(name: str) -> tuple:
        place = order.index(name) if name != BASE else 0
        return BASE_LOOK if name == BASE else (COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)])

    return {name: Look(title.replace("$", r"\$"), *look(name)) for name, title in titles.items()}


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
                "axes.axisbelow": True,
                "grid.color": "0.9",
                "grid.linewidth": 0.6,
                "axes.edgecolor": "0.3",
                "axes.linewidth": 0.7,
                "xtick.major.width": 0.7,
                "ytick.major.width": 0.7,
                "lines.linewidth": 1.5,
                "legend.fontsize": LEGEND_SIZE,
            }
        )
        yield


def grid(count: int, columns: int, methods: Mapping[str, Look], height: float = PANEL_HEIGHT, **shared) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels and a legend: at the top right if a cell is free, else above. To be called in `style`."""
    titles = [look.title for look in methods.values()]
    rows, free, across = -(-count // columns), -count % columns, _across(titles)
    above = 0 if free else LEGEND_ROW * -(-len(titles) // across)
    figure = Figure(figsize=(WIDTH, rows * height + above + 0.3), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())
    handles = [Line2D([], [], color=look.colour, dashes=look.dashes or (None, None)) for look in methods.values()]
    options = {"handles": handles, "labels": titles, "handlelength": 2.8, "columnspacing": 1.2, "frameon": False}
    if not free:
        figure.legend(loc="outside upper center", ncols=across, **options)
    for place, axis in enumerate([axes.pop(columns - free) for _ in range(free)]):
        axis.axis("off")
        if not place:
            axis.legend(loc="center", **options)
    return figure, axes


def _across(titles: Sequence[str]) -> int:
    """Columns of a legend as wide as the figure; entries go down the columns."""
    widths = [TextPath((0, 0), title, LEGEND_SIZE).get_extents().width / 72 for title in titles]
    for columns in range(min(4, len(titles)), 1, -1):
        parts = np.array_split(widths, columns)  # as matplotlib fills them
        if sum(LEGEND_ENTRY + part.max() for part in parts) <= WIDTH:
            return columns
    return 1


def bands(axis: Axes, rows: pd.DataFrame, x: str, methods: Mapping[str, Look], middle: str = "mean") -> None:
    """For each method the mean (or median) over seeds of `value` against the column `x`, and a band from the lowest to the highest seed."""
    over = rows.groupby(["method", x])["value"].agg([middle, "min", "max"])
    for name, look in methods.items():
        if name in over.index:
            line = over.loc[name]
            axis.fill_between(line.index, line["min"], line["max"], color=look.colour, alpha=0.2 if len(methods) < 5 else 0.1, linewidth=0)
            axis.plot(line.index, line[middle], color=look.colour, dashes=look.dashes or (None, None))


def dress(axis: Axes, title: str) -> None:
    axis.set_title(title, loc="left", fontsize="medium")
    axis.yaxis.set_major_locator(MaxNLocator(nbins=4))
    sns.despine(ax=axis)


def curves(panels: Sequence[Panel], frame: pd.DataFrame, methods: Mapping[str, Look], columns: int = 2) -> Figure:
    """Draws a grid of panels, `columns` wide. `frame`: method, seed, step, metric, value; the legend is in the order of `methods`."""
    with style():
        figure, axes = grid(len(panels), columns, methods, sharex=True)
        for axis, panel in zip(axes, panels, strict=True):
            data = frame[frame["metric"] == panel.metric].sort_values("step").reset_index(drop=True)
            runs = data.groupby(["method", "seed"])["value"]
            data["value"] = panel.scale * runs.transform(lambda v, window=panel.window: v.rolling(window, min_periods=1).mean())
            if panel.line is not None:
                axis.axhline(panel.line, color="0.5", linewidth=0.8)
            bands(axis, data, "step", methods)
            dress(axis, panel.label)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        for axis in axes[max(0, len(panels) - columns) :]:
            axis.set_xlabel("training step")
            axis.tick_params(labelbottom=True)
    return figure


def whole(name: str, frame: pd.DataFrame) -> None:
    """Raises IbtpoError if a run ends before another, or a value occurs twice: a mean must be over the same seeds at every step."""
    if frame.duplicated(["method", "seed", "step", "metric"]).any():
        raise IbtpoError(f"{name}: a value of a metric occurs twice; is an input listed twice?")
    last = frame.groupby(["method", "seed"])["step"].max()
    for (method, seed), step in last[last < last.max()].items():
        raise IbtpoError(f"no rows for {name}: missing {method}/{seed} after step {step} of {last.max()}; finish that run")
