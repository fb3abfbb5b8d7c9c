"""`python -m ibtpo score FILE.jsonl --out OUT.jsonl`: scores rows {gold, pred, kind}; any other keys are kept.

Rows are written as they come, with `correct` (true, false, or null where the verifier failed) and `status`, to OUT.jsonl.part, which
becomes OUT.jsonl at the end. A run that was stopped goes on where it was; an OUT.jsonl is never overwritten.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.progress import progress
from ibtpo.verifiers import score_all

_KEYS = ("gold", "pred", "kind")


def main(file: str, out: str) -> None:
    """Scores `file` into `out` and prints a table of statuses. Raises IbtpoError naming file, line and remedy; OSError."""
    source, target = Path(file), Path(out)
    part = target.with_name(target.name + ".part")
    if target.exists():
        raise IbtpoError(f"{target} exists already; delete it or give another --out")
    target.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter = Counter()
    done = _done(source, part, counts)
    with open(part, "a", encoding="utf-8") as sink, progress("score", sum(1 for _ in _rows(source)), "row") as bar:
        bar.update(done)
        for row in _scored(source, done):
            sink.write(json.dumps(row, ensure_ascii=False) + "\n")
            _count(counts, row)
            bar.update()
        sink.flush()
        os.fsync(sink.fileno())
    os.replace(part, target)
    print(table(counts))


def table(counts: Counter) -> str:
    """Rows for each (kind, status): how many, how many of them correct, their share of the kind."""
    kinds = Counter()
    for (kind, _, _), n in counts.items():
        kinds[kind] += n
    lines = [f"{'kind':14} {'status':14} {'rows':>8} {'correct':>8} {'share':>7}"]
    for kind, status in sorted({(kind, status) for kind, status, _ in counts}):
        rows, correct = sum(counts[kind, status, c] for c in (True, False, None)), counts[kind, status, True]
        lines.append(f"{kind:14} {status:14} {rows:8d} {correct:8d} {rows / kinds[kind]:7.1%}")
    correct = sum(n for (_, _, right), n in counts.items() if right)
    return "\n".join([*lines, f"{'all':14} {'':14} {sum(kinds.values()):8d} {correct:8d}"])


def _rows(source: Path) -> Iterator[tuple[int, dict]]:
    """Line number and row of each line that is not blank."""
    if not source.is_file():
        raise IbtpoError(f"no such file: {source}")
    empty = True
    with open(source, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                empty = False
                yield number, _row(line, f"{source}, line {number}")
    if empty:
        raise IbtpoError(f"{source} holds no rows; each line must be an object with the keys {', '.join(_KEYS)}")


def _row(line: str, where: str) -> dict:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise IbtpoError(f"{where} is not JSON ({error}); correct or remove that line and run again") from error
    missing = [key for key in _KEYS if not isinstance(row, dict) or key not in row]
    if missing:
        raise IbtpoError(f"{where} has no {', '.join(missing)}; a row is an object with the keys {', '.join(_KEYS)}")
    return row


def _scored(source: Path, done: int) -> Iterator[dict]:
    """The rows after the first `done`, with their verdicts."""
    waiting: list[tuple[int, dict]] = []

    def items():
        for index, (number, row) in enumerate(_rows(source)):
            if index >= done:
                waiting.append((number, row))
                yield row["kind"], row["gold"], row["pred"]

    verdicts = score_all(items())
    while True:
        try:
            verdict = next(verdicts, None)
        except IbtpoError as error:
            where = f"{source}, line {waiting[0][0]}: " if waiting else ""
            raise IbtpoError(f"{where}{error}") from error
        if verdict is None:
            return
        _, row = waiting.pop(0)
        yield row | {"correct": None if math.isnan(verdict.reward) else verdict.reward == 1.0, "status": verdict.status}


def _done(source: Path, part: Path, counts: Counter) -> int:
    """Number of rows that an earlier run has scored, counted into `counts`; a torn last line is cut off."""
    if not part.exists():
        return 0
    rows, done, end = _rows(source), 0, 0
    with open(part, "rb+") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            scored = _row(line.decode(), f"{part}, line {done + 1}")
            _, row = next(rows, (0, None))
            if row is None or any(scored.get(key) != value for key, value in row.items() if key not in ("correct", "status")):
                raise IbtpoError(f"{part}, line {done + 1}, is not of {source}; delete {part} to start again")
            _count(counts, scored)
            done, end = done + 1, end + len(line)
        lines.truncate(end)
    return done


def _count(counts: Counter, row: dict) -> None:
    counts[row["kind"], row["status"], row["correct"]] += 1
