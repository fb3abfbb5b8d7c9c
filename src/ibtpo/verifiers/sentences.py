"""How many sentences a text has, near to what NLTK's punkt model for English says, without its data [OURS].

A sentence ends with ! or ? before white space, or with a full stop before white space unless a small letter follows or the word before
it is an abbreviation or an initial. A line break by itself ends no sentence. What remains after the last end is one more sentence.
"""

from __future__ import annotations

import re

_ABBREVIATIONS = re.compile(
    r"mr|mrs|ms|dr|prof|rev|gen|col|sgt|capt|lt|sen|rep|gov|st|mt|sr|jr|messrs|vs|etc|e\.g|i\.e|cf|al|approx|est|dept|fig|no|vol|inc|ltd|co"
    r"|corp|bros|u\.s|u\.k|u\.n|e\.u|d\.c|a\.m|p\.m|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|[a-hj-z]"
)
_END = re.compile(r"(?P<mark>[.!?]+)[\"'”\u2019)\]*_]*(?=\s+(?P<next>\S))")
_WORD = re.compile(r"([\w.]+)\Z")


def count_sentences(text: str) -> int:
    """Number of sentences; 0 for a text without a letter or digit."""
    text = text.strip()
    if not re.search(r"\w", text):
        return 0
    return 1 + sum(_ends(text, match) for match in _END.finditer(text))


def _ends(text: str, match: re.Match) -> bool:
    if match["mark"] != ".":
        return not (set(match["mark"]) == {"."} and match["next"].islower())
    if match["next"].islower():
        return False
    word = _WORD.search(text, max(0, match.start() - 40), match.start())
    word = word[1].lower() if word else ""
    return not _ABBREVIATIONS.fullmatch(word)
