"""Verifier of the tiny world: exact, fast, and safe on any text a model may write.

The last \\boxed{...} of a text is its answer (paper, set-up: reward 1 if the boxed answer matches, else 0; no format reward). An answer
must match a whitelist pattern of its family before anything computes with it, and only our own integer arithmetic ever does:
reasoning-gym's checker hands countdown answers to sympy's parser, which evaluates them as Python. On whitelisted answers the reward is
1 exactly where reasoning-gym's `score_answer` is 1; its partial credits do not exist here.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Literal, NamedTuple

Status = Literal["ok", "parse_failed", "timeout", "error", "oov", "abstained"]

_BOX = "\\boxed{"
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?:\.0{1,9})?")
_SIGNED_SUM = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,8})(?:[+-](?:0|[1-9][0-9]{0,8})){0,31}")
_TERM = re.compile(r"[+-]?[0-9]+")


class Verdict(NamedTuple):
    """Reward in {0, 1} (NaN where an answer could not be scored) and how it came about."""

    reward: float
    status: Status


WRONG, RIGHT, UNPARSED = Verdict(0.0, "ok"), Verdict(1.0, "ok"), Verdict(0.0, "parse_failed")


def verify(family: str, metadata: str, text: str) -> Verdict:
    """Scores `text`, a completion, for a problem with the JSON text `metadata` (column of a problem row).

    Status "parse_failed" (reward 0): no box, or the last one is unclosed, empty or not of the family's answer form.
    Raises ValueError for an unknown family; never for any `text`.
    """
    if family not in _CHECKS:
        raise ValueError(f"no verifier for the family {family!r}; known: {', '.join(_CHECKS)}")
    start = text.rfind(_BOX)
    if start < 0:
        return UNPARSED
    answer = "".join(last_boxed(text).split())
    if not answer:
        return UNPARSED
    verdict = _CHECKS[family](_loads(metadata), answer)
    return WRONG if verdict is RIGHT and _hedged(text, start, answer) else verdict


def last_boxed(text: str) -> str:
    """Content of the last \\boxed{...}, braces balanced; "" if there is none, or it is empty or unclosed."""
    start = text.rfind(_BOX)
    if start < 0:
        return ""
    start += len(_BOX)
    depth = 1
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[start:end]
    return ""


def _hedged(text: str, start: int, answer: str) -> bool:
    """Whether the box at `start` follows a different one by "or": two answers are no answer."""
    before = re.search(r"\\boxed\{([^{}]*)\}\s*\$?\s*or\s*\$?\s*\Z", text[:start])
    return before is not None and "".join(before[1].split()) != answer


def _integer(problem: dict, answer: str) -> Verdict:
    if not _INTEGER.fullmatch(answer):
        return UNPARSED
    return RIGHT if int(answer.partition(".")[0]) == int(problem["answer"]) else WRONG


def _countdown(problem: dict, answer: str) -> Verdict:
    """Every number exactly once, in any order, and the sum is the target."""
    if not _SIGNED_SUM.fullmatch(answer):
        return UNPARSED
    terms = [int(term) for term in _TERM.findall(answer)]
    complete = sorted(map(abs, terms)) == sorted(problem["numbers"])
    return RIGHT if complete and sum(terms) == problem["target"] else WRONG


_loads = lru_cache(maxsize=1 << 14)(json.loads)
_CHECKS = {"chain-sum": _integer, "countdown": _countdown, "gcd": _integer, "leg-counting": _integer}
FAMILIES = tuple(_CHECKS)
