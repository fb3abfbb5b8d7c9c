"""Builders: raw files of a data set -> a problem set (Parquet) and a report (JSON, and Markdown to read).

Columns: uid, source, source_id (the publisher's), family (how answers are verified), prompt, answer ("" where metadata decides), metadata
(JSON text for the verifier), solution (JSON list with the publisher's, or ""), level (1-5 or null), subject. Rows stay in their order.
A benchmark is never changed; of training data see clean.py. The same raw files and settings give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ibtpo import io
from ibtpo.config.corpora import Corpora, Source
from ibtpo.config.load import ConfigError
from ibtpo.corpora import read
from ibtpo.corpora.clean import Cleaner, clean
from ibtpo.corpora.gold import Gold, unverified
from ibtpo.corpora.layouts import COLUMNS, Item, Layout, layout, nearest
from ibtpo.corpora.read import DataError
from ibtpo.corpora.report import markdown


def build_benchmark(settings: Corpora, name: str, out: str | Path, gold: Gold | None = None) -> None:
    """Reads and checks a benchmark and writes it with its report (`out` with .json and .md). Raises DataError or ConfigError."""
    items, found = load(settings, name, "benchmark")
    kind = settings.sources[name].kind
    run = Cleaner(items, settings.cleaning.examples)
    run.remove("gold", "the gold answer does not verify against itself", unverified(run.items, kind, settings.cleaning, gold))
    _finish(settings, name, run, found, None, out)


def build_corpus(settings: Corpora, name: str, benchmarks: Sequence[str | Path], out: str | Path, gold: Gold | None = None) -> None:
    """Reads, checks and cleans training data and writes it with its report. `benchmarks` are built ones, named by their files' stems.

    Raises DataError if a benchmark that the settings ask for is not among them, or nothing is left.
    """
    kind, wanted = _source(settings, name, "training").kind, settings.checked
    paths = {Path(path).stem: Path(path) for path in benchmarks}
    if missing := [benchmark for benchmark in wanted if benchmark not in paths]:
        raise DataError(f"{name} is to be checked against {', '.join(missing)}: build that first, or leave it out of 'against'")
    items, found = load(settings, name, "training")
    against = {benchmark: _read_items(paths[benchmark]) for benchmark in wanted}
    run, table = clean(items, kind, settings.cleaning, against, gold)
    _finish(settings, name, run, found, table, out)


def load(settings: Corpora, name: str, role: str) -> tuple[list[Item], dict[str, Any]]:
    """The problems of a data set, each once if its rows repeat, and where they come from (files, checksums, numbers of rows)."""
    source, folder = _source(settings, name, role), settings.folder(name)
    paths = read.find(folder, source.files)
    sums = read.check_sums(paths, folder, source.sha256)
    items: list[Item] = []
    seen: set[tuple[str, str]] = set()
    total = count = 0
    for path in paths:
        known: Layout | None = None
        for line, row in read.rows(path, COLUMNS | source.where.keys()):
            number, total = total, total + 1
            if not _chosen(source, row, path, line):
                continue
            count += 1
            known = known or _layout(source, row, path, line)
            item = _convert(known, row, path, line)
            if (item.prompt, item.answer) not in seen or role == "benchmark":
                seen.add((item.prompt, item.answer))
                item.uid = f"{name}-{number:05d}"
                items.append(item)
    if source.rows and count not in source.rows:
        right = " or ".join(f"{rows:,}" for rows in source.rows)
        raise DataError(f"{paths[0]}: {count:,} rows of {name}, not {right}: fetch it again, or correct 'rows' if another version is meant")
    kept = [item for item in items if not source.levels or item.level in source.levels]
    if not kept:
        chosen = f"where {dict(source.where)}, levels {list(source.levels)}"
        raise DataError(f"{paths[0]}: no problem of {name} is left of {total:,} rows ({chosen}): correct those in the settings")
    numbers = {"rows": total, "repeated": count - len(items), "other_level": len(items) - len(kept)}
    return kept, {"files": sums, "revision": _revision(folder, source), **numbers}


def _source(settings: Corpora, name: str, role: str) -> Source:
    """The data set of a name. Raises ConfigError if there is none, or it has another role."""
    known = settings.trainings if role == "training" else settings.benchmarks
    if name not in known:
        raise ConfigError(f"there is no {role} data set {name!r}. Known: {', '.join(known) or 'none'}.")
    return settings.sources[name]


def _chosen(source: Source, row: dict[str, Any], path: Path, line: int) -> bool:
    if missing := source.where.keys() - row.keys():
        raise DataError(f"{path}, line {line} lacks the column(s) {', '.join(sorted(missing))} of 'where': correct that in the settings")
    return all(str(row[column]) == str(value) for column, value in source.where.items())


def _layout(source: Source, row: dict[str, Any], path: Path, line: int) -> Layout:
    found = layout(source.kind, set(row))
    if found is None:
        missing, there = ", ".join(nearest(source.kind, set(row))), ", ".join(row) or "none"
        remedy = "fetch it again" if source.hub else "rename its columns"
        raise DataError(f"{path}, line {line} lacks the column(s) {missing} of {source.kind} problems; it has {there}: {remedy}")
    return found


def _convert(known: Layout, row: dict[str, Any], path: Path, line: int) -> Item:
    if missing := known.columns - row.keys():
        raise DataError(f"{path}, line {line} lacks the column(s) {', '.join(sorted(missing))} that the first row has: fetch it again")
    try:
        return known.convert(row)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError(
            f"{path}, line {line} is no problem ({type(error).__name__}: {error}): fetch it again, or take the row out"
        ) from None


def _revision(folder: Path, source: Source) -> str:
    origin = folder / read.ORIGIN
    return json.loads(origin.read_text(encoding="utf-8"))["revision"] if origin.is_file() else f"local copy of {source.revision}"


def _finish(settings: Corpora, name: str, run: Cleaner, found: dict[str, Any], table: list[dict[str, Any]] | None, out: str | Path) -> None:
    """Writes the report, then the problems: whoever sees the problems can read how they came about."""
    source, out = settings.sources[name], Path(out)
    if not run.items:
        worst = max(run.steps, key=lambda step: step.removed)
        raise DataError(
            f"{settings.folder(name)}: nothing of {name} is left; the step {worst.name!r} ({worst.meaning}) removed {worst.removed:,} of "
            f"{worst.before:,}: relax it in the settings, or check the data"
        )
    report = {
        "source": name,
        **source.model_dump(include={"title", "role", "kind", "hub", "licence"}),
        **found,
        "cleaning": settings.cleaning.model_dump(),
        "steps": [asdict(step) for step in run.steps],
        "contamination": table,
        "written": len(run.items),
    }
    io.write_json(report, out.with_suffix(".json"))
    io.write_text(markdown(report), out.with_suffix(".md"))
    io.write_parquet(frame(run.items, name, source.kind), out)


def frame(items: list[Item], name: str, kind: str) -> pd.DataFrame:
    """The problems in the schema."""
    rows = [
        {
            "uid": item.uid,
            "source": name,
            "source_id": item.source_id,
            "family": kind,
            "prompt": item.prompt,
            "answer": item.answer,
            "metadata": json.dumps(item.metadata, ensure_ascii=False),
            "solution": json.dumps([item.solution], ensure_ascii=False) if item.solution else "",
            "level": item.level,
            "subject": item.subject,
        }
        for item in items
    ]
    return pd.DataFrame(rows).astype({"level": "Int64"})


def _read_items(path: Path) -> list[Item]:
    """A built benchmark, as far as copies of it are looked for."""
    built = io.read_parquet(path)
    if missing := {"uid", "prompt", "answer"} - set(built.columns):
        raise DataError(f"{path} lacks the column(s) {', '.join(sorted(missing))}: build the benchmark again")
    return [Item(row.prompt, row.answer, uid=row.uid) for row in built.itertuples()]
