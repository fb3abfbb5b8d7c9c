"""Cleaning of training data, step by step; each step says what it changed or removed, with examples.

Order matters: text is mended before it is compared, answers are compared before duplicates are merged (else one of two contradicting
answers would survive), and copies of benchmarks are looked for last, when a turn of phrase can be told by the problems that share it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ibtpo.config.corpora import Cleaning
from ibtpo.corpora import text
from ibtpo.corpora.gold import Gold, unverified
from ibtpo.corpora.layouts import Item
from ibtpo.corpora.overlap import Index, Match

Removed = tuple[Item, str]  # a problem and why it went


@dataclass
class Step:
    """What one step did. `examples` are a few of its problems: uid, why, and the beginning of the text."""

    name: str
    meaning: str
    before: int
    changed: int = 0
    removed: int = 0
    examples: list[dict[str, str]] = field(default_factory=list)


class Cleaner:
    """Runs steps over a list of problems and keeps the record."""

    def __init__(self, items: Iterable[Item], examples: int):
        self.items = list(items)
        self.steps: list[Step] = []
        self._examples = examples

    def change(self, name: str, meaning: str, function: Callable[[str], str]) -> None:
        """Replaces each prompt by `function` of it."""
        step = Step(name, meaning, len(self.items))
        changed = [(item, new) for item in self.items if (new := function(item.prompt)) != item.prompt]
        step.changed = len(changed)
        for item, new in _spread(changed, self._examples):
            self._example(step, item, f"{_around(item.prompt, new)} -> {_around(new, item.prompt)}")
        for item, new in changed:
            item.prompt = new
        self.steps.append(step)

    def remove(self, name: str, meaning: str, removed: list[Removed]) -> None:
        """Takes problems out."""
        step = Step(name, meaning, len(self.items), removed=len(removed))
        for item, why in _spread(removed, self._examples):
            self._example(step, item, why)
        gone = {id(item) for item, _ in removed}
        self.items = [item for item in self.items if id(item) not in gone]
        self.steps.append(step)

    def _example(self, step: Step, item: Item, why: str) -> None:
        if len(step.examples) < self._examples:
            step.examples.append({"uid": item.uid, "why": why, "text": item.prompt[:300]})


def clean(items: Iterable[Item], kind: str, spec: Cleaning, benchmarks: dict[str, list[Item]], gold: Gold | None = None):
    """All steps, in order. Returns the Cleaner (problems that are left, and the record) and the contamination table."""
    run = Cleaner(items, spec.examples)
    if kind == "maths":
        run.change("repair", "lost escapes, control characters, doubled backslashes, ligatures", text.repair)
    strip = text.strip_code_wrapper if kind == "code" else text.strip_wrapper
    run.change("wrapper", "instructions, numbers and credits around the problem", strip)
    run.remove("empty", "no problem, or no answer", _empty(run.items, kind))
    run.remove("language", f"not in {', '.join(spec.languages)}", _foreign(run.items, spec.languages))
    if not spec.images:
        run.remove("picture", "shows or links to a picture, which no text model can see", _pictures(run.items, kind))
    run.remove("conflict", "the same problem with different answers: all copies", _conflicts(_groups(run.items)))
    run.remove("duplicate", "the same text: all but the first", _copies(_groups(run.items), exact=True))
    run.remove("near duplicate", "the same but for case, white space, punctuation and layout", _copies(_groups(run.items), exact=False))
    removed, table = contaminated(run.items, benchmarks, spec)
    run.remove("contamination", f"copies of a benchmark's problem (equal text or {spec.overlap:.0%} of the {spec.ngram}-grams)", removed)
    if kind == "maths":
        meaning = f"the same answer and {spec.reworded:.0%} of the {spec.ngram}-grams: all but the first"
        run.remove("reworded", meaning, _reworded(run.items, spec))
    run.remove("gold", "the gold answer does not verify against itself", unverified(run.items, kind, spec, gold))
    return run, table


def _empty(items: list[Item], kind: str) -> list[Removed]:
    return [
        (item, "no problem" if not item.prompt.strip() else "no answer")
        for item in items
        if not item.prompt.strip() or (kind == "maths" and not (item.answer or item.fault))
    ]


def _foreign(items: list[Item], languages: Sequence[str]) -> list[Removed]:
    return [(item, found) for item in items if (found := text.language(item.prompt)) not in languages]


def _pictures(items: list[Item], kind: str) -> list[Removed]:
    found = [item for item in items if text.PICTURE.search(item.prompt) or (kind == "maths" and text.LINK.search(item.prompt))]
    return [(item, "picture or link") for item in found]


def _groups(items: list[Item]) -> list[list[Item]]:
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        groups[text.key(item.prompt)].append(item)
    return list(groups.values())


def _conflicts(groups: list[list[Item]]) -> list[Removed]:
    removed = []
    for group in groups:
        answers = {text.key(item.answer): item.answer for item in group}
        if len(answers) > 1:
            removed += [(item, f"answers {' and '.join(sorted(answers.values()))}") for item in group]
    return removed


def _copies(groups: list[list[Item]], exact: bool) -> list[Removed]:
    removed = []
    for group in groups:
        kept: dict[str, Item] = {}
        for item in group:
            first = kept.setdefault(item.prompt if exact else "", item)
            if first is not item:
                removed.append((item, f"copy of {first.uid}"))
    return removed


def _reworded(items: list[Item], spec: Cleaning) -> list[Removed]:
    """A problem goes if an earlier one that stays has its answer and most of its words."""
    index = Index(items, (), spec.ngram, spec.boilerplate)
    gone: dict[int, Removed] = {}
    for number, item in enumerate(items):
        for match in index.matches(item.prompt, spec.reworded):
            first = items[match.index]
            if match.index < number and match.index not in gone and first.answer == item.answer:
                gone[number] = (item, f"{match.share:.0%} of {first.uid}: {first.prompt[:150]}")
                break
    return list(gone.values())


def contaminated(items: list[Item], benchmarks: dict[str, list[Item]], spec: Cleaning) -> tuple[list[Removed], list[dict[str, Any]]]:
    """Problems to remove, and a row per benchmark: its problems, how many of them occur, problems removed by each rule, and (for comparison
    with the plain rule) how many share any n-gram, turns of phrase included. A rewording of a copy, with its answer, is a copy too.
    """
    flat = [(name, item) for name, problems in benchmarks.items() for item in problems]
    index = Index([item for _, item in flat], items, spec.ngram, spec.boilerplate)
    table = {name: _TableRow(name, len(problems)) for name, problems in benchmarks.items()}
    copies: dict[str, Removed] = {}
    for item in items:
        best: dict[str, Match] = {}
        for match in index.matches(item.prompt, 0):
            name, problem = flat[match.index]
            best.setdefault(name, match)
            if match.rule == "text" or match.share >= spec.overlap:
                table[name].occurring.add(problem.uid)
                why = f"{match.share:.0%} of {problem.uid} ({match.rule}): {problem.prompt[:150]}"
                copies.setdefault(item.uid, (item, why))
        for name, match in best.items():
            table[name].count(item, match, flat[match.index][1], spec.overlap)
    seeds = [item for item, _ in copies.values()]
    index = Index(seeds, items, spec.ngram, spec.boilerplate)
    for item in items:
        if item.uid not in copies and item.answer:
            match = next((found for found in index.matches(item.prompt, spec.reworded) if seeds[found.index].answer == item.answer), None)
            if match:
                source = seeds[match.index]
                copies[item.uid] = (item, f"rewording of {source.uid}, which is {copies[source.uid][1]}")
    return list(copies.values()), [row.plain() for row in table.values()]


@dataclass
class _TableRow:
    """Counts of one benchmark."""

    benchmark: str
    problems: int
    occurring: set[str] = field(default_factory=set)
    text: int = 0
    ngram: int = 0
    any_ngram: int = 0
    pairs: list[dict[str, Any]] = field(default_factory=list)

    def count(self, item: Item, match: Match, problem: Item, share: float) -> None:
        self.any_ngram += 1
        if match.rule == "text" or match.share >= share:
            self.text += match.rule == "text"
            self.ngram += match.rule == "n-gram"
            self.pairs.append({"uid": item.uid, "of": problem.uid, "rule": match.rule, "share": round(match.share, 3)})

    def plain(self) -> dict[str, Any]:
        return vars(self) | {"occurring": len(self.occurring)}


def _spread(found: list, number: int) -> list:
    """Some from all over the list, so that examples are not all of one kind."""
    return found[:: max(1, len(found) // number)]


def _around(one: str, other: str, width: int = 60) -> str:
    """What is around the first place where a text differs from another one."""
    at = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return repr(one[max(0, at - 10) : at + width])
