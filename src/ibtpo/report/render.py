"""Formats of a table: Markdown, LaTeX (booktabs) and tidy CSV. Equal tables give equal text; names are escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from ibtpo.report.table import Cell, Column, Grid, Table

CSV_COLUMNS = ("grid", "row", "column", "unit", "value", "low", "high", "se_problems", "se_seeds")
CSV_COLUMNS += ("n_problems", "n_samples", "n_seeds", "reported", "note")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$#])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LATEX = {c: rf"\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}


def markdown(table: Table) -> str:
    blocks = []
    for grid in table.grids:
        rows = _texts(grid, _escape_markdown)
        widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
        rows = [[text.rjust(w) if i else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))] for row in rows]
        rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
        blocks.append(f"**{_escape_markdown(grid.label)}**\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]))
    return "\n\n".join([*blocks, _escape_markdown(table.caption)]) + "\n"


def latex(table: Table) -> str:
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering\footnotesize", rf"\caption{{{_escape_latex(table.caption)}}}"]
    lines.append(rf"\label{{tab:{table.name}}}")
    for number, grid in enumerate(table.grids):
        head, *rows = _texts(grid, _escape_latex)
        lines += [r"\par\medskip" if number else r"\par", rf"\textit{{{_escape_latex(grid.label)}}}\par\smallskip"]
        lines += [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
        lines += [" & ".join([row[0], *map(_minus, row[1:])]) + r" \\" for row in rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def tidy_csv(table: Table) -> str:
    """One line a cell, in the unit of its column; standard errors that one seed or one problem cannot show are "n/a"."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for grid in table.grids:
        for row in grid.rows:
            for column in grid.columns:
                cell = grid.cells.get((row, column.name))
                if cell is not None:
                    writer.writerow([grid.label, row, column.name, column.unit, *_numbers(cell, column), cell.note])
    return out.getvalue()


def _numbers(cell: Cell, column: Column) -> list[str | int]:
    def shown(value: float | None, absent: str) -> str:
        return absent if value is None else f"{value * column.scale:.{column.decimals + 3}f}"

    e = cell.estimate
    ours = [shown(cell.number, ""), *[""] * 4]
    if e is not None:
        ours = [shown(e.value, ""), shown(e.low, ""), shown(e.high, ""), shown(e.se_problems, "n/a"), shown(e.se_seeds, "n/a")]
    counts = ["" if count is None else count for count in (cell.problems, cell.samples, cell.seeds)]
    return [*ours, *counts, "" if cell.reported is None else f"{cell.reported:.{column.decimals}f}"]


def _texts(grid: Grid, escape: Callable[[str], str]) -> list[list[str]]:
    """Heading and rows as text. A column that also has values of the paper gets a neighbour that says "reported"."""
    head, rows = [escape(grid.stub)], [[escape(row)] for row in grid.rows]
    only_reported = all(cell.estimate is None and cell.number is None for cell in grid.cells.values())
    for column in grid.columns:
        cells = [grid.cells.get((row, column.name), Cell()) for row in grid.rows]
        name = escape(f"{column.name}, {column.unit}" if column.unit else column.name)
        if not only_reported:
            head.append(name)
            for row, cell in zip(rows, cells, strict=True):
                row.append(_ours(cell, column, escape))
        if only_reported or any(cell.reported is not None for cell in cells):
            head.append(name if only_reported else "reported")
            for row, cell in zip(rows, cells, strict=True):
                row.append("" if cell.reported is None else f"{cell.reported:,.{column.decimals}f}")
    return [head, *rows]


def _ours(cell: Cell, column: Column, escape: Callable[[str], str]) -> str:
    e = cell.estimate
    if e is None:
        return "" if cell.number is None else f"{cell.number * column.scale:,.{column.decimals}f}"
    sign = "+" if column.signed else ""
    value, low, high = (f"{x * column.scale:{sign},.{column.decimals}f}" for x in (e.value, e.low, e.high))
    return f"{value} [{low}, {high}]" + (f" {escape(cell.note)}" if cell.note else "")


def _escape_markdown(text: str) -> str:
    text = _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
    return re.sub("[&<>]", lambda match: _HTML[match[0]], text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _minus(text: str) -> str:
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", text)
