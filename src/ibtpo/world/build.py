"""Data of the tiny world: supervised, training and validation splits and the benchmarks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from ibtpo import IbtpoError, io
from ibtpo.config.models import Config, World
from ibtpo.world import FAMILIES, Problem, problems


def main(config: Config, out_dir: str | Path) -> None:
    """Writes sft, train and validation.parquet, benchmarks/<task>.parquet and at last done.json into `out_dir`.

    Each task of the config is one stream of different problems and every split takes its own stretch of it: no problem occurs twice,
    in a split or across splits. Rows as in docs/architecture.md; only sft has solutions. The same seed gives the same bytes.
    Raises IbtpoError for a family that does not exist or has too few problems.
    """
    world, out_dir, endless = config.world, Path(out_dir), streams(config.world)
    benchmarks = {task: _take(endless, {task: 1.0}, world.benchmark) for task in endless}
    even = {task: 1 / len(world.in_domain) for task in world.in_domain}
    rare = {task: world.rare_share for task in world.out_of_domain}
    common = {task: share * (1 - sum(rare.values())) for task, share in even.items()}
    splits = {
        "validation": _take(endless, even, world.validation),
        "train": _take(endless, even, world.train),
        "sft": _careless(_take(endless, {**common, **rare}, world.supervised), world),
    }
    for name, rows in benchmarks.items():
        io.write_parquet(frame(name, rows, solutions=False), out_dir / "benchmarks" / f"{name}.parquet")
    for name, rows in splits.items():
        Random(f"{world.seed}/{name}").shuffle(rows)
        io.write_parquet(frame(name, rows, solutions=name == "sft"), out_dir / f"{name}.parquet")
    io.write_json(io.provenance(out_dir.name, world.seed), out_dir / "run.json")
    io.write_json({name: len(rows) for name, rows in {**benchmarks, **splits}.items()}, out_dir / "done.json")


def streams(world: World) -> dict[str, Iterator[Problem]]:
    """The problems of every task, an endless stream each. Raises IbtpoError as `stream` does."""
    seen: dict[str, set] = defaultdict(set)
    tasks = {**world.in_domain, **world.out_of_domain}
    return {task: stream(task, options, world.seed, world.max_steps, seen) for task, options in tasks.items()}


def stream(task: str, options: dict[str, Any], seed: int, max_steps: int, seen: dict[str, set] | None = None) -> Iterator[Problem]:
    """Problems of a task: a family with its options. The option `family` names it if the task has a name of its own.

    seen: keys of the problems that are taken, by family; tasks that share it have no problem in common.
    """
    family = options.get("family", task)
    if family not in FAMILIES:
        raise IbtpoError(f"world: no family {family!r}; known: {', '.join(FAMILIES)}")
    options = {key: value for key, value in options.items() if key != "family"}
    return problems(FAMILIES[family], options, seed, max_steps, seen[family] if seen is not None else None)


def _take(streams: dict[str, Iterator[Problem]], shares: dict[str, float], total: int) -> list[Problem]:
    """`total` problems, each task's number rounded from its share, the last one gets the rest."""
    *tasks, last = shares
    counts = {task: round(shares[task] * total) for task in tasks}
    counts[last] = total - sum(counts.values())
    return [problem for task, number in counts.items() for problem in islice(streams[task], number)]


def _careless(rows: list[Problem], world: World) -> list[Problem]:
    """The same problems with solutions by the careless demonstrator, where the family has one."""
    rng = Random(f"{world.seed}/slips")

    def solve(row: Problem) -> Problem:
        careless = FAMILIES[row.family].careless
        if careless is None:
            return row
        return replace(row, steps=tuple(careless(json.loads(row.metadata), world.rough_rate, world.slip_rate, rng)))

    return [solve(row) for row in rows]


def frame(split: str, rows: list[Problem], solutions: bool) -> pd.DataFrame:
    """Problems in the schema; `split` begins their uids."""
    table = pd.DataFrame(map(asdict, rows))
    table.insert(0, "uid", [f"{split}-{number:05d}" for number in range(len(rows))])
    table["solution"] = [json.dumps(row.steps) if solutions else "" for row in rows]
    return table.drop(columns="steps")
