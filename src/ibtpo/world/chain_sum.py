"""Chain sums (reasoning-gym's chain_sum): add and subtract from left to right, one operation a step.

A careless solution does some steps roughly (1+2~4 instead of 1+2=3), is off by one at some of these and goes on from there. So a policy
that learned from such solutions has a choice at every step: what reinforcement learning can mend, and where a step, not the whole
response, deserves the blame.
"""

from random import Random

from ibtpo.world.family import Family, careless_sum, result, running_sum, worked


def _expression(entry: dict) -> str:
    return entry["metadata"]["expression"].replace(" ", "")


def _terms(metadata: dict) -> list[int]:
    first, *rest = metadata["expression"].split()
    return [int(first)] + [int(sign + number) for sign, number in zip(rest[::2], rest[1::2], strict=True)]


def _demonstrate(entry: dict) -> list[str]:
    return worked(running_sum(_terms(entry["metadata"])), entry["answer"])


def _careless(metadata: dict, rough_rate: float, slip_rate: float, rng: Random) -> list[str]:
    lines = careless_sum(_terms(metadata), rough_rate, slip_rate, rng)
    return worked(lines, result(lines[-1]))


FAMILY = Family("chain-sum", "chain_sum", lambda entry: f"{_expression(entry)}=", _expression, _demonstrate, _careless)
