"""Maths answers: math-verify 0.9.0 behind rules of our own [OURS] where it is wrong. Runs inside a worker process only: it may hang.

- The last \\boxed{...} counts; an empty or unclosed one is no answer; without any box math-verify's own extraction decides.
- Numbers: `numbers.py`. ASCII scientific notation is a number (math-verify reads 1e-7 as e - 7), and so is a repeating decimal (it reads
  nothing). Thousands separators of all spellings vanish (it reads 1\\,234 as the mixed number 1 + 234); "64 and 125" is a list (it reads
  the number 64125).
- A tuple (4,7) is not the set \\{4,7\\}; an open interval is the strict inequality, in both directions.
- Bases: 52_8 is not 52_9; where the answer names no base, the one of the gold answer is meant (math-verify drops all bases).
"""

from __future__ import annotations

import re
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify
from sympy import Basic, MatrixBase

from ibtpo.verifiers import numbers
from ibtpo.verifiers.boxed import BOX, hedged, last_boxed
from ibtpo.verifiers.verdict import RIGHT, UNPARSED, WRONG, Verdict

MAX_LENGTH, MAX_DEPTH, MAX_TEXT = 1000, 40, 20_000  # of an answer in characters and braces; of a text without a box
_LATEX = [LatexExtractionConfig()]
_SEPARATOR = r"(?:,?\\!\s*|\\[,;: ]|\{,\}|~| )"
_THOUSANDS = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:{_SEPARATOR}\d{{3}})+(?!\d)")
_SCIENTIFIC = re.compile(r"(?<![\w.\\])(\d+\.?\d*|\.\d+)[eE]([+-]?\d{1,3})(?![\w.])")
_CONJUNCTION = re.compile(r"\s*,?\s*(?:\\(?:text|mbox|mathrm)\{\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z]))\s*")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\overline\{(\d+)\}")
_BASE = re.compile(r"(?<=\d)_(?:\{(\d{1,2})\}|(\d))\s*$")
_SYMBOL = re.compile(r"\\(?:text|mbox|mathrm)\s*\{[^{}]*\}(?:\^\{?\d+\}?)?|\\(?:begin|end)\{\w+\}|\\[a-zA-Z]+|\\.|(\d+|[a-zA-Z])")

numbers.install()


def judge(gold: str, text: str) -> Verdict:
    """Scores a completion. Raises whatever math-verify may raise; hangs and takes memory as the answer makes it."""
    start = text.rfind(BOX)
    if start < 0:
        return _compare(gold, "", tuple(parse(text[-MAX_TEXT:], parsing_timeout=None)))
    answer = last_boxed(text)
    if not _sane(answer):
        return UNPARSED
    verdict = _compare(gold, answer, read(answer))
    return WRONG if verdict is RIGHT and hedged(text, start, "".join(answer.split())) else verdict


def check(gold: str) -> str:
    """Status of a gold answer: ok, empty, parse_failed, lossy or unverified (it does not verify against itself)."""
    if not gold.strip("$ \n\t"):
        return "empty"
    if not _sane(gold) or not _parsed(read(gold)):
        return "parse_failed"
    if lost := lost_symbols(gold):
        return f"lossy: {' '.join(lost)}"
    return "ok" if judge(gold, f"{BOX}{gold.strip().strip('$')}}}") is RIGHT else "unverified"


def lost_symbols(gold: str) -> list[str]:
    """Numbers and letters of a gold answer, outside \text{...}, that one may change without the verifier noticing."""
    symbols = [match for match in _SYMBOL.finditer(gold) if match[1]]
    return [match[1] for match in symbols if judge(gold, f"{BOX}{gold[: match.start()]}{_other(match[1])}{gold[match.end() :]}}}") is RIGHT]


@lru_cache(maxsize=1 << 12)
def read(answer: str) -> tuple[Basic | MatrixBase | str, ...]:
    """What math-verify makes of an answer, its base left out: a SymPy object and the text, only the text, or nothing."""
    return tuple(parse(f"${_BASE.sub('', normalise(answer))}$", _LATEX, parsing_timeout=None))


def normalise(answer: str) -> str:
    """Without dollar signs and full stop; thousands joined; repeating decimals, scientific notation and conjunctions as LaTeX has them."""
    answer = re.sub(r"(?<!\\)\$", "", answer).strip().rstrip(".").strip()
    answer = _REPEATING.sub(_fraction, answer)
    answer = _THOUSANDS.sub(lambda number: re.sub(r"\D", "", number[0]), answer)
    answer = _SCIENTIFIC.sub(r"\1\\cdot 10^{\2}", answer)
    return _CONJUNCTION.sub(", ", answer)


def _fraction(decimal: re.Match) -> str:
    whole, fixed, repeated = decimal.groups()
    numerator = int(whole + fixed + repeated) - int(whole + fixed or 0)
    return rf"\frac{{{numerator}}}{{{'9' * len(repeated) + '0' * len(fixed)}}}"


def _compare(gold: str, answer: str, parsed: tuple) -> Verdict:
    expected = read(gold)
    if not expected:
        return Verdict(float("nan"), "error")
    if not parsed:
        return UNPARSED
    if {_brackets(gold), _brackets(answer)} == {"()", "{}"} or _bases_differ(gold, answer):
        return WRONG
    if any(_equal(one, other) for one in expected for other in parsed):
        return RIGHT
    return WRONG if _parsed(parsed) else UNPARSED


def _equal(gold, answer) -> bool:
    try:
        return verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None, raise_on_error=True)
    except MemoryError:
        raise
    except Exception:  # what cannot be compared is not equal
        return False


def _sane(answer: str) -> bool:
    return bool(answer.strip()) and len(answer) <= MAX_LENGTH and _depth(answer) <= MAX_DEPTH


def _depth(answer: str) -> int:
    depth = deepest = 0
    for character in answer:
        depth += (character in "{([") - (character in "})]")
        deepest = max(deepest, depth)
    return deepest


def _parsed(answer: tuple) -> bool:
    return any(not isinstance(part, str) for part in answer)


def _brackets(answer: str) -> str:
    """The pair () or {} around an answer; empty if there is none."""
    bare = re.sub(r"\\left|\\right|[\s$]", "", answer)
    return "()" if re.fullmatch(r"\(.*\)", bare) else "{}" if re.fullmatch(r"\\\{.*\\\}", bare) else ""


def _bases_differ(gold: str, answer: str) -> bool:
    bases = {match[1] or match[2] for text in (gold, answer) if (match := _BASE.search(normalise(text)))}
    return len(bases) > 1


def _other(symbol: str) -> str:
    """A different number of as many digits, or a different letter."""
    if symbol.isdigit():
        return symbol[:-1] + ("8" if symbol[-1] == "9" else str(int(symbol[-1]) + 1))
    return "w" if symbol != "w" else "v"
