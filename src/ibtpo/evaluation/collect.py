"""Sampling that survives a kill: finished units are kept in a JSONL beside the artifact, and a later call goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.io import append_jsonl, exclusive, read_jsonl, write_parquet, write_record

Unit = TypeVar("Unit")

RESPONSES = 4096  # between two writes: several times what an engine holds at once, so that it is seldom short of work


def collect(
    out: str | Path,
    units: Sequence[Unit],
    key: Callable[[Unit], str],
    run: Callable[[list[Unit]], list[list[dict]]],
    responses: int,
) -> None:
    """Calls `run` on chunks of `units` (it returns the rows of each unit) and writes all rows to `out` in the order of the units.

    `responses`: drawn for a unit; a chunk has about RESPONSES of them, and a kill loses at most one chunk. A unit is stored as one line,
    so it is there whole or not at all. What this call was made with goes into <artifact>.run.json. Raises IbtpoError if two keys are the
    same or another process collects for `out`.
    """
    out = Path(out)
    with exclusive(out):
        partial = out.with_name(f"{out.name}.partial.jsonl")
        keys = [key(unit) for unit in units]
        if len(set(keys)) != len(keys):
            raise IbtpoError(f"{out.name}: two units have the same key; rebuild the data")
        done = {line["key"]: line["rows"] for line in read_jsonl(partial)} if partial.exists() else {}
        todo = [unit for unit in units if key(unit) not in done]
        write_record(out)
        for part in _chunks(todo, max(1, RESPONSES // responses)):
            for unit, rows in zip(part, run(part), strict=True):
                rows = [{column: None if value != value else value for column, value in row.items()} for row in rows]  # JSON has no NaN
                append_jsonl({"key": key(unit), "rows": rows}, partial)
                done[key(unit)] = rows
        frame = pd.DataFrame([row for name in keys for row in done[name]])
        empty = frame.columns[frame.isna().all()]  # a column of None is one of NaN: a measure that no unit has
        write_parquet(frame.astype(dict.fromkeys(empty, float)), out)
        partial.unlink(missing_ok=True)


def _chunks(items: list[Unit], size: int) -> Iterator[list[Unit]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
