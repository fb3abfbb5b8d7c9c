"""Multiple choice: the letter a completion settles on.

Only an explicit statement counts: "Answer: C", "the correct option is (C)", \\boxed{C}, or a response that is nothing but the letter; of
several the last one counts. A capital at the start of a sentence ("A clean solution", "Actually") and letters inside formulas are no
statements. Who states nothing abstains; who states two letters joined by "or" is wrong.
"""

from __future__ import annotations

import re

from ibtpo.verifiers.boxed import hedged
from ibtpo.verifiers.verdict import RIGHT, WRONG, Verdict

ABSTAINED = Verdict(0.0, "abstained")
_OPEN = r"(?:\*\*|__|\$|\\\(|\(|\[|\{|\\(?:text|mathrm|textbf|mathbf|boxed)\s*\{|[`'\"\s]){0,20}"
_LETTER = rf"{_OPEN}(?P<letter>[A-J])(?![\w'\u2019+\-=^_])(?!\s*[=<>+^_]|\s*\\[a-z])"
_SUBJECT = r"(?i:\b(?:answer|option|choice))\**"
_SAYS = r"(?:[:\uff1a=]|(?i:is\b|would\s+be\b|must\s+be\b)\s*:?)\**\s*(?i:(?:option|choice|letter)\b)?"
_STATEMENTS = re.compile(
    rf"{_SUBJECT}\s*{_SAYS}\**\s*{_LETTER}"
    rf"|{_SUBJECT}\s*[:\uff1a]\**{_OPEN}(?P<small>[a-j])[)\]}}*$.]*[ \t]*(?:\n|\Z)"
    rf"|\\boxed\s*\{{{_OPEN}(?P<boxed>[A-J])[\s)\]}}.$*]*\}}"
)
_ARTICLE = re.compile(r"\s+(?!(?:because|since|as|for|by|due|given|which|where|from|and|or|but|so|based|according|with|in|if|not)\b)[a-z]")
_HEDGE = re.compile(r"[\s)\]}*$.]*(?:\bor\b|/)[\s(\[{*$\\]*(?:boxed\{)?\(?([A-J])\b")
_ALONE = re.compile(r"[\s(\[*$`]*([A-J])[\s)\]*$`.:]*")
_MAX_TEXT = 50_000


def letter(text: str, choices: int = 4) -> str | None:
    """The letter that `text` settles on, one of the first `choices` of A-J; "" for two different letters; None for no statement."""
    text = text[-_MAX_TEXT:]
    if alone := _ALONE.fullmatch(text):
        return alone[1] if _known(alone[1], choices) else None
    found = None
    for statement in _STATEMENTS.finditer(text):
        stated = (statement["letter"] or statement["boxed"] or statement["small"]).upper()
        if not _known(stated, choices) or (stated == "A" and statement["letter"] and _ARTICLE.match(text, statement.end())):
            continue
        hedge = _HEDGE.match(text, statement.end())
        two = (hedge and hedge[1] != stated) or (statement["boxed"] and hedged(text, statement.start(), stated))
        found = "" if two else stated
    return found


def judge(gold: str, text: str, choices: int = 4) -> Verdict:
    """Scores a completion against the letter `gold`. Raises ValueError if `gold` is none of the choices."""
    if check(gold, choices) != "ok":
        raise ValueError(f"the gold answer {gold!r} is none of the {choices} choices; give `choices` if there are more than four")
    stated = letter(text, choices)
    if stated is None:
        return ABSTAINED
    return RIGHT if stated == gold.strip() else WRONG


def check(gold: str, choices: int = 4) -> str:
    """Status of a gold answer: ok, empty or parse_failed."""
    gold = gold.strip()
    return (
        "empty" if not gold else "ok" if len(gold) == 1 and gold.isascii() and gold.isupper() and _known(gold, choices) else "parse_failed"
    )


def _known(letter: str, choices: int) -> bool:
    return ord(letter) - ord("A") < choices
