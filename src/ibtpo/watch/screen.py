"""The frame that is shown: one run with its curves, or several runs as rows."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ibtpo.watch.run import Run, sparkline

METRICS = {  # name: (metric, format)
    "reward": ("train/reward", ".3f"),
    "Eff-Rate": ("train/eff_rate", ".2f"),
    "held-out": ("validation/accuracy", ".3f"),
    "Cov": ("train/covariance", ".4f"),
    "IB-Score": ("train/ib_score", ".3f"),
    "entropy": ("train/entropy", ".3f"),
    "KL": ("train/kl", ".5f"),
    "length": ("train/response_length", ".0f"),
    "tokens/s": ("tokens/s", ",.0f"),
}
BRIEF = ("reward", "Eff-Rate", "held-out", "Cov", "tokens/s")  # columns where there are several runs
COLOURS = {"finished": "green", "training": "cyan", "waiting": "yellow", "quiet": "red"}


def frame(runs: list[Run]) -> RenderableType:
    return _one(runs[0]) if len(runs) == 1 else _several(runs)


def _one(run: Run) -> RenderableType:
    head = Table.grid(padding=(0, 2))
    head.add_row(Text(run.title, "bold"), _state(run), Text(str(run.folder), "dim"))
    work = Table.grid(padding=(0, 2))
    news = "" if run.finished else f"news {_time(run.silence)} ago"
    work.add_row(ProgressBar(run.total, run.done, width=24), f"{run.done}/{run.total} iterations", f"{_time(run.elapsed)} of work", news)
    table = _table("", "now", "first", "least", "most", "over training")
    for name, (metric, style) in METRICS.items():
        if values := run.series(metric):
            cells = (format(value, style) for value in (values[-1], values[0], min(values), max(values)))
            table.add_row(name, *cells, sparkline(values, 30))
    return Group(head, work, table) if run.rows else Group(head, work)


def _several(runs: list[Run]) -> RenderableType:
    table = _table("run", "done", *BRIEF, "reward", "state")
    for run in runs:
        shown = [(run.series(metric), style) for metric, style in (METRICS[name] for name in BRIEF)]
        cells = [format(values[-1], style) if values else "" for values, style in shown]
        table.add_row(run.title, f"{run.done}/{run.total}", *cells, sparkline(run.series("train/reward"), 8), _state(run))
    return table


def _table(*columns: str) -> Table:
    """The first and the last column are words, those between numbers."""
    table = Table(box=box.SIMPLE_HEAD, padding=0, collapse_padding=True)
    for name in columns:
        table.add_column(name, justify="left" if name in (columns[0], columns[-1]) else "right", no_wrap=True)
    return table


def _state(run: Run) -> Text:
    text = run.state
    if text == "quiet":
        text = f"no news for {_time(run.silence)}"
    if text == "training":
        text = f"{_time(run.remaining)} to go"
    return Text(text, COLOURS[run.state])


def _time(seconds: float) -> str:
    """Two digits are enough: 8 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
