"""The page of all figures: the lines of each drawing as data for an interactive chart, beside the static files.

What a chart shows is read off the drawing itself, so that both tell the same, and a new figure is interactive without a line of code.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FuncFormatter

from ibtpo.report.curves import COLOURS
from ibtpo.site.files import downloads
from ibtpo.site.inputs import Inputs
from ibtpo.site.titles import lead, title

MATH = {r"\eta": "η", r"\beta": "β", r"\lambda": "λ", "_1": "₁", "_2": "₂", "_0": "₀"}
DIGITS = 5  # of a number in the page


def figures(inputs: Inputs) -> dict[str, Any]:
    shown, charts = [], {}
    for name, (figure, caption) in inputs.figures.items():
        about, rest = lead(caption)
        files = downloads(inputs, name)
        image = next(file["href"] for file in files if file["format"] == "svg")
        shown.append({"id": name, "title": title(name), "about": about, "notes": rest, "files": files, "image": image})
        charts[name] = chart(figure)
    return {"figures": shown, "data": charts}


def chart(figure: Figure) -> dict[str, Any]:
    """Panels and legend of a drawing of `report.curves`, as plain data."""
    axes = [axis for axis in figure.axes if axis.axison]
    legends = [legend for legend in (*figure.legends, *(axis.get_legend() for axis in figure.axes)) if legend is not None]
    entries = [pair for legend in legends for pair in zip(legend.legend_handles, legend.texts, strict=True)]
    named = [{"series": series(handle), "title": plain(text.get_text())} for handle, text in entries]
    return {"panels": [_panel(axis) for axis in axes], "legend": named}


def series(line: Line2D) -> int | None:
    """Place of a line's colour among those of the methods; -1 for the base policy; None for a line that is no method's."""
    colour = line.get_color()
    if colour in COLOURS:
        return COLOURS.index(colour)
    return -1 if colour == "0.35" else None


def plain(text: str) -> str:
    """A label without the mark-up of formulas: `$\\eta_1$` is η₁, `\\$` a dollar."""

    def formula(match: re.Match) -> str:
        inside = match[1]
        for command, sign in MATH.items():
            inside = inside.replace(command, sign)
        return inside

    return re.sub(r"(?<!\\)\$(.*?)(?<!\\)\$", formula, text).replace(r"\$", "$")


def _panel(axis: Axes) -> dict[str, Any]:
    rows, named = {}, axis.yaxis.get_major_formatter()
    if isinstance(named, FixedFormatter | FuncFormatter):  # names instead of a scale
        rows = {plain(named(place, number)): float(place) for number, place in enumerate(axis.get_yticks())}
    bands = [_band(shape) for shape in axis.collections if isinstance(shape, PolyCollection)]
    lines = [_line(line) for line in axis.lines]
    owners = [line["series"] for line in lines if line["series"] is not None]
    for band, owner in zip(bands, owners, strict=False):  # `curves.bands` draws the band of a line just before it
        band["series"] = owner
    return {
        "title": plain(axis.get_title(loc="left")),
        "x": plain(axis.get_xlabel()),
        "log": axis.get_xscale() == "log",
        "log_y": axis.get_yscale() == "log",
        "rows": rows,
        "lines": lines,
        "bands": bands,
    }


def _line(line: Line2D) -> dict[str, Any]:
    """x and y of a line; a rule across the panel has two points, one of them on the axis."""
    marker = {"o": 9, ".": 5}.get(str(line.get_marker()), 0)
    dashed = line.is_dashed()
    return {"series": series(line), "x": _numbers(line.get_xdata()), "y": _numbers(line.get_ydata()), "marker": marker, "dashed": dashed}


def _band(shape: PolyCollection) -> dict[str, Any]:
    vertices = np.concatenate([path.vertices for path in shape.get_paths()]) if shape.get_paths() else np.empty((0, 2))
    places = np.unique(vertices[:, 0])
    sides = [vertices[vertices[:, 0] == x, 1] for x in places]
    return {"x": _numbers(places), "low": _numbers([y.min() for y in sides]), "high": _numbers([y.max() for y in sides])}


def _numbers(values) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float)]
