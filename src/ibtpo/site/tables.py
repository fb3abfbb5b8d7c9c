"""The page of all tables: every cell with its interval, its mark and what it counts, sortable by each column."""

from __future__ import annotations

from typing import Any

from ibtpo.report.table import Cell, Column, Grid
from ibtpo.report.wording import UNDECIDED
from ibtpo.site.files import downloads
from ibtpo.site.inputs import Inputs
from ibtpo.site.titles import MINUS, TIMES, lead, title

MARKS = {"higher": "▲", "lower": "▼", UNDECIDED: "○"}  # a sign for those who do not see the colour


def tables(inputs: Inputs) -> dict[str, Any]:
    """Headings, grids and files of each table, in the order of the registry."""
    shown = []
    for name, table in inputs.tables.items():
        about, rest = lead(table.caption)
        grids = [view(grid) for grid in table.grids]
        shown.append({"id": name, "title": title(name), "about": about, "notes": rest, "grids": grids, "files": downloads(inputs, name)})
    return {"tables": shown, "marks": MARKS}


def view(grid: Grid) -> dict[str, Any]:
    """Columns and rows as a template shows them. A column that also has values of the paper gets a neighbour for them."""
    columns = [part for column in grid.columns for part in _parts(grid, column)]
    heads = [{"name": column.name, "unit": column.unit, "reported": ours is _reported} for column, ours in columns]
    rows = [{"name": row, "cells": [show(grid.cells.get((row, column.name)), column) for column, show in columns]} for row in grid.rows]
    return {"label": grid.label, "stub": grid.stub, "columns": heads, "rows": rows}


def number(value: float, column: Column) -> str:
    """A value of the statistics in the unit and with the decimals of its column; a real minus sign."""
    return f"{value * column.scale:{'+' if column.signed else ''},.{column.decimals}f}".replace("-", MINUS)


def _parts(grid: Grid, column: Column) -> list[tuple[Column, Any]]:
    """Our values, the paper's, or both."""
    cells = [cell for row in grid.rows if (cell := grid.cells.get((row, column.name))) is not None]
    ours = any(cell.estimate is not None or cell.number is not None for cell in grid.cells.values())
    return [(column, _ours)] * ours + [(column, _reported)] * (not ours or any(cell.reported is not None for cell in cells))


def _ours(cell: Cell | None, column: Column) -> dict[str, Any]:
    value = None if cell is None else cell.number if cell.estimate is None else cell.estimate.value
    if value is None:
        return {}
    e = cell.estimate
    interval = f"{number(e.low, column)} to {number(e.high, column)}" if e else ""
    return {"text": number(value, column), "sort": value, "interval": interval, "note": cell.note, "counts": _counts(cell)}


def _reported(cell: Cell | None, column: Column) -> dict[str, Any]:
    if cell is None or cell.reported is None:
        return {}
    return {"text": f"{cell.reported:,.{column.decimals}f}", "sort": cell.reported, "interval": "", "note": "", "counts": ""}


def _counts(cell: Cell) -> str:
    named = {"problem": cell.problems, "sample": cell.samples, "seed": cell.seeds}
    return f" {TIMES} ".join(f"{count:,} {name}{'s' * (count != 1)}" for name, count in named.items() if count is not None)
