"""A running training, seen in the terminal: it only reads run.json and metrics.jsonl, so it can start and stop at any time."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from ibtpo import IbtpoError
from ibtpo.watch.run import Run, read
from ibtpo.watch.screen import frame


def main(folder: str | Path, once: bool = False, every: float = 2.0) -> None:
    """Shows a run, or all runs of a folder as rows, until all are finished or Ctrl-C. once, or no terminal: a single frame.

    every: seconds between frames. Raises IbtpoError if there is no run, or one whose files cannot be read.
    """
    console, runs = Console(), found(Path(folder))
    if once or not console.is_terminal:
        console.print(frame(runs))
        return
    try:
        with Live(frame(runs), console=console, auto_refresh=False) as live:
            while not all(run.finished for run in runs):
                time.sleep(every)
                runs = found(Path(folder))
                live.update(frame(runs), refresh=True)
    except KeyboardInterrupt:
        console.show_cursor()  # Live does not if it was still starting


def found(folder: Path) -> list[Run]:
    """The run in a folder, or the runs in its sub-folders, by name."""
    folders = [folder] if (folder / "run.json").is_file() else sorted(path.parent for path in folder.glob("*/run.json"))
    if not folders:
        raise IbtpoError(f"{folder} holds no run: give the folder of a run (it has a run.json) or one with such folders in it")
    return [read(path) for path in folders]
