"""Progress of long work: bar, ETA and tokens per second, on a terminal and (rarely refreshed) in a log file."""

from __future__ import annotations

import sys

from tqdm import tqdm


def progress(title: str, total: int, unit: str) -> tqdm:
    """A bar that redraws ten times a second on a terminal and every ten seconds in a log."""
    return tqdm(total=total, desc=title, unit=unit, mininterval=0.1 if sys.stderr.isatty() else 10, dynamic_ncols=True)
