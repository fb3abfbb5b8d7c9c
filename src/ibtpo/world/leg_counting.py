"""Leg counting (reasoning-gym's leg_counting): legs of each kind of animal, then their running sum."""

from reasoning_gym.arithmetic.leg_counting import ANIMALS

from ibtpo.world.family import Family, running_sum, worked


def _demonstrate(entry: dict) -> list[str]:
    animals = entry["metadata"]["animals"]
    lines = [f"{number}*{ANIMALS[animal]}={number * ANIMALS[animal]}" for animal, number in animals.items()]
    return worked(lines + running_sum([number * ANIMALS[animal] for animal, number in animals.items()]), entry["answer"])


FAMILY = Family(
    "leg-counting",
    "leg_counting",
    lambda entry: "legs " + ",".join(f"{number} {animal}" for animal, number in entry["metadata"]["animals"].items()),
    lambda entry: tuple(sorted(entry["metadata"]["animals"].items())),
    _demonstrate,
)
