"""What is known of a run from its run.json and metrics.jsonl, whatever became of its process."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.io import read_jsonl

RECENT = 8  # iterations whose speed tells how long the rest will take
PATIENCE = 5  # a run is quiet after so many times the seconds of an iteration ...
LEAST = 120.0  # ... and at least these


@dataclass(frozen=True)
class Run:
    """One run. rows: of metrics.jsonl; silence: seconds since anything was written."""

    folder: Path
    title: str
    total: int
    rows: list[dict]
    silence: float

    @property
    def done(self) -> int:
        """Iterations that are finished."""
        return max((row["step"] for row in self.rows if "train/loss" in row), default=0)

    @property
    def finished(self) -> bool:
        return self.done >= self.total

    @property
    def pace(self) -> float | None:
        """Seconds of an iteration lately, its share of the validations included; None before the first."""
        if not self.done:
            return None
        spent = [_seconds(row) for row in self.rows if row["step"] > self.done - RECENT]
        return sum(spent) / min(RECENT, self.done)

    @property
    def elapsed(self) -> float:
        """Seconds of work in all rows; without start-up and waiting."""
        return sum(map(_seconds, self.rows))

    @property
    def remaining(self) -> float | None:
        """Seconds to go, at the recent pace."""
        return None if self.pace is None else (self.total - self.done) * self.pace

    @property
    def state(self) -> str:
        """finished, waiting (for the first row), training, or quiet: nothing was written for so long that it may have been killed."""
        if self.finished:
            return "finished"
        if self.silence > max(LEAST, PATIENCE * (self.pace or 0.0)):
            return "quiet"
        return "training" if self.done else "waiting"

    def series(self, metric: str) -> list[float]:
        """All values of a metric, in order of steps. `tokens/s` is made from others."""
        if metric == "tokens/s":
            return [row["train/tokens"] / row["seconds/rollout"] for row in self.rows if row.get("seconds/rollout")]
        return [row[metric] for row in self.rows if row.get(metric) is not None]


def read(folder: Path) -> Run:
    """A torn last line is left out. Raises IbtpoError, naming the file, if it is no run.json or a whole line of the log is not JSON."""
    description, log = folder / "run.json", folder / "metrics.jsonl"
    try:
        about = json.loads(description.read_text(encoding="utf-8"))
        title, total = f"{about['method']['title']} seed {about['seed']}", about["train"]["iterations"]
    except (ValueError, KeyError, TypeError) as error:
        raise IbtpoError(f"{description} does not describe a training run ({error!r}); it is written by `python -m ibtpo train`") from error
    rows = read_jsonl(log, repair=False) if log.is_file() else []
    latest = max(path.stat().st_mtime for path in (description, log) if path.is_file())
    return Run(folder, title, total, sorted(rows, key=lambda row: row["step"]), max(0.0, time.time() - latest))


def sparkline(values: Sequence[float], width: int) -> str:
    """Bars from the least to the largest value; several values share a bar where there is no room."""
    count = min(width, len(values))
    parts = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
    means = [sum(part) / len(part) for part in parts]
    low, high = min(means, default=0.0), max(means, default=0.0)
    scale = 7 / (high - low) if high > low else 0.0
    return "".join("▁▂▃▄▅▆▇█"[round((mean - low) * scale)] for mean in means)


def _seconds(row: dict) -> float:
    return sum(value for name, value in row.items() if name.startswith("seconds/") and value)
