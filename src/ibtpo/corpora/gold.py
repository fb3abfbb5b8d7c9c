"""Gold answers must verify against themselves; one that does not would make a problem that no response can solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ibtpo.config.corpora import Cleaning
from ibtpo.corpora.layouts import Item
from ibtpo.corpora.read import DataError

Gold = Callable[[Any, str], str]  # (gold answer, kind) -> "ok", or what is wrong with it: verifiers.check_gold


def unverified(items: list[Item], kind: str, spec: Cleaning, gold: Gold | None = None) -> list[tuple[Item, str]]:
    """Problems whose gold answer is empty, cannot be parsed, loses symbols or does not equal itself, each with what is wrong.

    The gold answer of ifeval and code is the metadata; a program is run against its tests only if the settings say so. With the policy
    "stop", raises DataError for the first such problem.
    """
    if gold is None:
        from ibtpo.verifiers import check_gold as gold
    known: dict[str, str] = {}
    found = []
    for item in items:
        status = item.fault or _status(item, kind, spec, gold, known)
        if status != "ok":
            found.append((item, f"gold answer {item.answer!r}: {status}" if item.answer else f"gold answer: {status}"))
    if found and spec.gold == "stop":
        item, why = found[0]
        raise DataError(f"{item.uid}: {why} ({len(found)} such problems): correct the data, or set cleaning.gold to drop")
    return found


def _status(item: Item, kind: str, spec: Cleaning, gold: Gold, known: dict[str, str]) -> str:
    if kind in ("ifeval", "code"):
        return gold(item.metadata | ({"solution": item.solution} if spec.solutions and kind == "code" else {}), kind)
    if kind == "maths" and item.answer.isascii() and item.answer.removeprefix("-").isdigit():
        return "ok"  # an integer, as nine answers in ten are, equals itself without being asked
    if item.answer not in known:
        known[item.answer] = gold(item.answer, kind)
    return known[item.answer]
