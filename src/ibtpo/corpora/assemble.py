"""The problems of a real preset: parts of built data sets and of procedural tasks, in the schema and the files of the tiny world.

Two columns are added to the schema: `system`, the system prompt of a problem (paper, set-up: mathematics has one, the rest has not), and
`examples`, what the chat opens with (JSON list of pairs of prompt and response, or ""). No problem of one split is in another: a task is a
stream of different problems, and what validation takes of a set is not trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from ibtpo import io
from ibtpo.config.models import Config
from ibtpo.corpora.read import DataError
from ibtpo.verifiers import FAMILIES
from ibtpo.world import DELIMITER
from ibtpo.world.build import frame, streams

COLUMNS = ["uid", "source", "source_id", "family", "prompt", "answer", "metadata", "solution", "level", "subject", "system", "examples"]
Parts = dict[str, pd.DataFrame]  # problems by the name of their set or task


def build_training(config: Config, corpora: Sequence[str | Path], out_dir: str | Path) -> None:
    """Writes train and validation.parquet, and at last done.json. `corpora`: the built data sets, named by their files' stems.

    Raises DataError if one is missing or has fewer problems than are asked for, IbtpoError for a task that has too few.
    """
    chosen, sets, tasks = config.problems, _sets(corpora), _tasks(config)
    validation = _parts(chosen.validation, tasks["validation"], sets)
    held_out = pd.concat(validation.values())["uid"]
    rest = {name: part[~part["uid"].isin(held_out)] for name, part in sets.items()}
    train = _parts(chosen.train, tasks["train"], rest)
    _write(config, {"train": train, "validation": validation}, corpora, Path(out_dir))


def build_benchmarks(config: Config, corpora: Sequence[str | Path], out_dir: str | Path) -> None:
    """Writes benchmarks/<name>.parquet of each benchmark, and at last done.json. Raises as `build_training`.

    A data set with fewer problems than problems.benchmark is taken whole.
    """
    sets, most = _sets(corpora), config.problems.benchmark
    numbers = {name: min(most, len(sets[name])) if name in sets else most for name in config.evaluate.benchmarks}
    parts = _parts(numbers, _tasks(config)["benchmark"], sets)
    _write(config, {f"benchmarks/{name}": {name: part} for name, part in parts.items()}, corpora, Path(out_dir))


def _tasks(config: Config) -> dict[str, Parts]:
    """Problems of the tasks by split. All benchmarks are drawn first, so that which of them are used changes no other problem."""
    world, chosen, endless = config.world, config.problems, streams(config.world)
    shown = {name: [[one.prompt, DELIMITER.join(one.steps)] for one in islice(endless[name], chosen.shots)] for name in endless}
    opening = {name: json.dumps(examples) if examples else "" for name, examples in shown.items()}
    wanted = {"benchmark": dict.fromkeys(endless, chosen.benchmark), "validation": chosen.validation, "train": chosen.train}

    def take(split: str, name: str, number: int) -> pd.DataFrame:
        rows = list(islice(endless[name], number or getattr(world, split)))
        return frame(f"{name}-{split}", rows, solutions=False).assign(examples=opening[name])

    return {
        split: {name: take(split, name, number) for name, number in numbers.items() if name in endless} for split, numbers in wanted.items()
    }


def _sets(corpora: Sequence[str | Path]) -> Parts:
    return {Path(path).stem: io.read_parquet(path) for path in corpora}


def _parts(numbers: dict[str, int], tasks: Parts, sets: Parts) -> Parts:
    return {name: tasks[name] if name in tasks else _spread(sets, name, number) for name, number in numbers.items()}


def _spread(sets: Parts, name: str, number: int) -> pd.DataFrame:
    """`number` problems of a data set, evenly spaced over it; 0: all."""
    if name not in sets:
        raise DataError(f"the data set {name} is not among those given: build it first")
    part = sets[name]
    if number > len(part):
        raise DataError(f"{number:,} problems of {name} are asked for, but {len(part):,} are left: ask for fewer, or for 0 (all)")
    return part.iloc[np.linspace(0, len(part) - 1, number).round().astype(int)] if number else part


def _write(config: Config, files: dict[str, Parts], corpora: Sequence[str | Path], out_dir: Path) -> None:
    for file, parts in files.items():
        whole = pd.concat([part.assign(source=name) for name, part in parts.items()], ignore_index=True)
        whole["system"] = np.where(whole["family"].isin(("maths", *FAMILIES)), config.problems.system, "")
        whole = whole.reindex(columns=COLUMNS).fillna({"source_id": "", "subject": "", "examples": ""}).astype({"level": "Int64"})
        io.write_parquet(whole, out_dir / f"{file}.parquet")
    made_of = {Path(path).stem: io.sha256(path) for path in corpora}
    io.write_json(io.provenance(out_dir.name, config.world.seed) | {"corpora": made_of}, out_dir / "run.json")
    io.write_json({file: {name: len(part) for name, part in parts.items()} for file, parts in files.items()}, out_dir / "done.json")
