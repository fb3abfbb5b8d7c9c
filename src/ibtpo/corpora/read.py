"""Raw files, row by row: JSONL, JSON, CSV and Parquet, whatever their size. A damaged file is told by file and line."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from ibtpo import IbtpoError
from ibtpo.io import sha256

ORIGIN = "origin.json"  # what fetch says about the files beside it
FORMATS = (".jsonl", ".json", ".csv", ".parquet")
Row = dict[str, Any]


class DataError(IbtpoError):
    """A data file that is missing, damaged, or not what it should be."""


def find(folder: Path, files: tuple[str, ...]) -> list[Path]:
    """The raw files in a folder: those named in `files` if all are there, else every data file in it (the same content, stored otherwise).

    A folder that is itself a file is that file. Raises DataError if there is nothing to read, or a named file is missing among others.
    """
    if folder.is_file():
        return [folder]
    named = [folder / file for file in files]
    present = [path for path in named if path.is_file()]
    if present:
        if len(present) < len(named):
            missing = next(path for path in named if path not in present)
            raise DataError(f"{missing} is missing, while {present[0].name} is there: fetch the data set again or complete the folder")
        return named
    others = sorted(path for path in folder.glob("*") if path.suffix in FORMATS and path.name != ORIGIN)
    if not others:
        raise DataError(f"{folder} holds no data ({', '.join(files)}): fetch it, or point data_root to a folder that has it")
    return others


def check_sums(paths: list[Path], folder: Path, sums: dict[str, str]) -> dict[str, str]:
    """The SHA-256 of each file, by its path relative to the folder, compared with `sums` and with what fetch recorded.

    Raises DataError for a file that differs.
    """
    origin = folder / ORIGIN
    recorded = json.loads(origin.read_text(encoding="utf-8"))["sha256"] if origin.is_file() else {}
    found = {}
    for path in paths:
        name = path.relative_to(folder).as_posix() if path != folder else path.name
        found[name] = sha256(path)
        for digest, where in ((sums.get(name), "the settings"), (recorded.get(name), f"{origin}")):
            if digest and digest != found[name]:
                raise DataError(
                    f"{path} has the checksum {found[name][:16]}..., but {where} say {digest[:16]}...: "
                    "fetch it again, or correct the checksum if another version is meant"
                )
    return found


def rows(path: Path, columns: Set[str] | None = None) -> Iterator[tuple[int, Row]]:
    """(line, row) of a file; the line counts from 1, in Parquet and JSON it is the number of the row.

    columns: all that is wanted; Parquet reads no other ones.

    Raises DataError naming file and line if a row cannot be read.
    """
    reader = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}.get(path.suffix)
    if reader is None:
        raise DataError(f"{path}: cannot read a {path.suffix or 'file without a suffix'}; use one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise DataError(f"{path} does not exist: fetch the data set, or point data_root to a folder that has it")
    return reader(path, columns) if reader is _parquet else reader(path)


def _jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number} is not JSON ({error}): the file is damaged, fetch it again") from None
            yield number, _object(row, path, number)


def _json(path: Path) -> Iterator[tuple[int, Row]]:
    """A list of objects, or JSONL under another name."""
    with open(path, "rb") as file:
        head = file.read(64).lstrip()
    if head[:1] != b"[":
        yield from _jsonl(path)
        return
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): the file is damaged, fetch it again") from None
    for number, row in enumerate(content, start=1):
        yield number, _object(row, path, number)


def _csv(path: Path) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(sys.maxsize)
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(f"{path}, line {reader.line_num} has another number of fields than the header: fetch it again")
                yield reader.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{path}, line {reader.line_num + 1} is not CSV ({error}): the file is damaged, fetch it again") from None


def _parquet(path: Path, columns: Set[str] | None) -> Iterator[tuple[int, Row]]:
    import pyarrow.parquet as pq

    number = 0
    try:
        file = pq.ParquetFile(path)
        wanted = [name for name in file.schema_arrow.names if columns is None or name in columns]
        for batch in file.iter_batches(batch_size=4096, columns=wanted):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise DataError(f"{path}, row {number + 1} cannot be read ({error}): the file is damaged, fetch it again") from None


def _object(row: Any, path: Path, number: int) -> Row:
    if not isinstance(row, dict):
        raise DataError(f"{path}, line {number} is a {type(row).__name__}, not an object with columns: fetch it again")
    return row
