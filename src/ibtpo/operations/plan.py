"""The plan of a preset: jobs per rule, how many are still to be done, and what they cost by measurement or by the model of `cost`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ibtpo.config.models import Config
from ibtpo.operations.cost import work
from ibtpo.operations.text import aligned
from ibtpo.operations.workflow import Job, jobs

Parse = Callable[[Sequence[str]], dict[str, Any]]  # arguments of `python -m ibtpo` -> what they mean, "command" among them
HEADINGS = ("rule", "jobs", "to do", "hours a job", "device hours", "still to come", "from")
MEASURED, MODEL = "measured", "model"


@dataclass(frozen=True)
class Row:
    """A rule. hours: of one job, on average; total, waiting: device hours of all jobs and of those still to be done."""

    rule: str
    jobs: int
    to_do: int
    hours: float
    total: float
    waiting: float
    source: str


def plan(config: Config, found: Sequence[Job], parse: Parse) -> list[Row]:
    """One row a rule that runs a command, the dearest first. Times of jobs that ran before, anywhere in the rule, count for it."""
    rows = []
    for rule in dict.fromkeys(job.rule for job in found if job.arguments):
        own = [job for job in found if job.rule == rule]
        seconds = measured(own)
        each = [_cost(config, job, parse, mean(seconds) / 3600 if seconds else None) for job in own]
        hours, totals = [hours for hours, _ in each], [hours * devices for hours, devices in each]
        waiting = sum(total for job, total in zip(own, totals, strict=True) if job.waiting)
        to_do = sum(job.waiting for job in own)
        rows.append(Row(rule, len(own), to_do, mean(hours), sum(totals), waiting, MEASURED if seconds else MODEL))
    return sorted(rows, key=lambda row: -row.total)


def measured(own: Sequence[Job]) -> list[float]:
    """Seconds that jobs of one rule took before, on this machine, under whatever configuration."""
    folders = {job.benchmark.parent for job in own if job.benchmark}
    files = [file for folder in sorted(folders) for file in sorted(folder.glob("*.tsv"))]
    mine = [file for file in files if file in {job.benchmark for job in own}]
    return [time for file in mine or files if (time := _seconds(file)) is not None]


def _seconds(file: Path) -> float | None:
    """The run time in a benchmark file of Snakemake's; None if it is not whole."""
    head, *rows = file.read_text().splitlines() or [""]
    try:
        return mean(float(dict(zip(head.split("\t"), row.split("\t"), strict=True))["s"]) for row in rows)
    except (KeyError, ValueError):
        return None


def _cost(config: Config, job: Job, parse: Parse, known: float | None) -> tuple[float, int]:
    """Hours and devices of one job; a job that runs no policy takes no GPU."""
    arguments = parse(job.arguments)
    done = work(config, arguments.pop("command"), arguments)
    devices = done.devices if done else int(config.engine.device == "cpu")
    if known is not None:
        return known, devices
    return (done.hours(config) if done else config.plan.light_minutes / 60), devices


def table(config: Config, rows: Sequence[Row]) -> str:
    """The plan as text."""
    device = "GPU" if config.engine.device == "cuda" else "CPU"
    lines = [[heading.replace("device", device) for heading in HEADINGS]]
    for row in rows:
        numbers = [f"{number:,.2f}" for number in (row.hours, row.total, row.waiting)]
        lines.append([row.rule, str(row.jobs), str(row.to_do), *numbers, row.source])
    sums = [sum(row.jobs for row in rows), sum(row.to_do for row in rows)]
    lines.append(["total", *map(str, sums), "", *(f"{sum(v):,.2f}" for v in zip(*((r.total, r.waiting) for r in rows), strict=True)), ""])
    head, *body = aligned(lines, right=range(1, len(HEADINGS) - 1))
    return "\n".join([head, "-" * len(head), *body[:-1], "-" * len(head), body[-1]])


def main(config: Config, preset: str, overrides: dict[str, Any], target: str, parse: Parse) -> None:
    """Prints the plan of a target."""
    rows = plan(config, jobs(preset, overrides, target), parse)
    print(f"Preset {config.preset}, target {target}. Model and measurement: docs/cost-model.md.")
    print(table(config, rows) if rows else "Nothing runs.")
