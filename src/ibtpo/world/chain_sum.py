"""Chain sums (reasoning-gym's chain_sum): add and subtract from left to right, one operation a step.

A careless solution is off by one at some steps and goes on from there, so a policy that learned from such solutions knows how it is
done and slips at times: what reinforcement learning can mend, and where a step, not the whole response, deserves the blame.
"""

from random import Random

from ibtpo.world.family import Family, running_sum, worked


def _expression(entry: dict) -> str:
    return entry["metadata"]["expression"].replace(" ", "")


def _terms(metadata: dict) -> list[int]:
    first, *rest = metadata["expression"].split()
    return [int(first)] + [int(sign + number) for sign, number in zip(rest[::2], rest[1::2], strict=True)]


def _demonstrate(entry: dict) -> list[str]:
    return worked(running_sum(_terms(entry["metadata"])), entry["answer"])


def _careless(metadata: dict, slip_rate: float, rng: Random) -> list[str]:
    slips = [rng.choice((-1, 1)) * (rng.random() < slip_rate) for _ in _terms(metadata)[1:]]
    lines = running_sum(_terms(metadata), slips)
    return worked(lines, lines[-1].partition("=")[2])


FAMILY = Family("chain-sum", "chain_sum", lambda entry: f"{_expression(entry)}=", _expression, _demonstrate, _careless)
