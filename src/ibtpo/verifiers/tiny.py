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

from ibtpo.verifiers.boxed import BOX, hedged, last_boxed
from ibtpo.verifiers.verdict import RIGHT, UNPARSED, WRONG, Verdict

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?:\.0{1,9})?")
_SIGNED_SUM = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,8})(?:[+-](?:0|[1-9][0-9]{0,8})){0,31}")
_TERM = re.compile(r"[+-]?[0-9]+")


def verify(family: str, metadata: str, text: str) -> Verdict:
    """Scores `text`, a completion, for a problem with the JSON text `metadata` (column of a problem row).

    Status "parse_failed" (reward 0): no box, or the last one is unclosed, empty or not of the family's answer form.
    Raises ValueError for an unknown family; never for any `text`.
    """
    if family not in _CHECKS:
        raise ValueError(f"no verifier for the family {family!r}; known: {', '.join(_CHECKS)}")
    start = text.rfind(BOX)
    if start < 0:
        return UNPARSED
    answer = "".join(last_boxed(text).split())
    if not answer:
        return UNPARSED
    verdict = _CHECKS[family](_loads(metadata), answer)
    return WRONG if verdict is RIGHT and hedged(text, start, answer) else verdict


def check(family: str, metadata: str) -> str:
    """Status of the metadata of a problem: ok, empty or unverified (its answer does not verify). Raises KeyError if it lacks a key."""
    answer = json.loads(metadata)["answer"]
    if not str(answer).strip():
        return "empty"
    return "ok" if verify(family, metadata, f"{BOX}{answer}}}") is RIGHT else "unverified"


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
