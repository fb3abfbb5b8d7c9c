"""Tables as text, for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of cells as lines of text in columns; those numbered in `right` are flush right."""
    columns = []
    for number, cells in enumerate(zip(*lines, strict=True)):
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if number in right else cell.ljust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
