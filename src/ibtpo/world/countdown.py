"""Countdown with + and - only (reasoning-gym's countdown): use every number once to make the target.

Which sign each number gets is a genuine choice: most first steps can still lead to the target, few last ones can, so the share of right
continuations differs between the branches of a tree.
"""

from ibtpo.world.family import Family, running_sum, worked


def _prompt(entry: dict) -> str:
    return f"{','.join(map(str, entry['metadata']['numbers']))} make {entry['metadata']['target']}"


def _key(entry: dict) -> tuple:
    return tuple(sorted(entry["metadata"]["numbers"])), entry["metadata"]["target"]


def _demonstrate(entry: dict) -> list[str]:
    expression = entry["answer"].replace(" ", "")
    terms = [int(term) for term in expression.replace("-", " -").replace("+", " +").split()]
    return worked(running_sum(terms), expression)


FAMILY = Family("countdown", "countdown", _prompt, _key, _demonstrate)
