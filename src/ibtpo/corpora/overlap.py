"""Copies of one set of problems among another, by runs of words: Brown et al. 2020, appendix C (n-gram overlap), with what is [OURS].

Equality of texts misses a contest problem that was rewritten to end in an integer ("... find m + n"); shared 8-grams find it. But a single
shared 8-gram proves nothing in mathematics: "where m and n are relatively prime positive integers" is in hundreds of problems. So [OURS]
- an n-gram in problems with many different answers is a turn of phrase and never counts (copies of one problem share their answer, so
  however often a problem is repeated its own words stay);
- two problems overlap if they share at least `share` of the n-grams of the shorter one, and at least four (or all) of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ibtpo.corpora.layouts import Item
from ibtpo.corpora.text import core, key, tokens

FEW = 4  # n-grams that must be shared, where the shorter problem has so many


class Match(NamedTuple):
    """A problem of the index that another one copies."""

    index: int  # in the list that was indexed
    rule: str  # "text": equal after normalisation; "n-gram"
    share: float  # of the n-grams of the shorter problem; 0 if only turns of phrase are shared


class Index:
    """Problems by their n-grams. `others` are the problems that will be looked up: they help to tell which n-grams are turns of phrase."""

    def __init__(self, problems: Sequence[Item], others: Iterable[Item], n: int, boilerplate: int):
        self.n = n
        self._at: dict[str, list[int]] = defaultdict(list)
        self._texts: dict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(problems):
            for gram in grams(item.prompt, n):
                self._at[gram].append(number)
            for text in {key(item.prompt), key(core(item.prompt))}:
                self._texts[text].append(number)
        self._phrases = self._turns_of_phrase(problems, others, boilerplate)
        self._sizes = [0] * len(problems)
        for gram, numbers in self._at.items():
            if gram not in self._phrases:
                for number in numbers:
                    self._sizes[number] += 1

    def matches(self, prompt: str, share: float) -> list[Match]:
        """All problems of the index that `prompt` copies, best first; with share 0, all that have any n-gram in common with it."""
        shared: dict[int, int] = defaultdict(int)
        for gram in grams(prompt, self.n) & self._at.keys():
            own = gram not in self._phrases
            if own or not share:
                for number in self._at[gram]:
                    shared[number] += own
        equal = {number for text in {key(prompt), key(core(prompt))} for number in self._texts.get(text, ())}
        found = [Match(number, "text", 1.0) for number in equal]
        size = len(grams(core(prompt), self.n) - self._phrases) if shared else 0
        for number in shared.keys() - equal:
            shorter = min(size, self._sizes[number])
            part = min(1.0, shared[number] / shorter) if shorter and shared[number] >= min(FEW, shorter) else 0.0
            if part >= share:
                found.append(Match(number, "n-gram", part))
        return sorted(found, key=lambda match: (match.rule == "n-gram", -match.share, match.index))

    def _turns_of_phrase(self, problems: Sequence[Item], others: Iterable[Item], boilerplate: int) -> set[str]:
        """N-grams in problems of at least `boilerplate` different answers; a problem without an answer counts for itself."""
        answers: dict[str, set[str]] = defaultdict(set)
        for item in others:
            for gram in grams(item.prompt, self.n) & self._at.keys():
                if len(answers[gram]) < boilerplate:
                    answers[gram].add(item.answer or item.uid)
        phrases = set()
        for gram, numbers in self._at.items():
            if len(numbers) + len(answers.get(gram, ())) >= boilerplate:
                found = {problems[number].answer or problems[number].uid for number in numbers} | answers.get(gram, set())
                if len(found) >= boilerplate:
                    phrases.add(gram)
        return phrases


def grams(prompt: str, n: int) -> set[str]:
    """The runs of n words and numbers in a problem."""
    words = tokens(prompt)
    return {" ".join(words[start : start + n]) for start in range(len(words) - n + 1)}
