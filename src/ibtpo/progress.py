"""Progress of long work: bar, ETA and tokens per second, on a terminal and (rarely refreshed) in a log file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

from tqdm import tqdm

BAR = re.compile(r"[^\r\n]*\d+%\|[^\r\n]*\]")
TAIL = 4096  # bytes of a log in which its newest bar is


def progress(title: str, total: int, unit: str, shown: bool = True) -> tqdm:
    """A bar that redraws ten times a second on a terminal and every ten seconds in a log."""
    pause = 0.1 if sys.stderr.isatty() else 10
    return tqdm(total=total, desc=title, unit=unit, mininterval=pause, dynamic_ncols=True, disable=not shown)


def relay(logs: Path, seconds: float | None = None) -> Event:
    """Starts a thread that prints the newest bar of each log below `logs`, every so many seconds, where it is a new one.

    The output of a job goes to its log. So this shows in one place what all jobs do, on whatever machines and in however many processes.
    seconds: default $IBTPO_PROGRESS or else 30; 0 turns it off. The event that is returned ends the thread.
    """
    seconds = float(os.environ.get("IBTPO_PROGRESS", 30)) if seconds is None else seconds
    seen, end = dict(_sizes(logs)), Event()

    def look() -> None:
        while not end.wait(seconds):
            for path, size in _sizes(logs):
                if seen.get(path) != size and (bar := newest_bar(path)):
                    print(f"{path.relative_to(logs).with_suffix('')}: {bar}", file=sys.stderr, flush=True)
                seen[path] = size

    if seconds > 0:
        Thread(target=look, name="progress of jobs", daemon=True).start()
    return end


def newest_bar(log: Path) -> str | None:
    """The last whole bar near the end of a log; None if there is none."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            bars = BAR.findall(file.read().decode(errors="ignore"))
    except OSError:  # moved or removed meanwhile
        return None
    return bars[-1].strip() if bars else None


def _sizes(logs: Path) -> Iterator[tuple[Path, int]]:
    for path in sorted(logs.rglob("*.log")):
        try:
            yield path, path.stat().st_size
        except OSError:
            continue
