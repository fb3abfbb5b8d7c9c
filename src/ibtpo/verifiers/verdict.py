"""What every verifier answers: a reward and how it came about."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "parse_failed", "timeout", "memory", "error", "oov", "abstained"]


class Verdict(NamedTuple):
    """Reward in {0, 1} (NaN where an answer could not be scored) and how it came about.

    ok: compared, or run. parse_failed: no answer, or not of the right form. timeout, memory: the answer used up the time or memory
    it was given. abstained: no choice was made. error: the verifier failed, not the answer. oov: ids that the tokenizer does not know.
    """

    reward: float
    status: Status


WRONG, RIGHT, UNPARSED = Verdict(0.0, "ok"), Verdict(1.0, "ok"), Verdict(0.0, "parse_failed")
