"""Headings of tables and figures, made from their names and captions; signs."""

from __future__ import annotations

import re

MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"  # as they are printed
NAMED = {"studies": "Estimator studies", "ibscore": "Offline IB-Score", "ibscores": "Offline IB-Score"}
NUMBERED = (("table", "Table"), ("figure", "Figure"), ("erpo", "ERPO, Table"))


def title(name: str) -> str:
    """ "Table 1" for table1, "ERPO, Table 2" for erpo2; a name without a number as it is said in words."""
    for prefix, words in NUMBERED:
        if match := re.fullmatch(rf"{prefix}(\d+)", name):
            return f"{words} {match[1]}"
    return NAMED.get(name, name.capitalize())


def lead(caption: str) -> tuple[str, str]:
    """First sentence of a caption, without its full stop, and the rest."""
    first, _, rest = caption.partition(". ")
    return first.rstrip("."), rest
