"""From a cell of a table back to the artifacts behind it, and to the records of the jobs, runs, policies and data that made those.

All is read from files: the table's CSV, the sources beside it, the artifacts, and the records, on this machine or published. So the answer
is about that table, whatever the configuration says today.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from ibtpo import IbtpoError
from ibtpo.config.records import published, record
from ibtpo.io import sha256

EVERY_ROW = "p (Holm)"  # a column that is corrected over all rows
COMPARED = re.compile(r"(?: - | vs\. |ifference to )(.+?)(?:, Avg of the benchmarks)?$")  # of which row a column or a grid is relative
FOLDERS = ("published", "artifacts")
REPORTED = "printed by the paper (src/ibtpo/report/reported.yaml), not measured here"
SETTING = "a setting of the preset, not measured"


def trace(table: str | Path, row: str, column: str, grid: str = "") -> dict[str, Any]:
    """Origin of the cell at `row` and `column`, in every grid of the table whose label contains `grid`.

    cells: what the table says, and the artifacts of each cell; artifacts: where each lies, whether it is still what the table was made of,
    and the names of its records; records: by name, None where there is none on this machine and none published. Rows and columns are
    named as in the table, in any case. Raises IbtpoError for an unknown name (it says the known ones) or a damaged file.
    """
    path = Path(table).with_suffix(".csv")
    lines, made_of = _read(path)
    chosen = [line for line in lines if grid.lower() in line["grid"].lower()]
    if not chosen:
        raise IbtpoError(_unknown("grid", grid, [line["grid"] for line in lines]))
    for place, name in (("row", row), ("column", column)):
        found = [line for line in chosen if line[place].lower() == name.lower()]
        if not found:
            raise IbtpoError(_unknown(place, name, [line[place] for line in chosen]))
        chosen = found
    cells = [_cell(line, made_of["rows"], made_of["shared"]) for line in chosen]
    used = dict.fromkeys(name for cell in cells for name in cell["artifacts"])
    root = path.parent.parent
    artifacts = {name: _artifact(root, name, made_of["artifacts"][name]) for name in used}
    places = dict.fromkeys(place for artifact in artifacts.values() for place in artifact["made_by"])
    shipped = published(root)
    return {
        "table": str(path),
        "preset": made_of["preset"],
        "cells": cells,
        "artifacts": artifacts,
        "records": {place: record(root / place) or shipped.get(place) for place in places},
    }


def main(table: str, row: str, column: str, grid: str = "", as_json: bool = False) -> None:
    """Prints the origin of a cell as an indented tree, or as JSON."""
    found = trace(table, row, column, grid)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    found["records"] = {place: content or "no record here, and none published" for place, content in found["records"].items()}
    print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=200), end="")


def _read(path: Path) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """The lines of a table's CSV, and its sources."""
    sources = path.with_suffix(".sources.json")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        made_of = json.loads(sources.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise IbtpoError(f"there is no {error.filename}; make the table first: snakemake {path.stem}") from None
    except ValueError as error:
        raise IbtpoError(f"{path} or {sources.name} is damaged ({error}); make the table again") from None
    if not lines or not {"grid", "row", "column", "value", "reported"} <= set(lines[0]):
        raise IbtpoError(f"{path} is not a table of this project; give tables/<name>.csv")
    return lines, made_of


def _cell(line: dict[str, str], rows: dict[str, list[str]], shared: list[str]) -> dict[str, Any]:
    """What is written in a cell, and the artifacts behind it: those of its row, and of the rows it is compared with."""
    said = {key: value for key, value in line.items() if value}
    if not line["value"]:
        return said | {"origin": REPORTED, "artifacts": []}
    if not line["n_problems"]:
        return said | {"origin": SETTING, "artifacts": []}
    others = [found[1] for text in (line["column"], line["grid"]) if (found := COMPARED.search(text))]
    titles = list(rows) if line["column"] == EVERY_ROW else [line["row"], *others]
    return said | {"origin": "measured", "artifacts": list(dict.fromkeys(name for title in titles for name in rows.get(title, shared)))}


def _artifact(root: Path, name: str, known: dict[str, Any]) -> dict[str, Any]:
    """An artifact: the copy that still is what the table was made of, else any copy, else none."""
    copies = {str(path): sha256(path) for folder in FOLDERS if (path := root / folder / name).is_file()}
    same = [path for path, checksum in copies.items() if checksum == known["sha256"]]
    file = next(iter(same or copies), None)
    state = "as the table was made of it" if same else "changed since the table was made" if copies else "not on this machine"
    return {"file": file, "state": state, **known}


def _unknown(place: str, name: str, known: Iterable[str]) -> str:
    known = list(dict.fromkeys(known))
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"the table has no {place} {name!r}.{hint} Known: {'; '.join(known)}"
