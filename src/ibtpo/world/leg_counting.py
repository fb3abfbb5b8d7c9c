"""Leg counting (reasoning-gym's leg_counting): legs of each kind of animal, then their running sum, which may be careless."""

from random import Random

from reasoning_gym.arithmetic.leg_counting import ANIMALS

from ibtpo.world.family import Family, careless_sum, result, running_sum, worked


def _legs(metadata: dict) -> list[int]:
    return [number * ANIMALS[animal] for animal, number in metadata["animals"].items()]


def _products(metadata: dict) -> list[str]:
    return [f"{number}*{ANIMALS[animal]}={number * ANIMALS[animal]}" for animal, number in metadata["animals"].items()]


def _demonstrate(entry: dict) -> list[str]:
    return worked(_products(entry["metadata"]) + running_sum(_legs(entry["metadata"])), entry["answer"])


def _careless(metadata: dict, rough_rate: float, slip_rate: float, rng: Random) -> list[str]:
    lines = careless_sum(_legs(metadata), rough_rate, slip_rate, rng)
    return worked(_products(metadata) + lines, result(lines[-1]))


FAMILY = Family(
    "leg-counting",
    "leg_counting",
    lambda entry: "legs " + ",".join(f"{number} {animal}" for animal, number in entry["metadata"]["animals"].items()),
    lambda entry: tuple(sorted(entry["metadata"]["animals"].items())),
    _demonstrate,
    _careless,
)
