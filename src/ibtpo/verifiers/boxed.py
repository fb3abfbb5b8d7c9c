"""The last \\boxed{...} of a text is its answer; two different boxes joined by "or" are no answer."""

from __future__ import annotations

import re

BOX = "\\boxed{"
_OR = re.compile(r"\}\s*(?:\$+|\\\)|\\\])?\s*,?\s*(?:or|\\text\{\s*or\s*\})\s*(?:\$+|\\\(|\\\[)?\s*\Z")


def last_boxed(text: str) -> str:
    """Content of the last \\boxed{...}, braces balanced; "" if there is none, or it is empty or unclosed."""
    start = text.rfind(BOX)
    if start < 0:
        return ""
    start += len(BOX)
    depth = 1
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[start:end]
    return ""


def hedged(text: str, start: int, answer: str) -> bool:
    """Whether the box at `start`, with `answer` (free of white space) in it, follows a different one by "or"."""
    before = text[max(0, start - 1000) : start]
    joint = _OR.search(before)
    if joint is None:
        return False
    before = before[: joint.start() + 1]
    other = last_boxed(before)
    return before.endswith(f"{BOX}{other}}}") and "".join(other.split()) != answer
