"""Scores of model answers: a completion goes in, a reward with the reason for it comes out. The same for training and evaluation.

| kind | gold answer | how |
|---|---|---|
| a family of the tiny world | its metadata, or the answer | exact integer arithmetic |
| maths | LaTeX | math-verify, in worker processes that can be killed |
| choice | a letter, or {"answer": letter, "choices": n} | the letter a completion settles on |
| ifeval | {"instruction_id_list", "kwargs"} | prompt-level strict, in the same worker processes |
| code | see `code.py` | a sandbox |
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ibtpo import IbtpoError
from ibtpo.verifiers import choice, code, ifeval, tiny, workers
from ibtpo.verifiers.boxed import BOX, last_boxed
from ibtpo.verifiers.sandbox import SandboxError
from ibtpo.verifiers.tiny import FAMILIES
from ibtpo.verifiers.verdict import UNPARSED, Status, Verdict

__all__ = [
    "FAMILIES",
    "KINDS",
    "GoldError",
    "SandboxError",
    "Status",
    "Verdict",
    "check_gold",
    "last_boxed",
    "maths_answer",
    "score",
    "score_all",
    "verify",
]

KINDS = ("maths", "choice", "ifeval", "code", *FAMILIES)
_WINDOW = 256  # items in work or waiting for an earlier one


class GoldError(IbtpoError):
    """A kind that does not exist, or a gold answer that is not of its kind."""


def verify(family: str, metadata: str, text: str) -> Verdict:
    """Scores `text`, a completion, for a problem of `family` (one of KINDS) with the JSON text `metadata` (a column of a problem row).

    The gold answer is the "answer" of the metadata for maths, all of the metadata for the others. Maths without a box earns nothing here
    (D.2 rows 17 and 37), where `score` reads on. Raises GoldError for an unknown family or metadata that are no gold answer, SandboxError
    where code cannot be run; nothing for any `text`.
    """
    if family in FAMILIES:
        return tiny.verify(family, metadata, text)
    try:
        gold = _object(metadata)
    except (ValueError, TypeError) as error:
        raise GoldError(f"metadata of a {family} problem hold no gold answer: {error}") from error
    if family == "maths":
        return score(family, gold.get("answer"), text) if BOX in text else UNPARSED
    return score(family, gold, text)


def maths_answer(metadata: str) -> str:
    """The gold answer in the JSON text `metadata` of a maths problem; "" if there is none that `score` would take."""
    try:
        return _answer(_object(metadata).get("answer"))
    except (ValueError, TypeError):
        return ""


def score(kind: str, gold: Any, text: str) -> Verdict:
    """Scores a completion against a gold answer (table above; an object may be given as JSON text). Raises as `verify` does."""
    if kind not in KINDS:
        raise GoldError(f"no verifier for the kind {kind!r}; known: {', '.join(KINDS)}")
    if not isinstance(text, str):
        raise GoldError(f"a completion must be a text, not {type(text).__name__}")
    judge = {"maths": _maths, "choice": _choice, "ifeval": _ifeval, "code": _code}.get(kind)
    try:
        return judge(gold, text) if judge else tiny.verify(kind, _metadata(gold), text)
    except IbtpoError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise GoldError(f"{repr(gold)[:200]} is no gold answer of the kind {kind} ({type(error).__name__}: {error})") from error


def score_all(items: Iterable[tuple[str, Any, str]], threads: int | None = None) -> Iterator[Verdict]:
    """The verdicts on items (kind, gold, text), in order, several at a time; takes items as it goes and keeps only a few hundred."""
    pending: deque = deque()
    executor = ThreadPoolExecutor(threads or min(8, len(os.sched_getaffinity(0))), thread_name_prefix="verifier")
    try:
        for item in items:
            pending.append(executor.submit(score, *item))
            if len(pending) >= _WINDOW:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


def check_gold(gold: Any, kind: str) -> str:
    """Status of a gold answer, for the builders of data sets: "ok" or one of these words, most with ": " and details.

    empty; parse_failed (not of its kind); lossy (maths: symbols that one may change without the verifier noticing); unverified (does not
    verify against itself); timeout, memory, error (of the check). Raises GoldError for an unknown kind.
    """
    if kind not in KINDS:
        raise GoldError(f"no verifier for the kind {kind!r}; known: {', '.join(KINDS)}")
    try:
        if kind == "maths":
            return workers.pool().score("maths-gold", _answer(gold), "").status
        if kind == "choice":
            return choice.check(**_letter(gold))
        if kind == "ifeval":
            return ifeval.check(_object(gold))
        if kind == "code":
            return code.check(_object(gold))
        return tiny.check(kind, _metadata(gold))
    except IbtpoError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        return f"parse_failed: {type(error).__name__}: {error}"


def _maths(gold: Any, text: str) -> Verdict:
    return workers.pool().score("maths", _answer(gold), text)


def _choice(gold: Any, text: str) -> Verdict:
    gold = _letter(gold)
    return choice.judge(gold["gold"], text, gold["choices"])


def _ifeval(gold: Any, text: str) -> Verdict:
    gold = _object(gold)
    if (status := ifeval.check(gold)) != "ok":
        raise ValueError(status)
    return workers.pool().score("ifeval", gold, text)


def _code(gold: Any, text: str) -> Verdict:
    return code.judge(_object(gold), text)


def _answer(gold: Any) -> str:
    if isinstance(gold, bool) or not isinstance(gold, str | int | float):
        raise TypeError(f"a maths answer is a text or a number, not {type(gold).__name__}")
    return str(gold)


def _letter(gold: Any) -> dict:
    gold = {"answer": gold} if isinstance(gold, str) and not gold.lstrip().startswith("{") else _object(gold)
    return {"gold": gold["answer"], "choices": int(gold.get("choices") or 4)}


def _metadata(gold: Any) -> str:
    """Metadata of a tiny family; an answer alone is enough for those that need no more."""
    if isinstance(gold, dict):
        return json.dumps(gold)
    return gold if isinstance(gold, str) and gold.lstrip().startswith("{") else json.dumps({"answer": gold})


def _object(gold: Any) -> dict:
    gold = json.loads(gold) if isinstance(gold, str) else gold
    if not isinstance(gold, dict):
        raise TypeError(f"an object is needed, not {type(gold).__name__}")
    return gold
