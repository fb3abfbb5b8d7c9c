"""Chain sums (reasoning-gym's chain_sum): add and subtract from left to right, one operation a step."""

from ibtpo.world.family import Family, running_sum, worked


def _expression(entry: dict) -> str:
    return entry["metadata"]["expression"].replace(" ", "")


def _demonstrate(entry: dict) -> list[str]:
    first, *rest = entry["metadata"]["expression"].split()
    terms = [int(first)] + [int(sign + number) for sign, number in zip(rest[::2], rest[1::2], strict=True)]
    return worked(running_sum(terms), entry["answer"])


FAMILY = Family("chain-sum", "chain_sum", lambda entry: f"{_expression(entry)}=", _expression, _demonstrate)
