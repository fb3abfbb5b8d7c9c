"""What a family of problems is, and how its problems are drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, repeat
from random import Random
from typing import Any

import reasoning_gym

from ibtpo import IbtpoError

DELIMITER = "\n\n"
EXACT, ROUGH = "=", "~"  # how a step was done
PATIENCE = 5000  # draws in a row without a new problem after which a family counts as used up


@dataclass(frozen=True)
class Family:
    """A reasoning-gym data set with our prompt, our worked solution and the key by which two problems are the same.

    `prompt`, `key` and `demonstrate` are functions of reasoning-gym's entry (question, answer, metadata). `careless`, if the family has it,
    writes a solution with rough steps, from the metadata, the rates of rough steps and of slips in them, and a source of chance.
    """

    name: str
    dataset: str
    prompt: Callable[[dict], str]
    key: Callable[[dict], Any]
    demonstrate: Callable[[dict], list[str]]
    careless: Callable[[dict, float, float, Random], list[str]] | None = None


@dataclass(frozen=True)
class Problem:
    family: str
    prompt: str
    answer: str
    metadata: str
    steps: tuple[str, ...]


def problems(family: Family, options: dict[str, Any], seed: int, max_steps: int, seen: set | None = None) -> Iterator[Problem]:
    """An endless stream of different problems (by the family's key), each with at most `max_steps` steps.

    options: reasoning-gym's own of this data set (ranges of numbers and so on). seen: keys of the problems that are taken, to which these
    are added; streams of one family that share it have no problem in common.
    Raises IbtpoError for options it does not take, and once the family has no new problem left.
    """
    start = int.from_bytes(hashlib.sha256(f"{seed}/{family.name}".encode()).digest()[:4])
    try:
        entries = reasoning_gym.create_dataset(family.dataset, seed=start, **options)
    except (TypeError, AssertionError) as error:
        raise IbtpoError(f"world: family {family.name!r} with options {options}: {error}; see reasoning-gym's {family.dataset}") from error
    seen = set() if seen is None else seen
    last_new = 0
    for index in count():
        entry = entries[index]
        key, steps = family.key(entry), family.demonstrate(entry)
        if key not in seen and len(steps) <= max_steps:
            seen.add(key)
            last_new = index
            metadata = {name: value for name, value in entry["metadata"].items() if name not in ("difficulty", "source_index")}
            yield Problem(
                family=family.name,
                prompt=family.prompt(entry),
                answer=entry["answer"],
                metadata=json.dumps({**metadata, "answer": entry["answer"]}),
                steps=tuple(steps),
            )
        elif index - last_new >= PATIENCE:
            raise IbtpoError(f"world: family {family.name!r} has only about {len(seen)} different problems; widen its options {options}")


def worked(lines: list[str], answer: str) -> list[str]:
    """Steps of a solution: the lines, the last of them closed with a full stop, then the boxed answer."""
    return [*lines[:-1], lines[-1] + ".", f"\\boxed{{{answer}}}"]


def running_sum(terms: list[int], steps: Iterable[tuple[str, int]] = repeat((EXACT, 0))) -> list[str]:
    """Lines of a signed sum done from left to right: [9, -4, 7] -> ["9-4=5", "5+7=12"]. `steps`: mark of each line, and its slip."""
    lines, total = [], terms[0]
    for term, (mark, slip) in zip(terms[1:], steps, strict=False):
        result = total + term + slip
        lines.append(f"{total}{term:+d}{mark}{result}")
        total = result
    return lines


def careless_sum(terms: list[int], rough_rate: float, slip_rate: float, rng: Random) -> list[str]:
    """A running sum in which some steps are done roughly, and some of these are off by one; it goes on from there."""
    rough = [rng.random() < rough_rate for _ in terms[1:]]
    slips = [rng.choice((-1, 1)) * (rng.random() < slip_rate) for _ in rough]
    return running_sum(terms, [(ROUGH, slip) if is_rough else (EXACT, 0) for is_rough, slip in zip(rough, slips, strict=True)])


def result(line: str) -> str:
    """What a line comes to, as text."""
    return line.replace(ROUGH, EXACT).rpartition(EXACT)[2]
