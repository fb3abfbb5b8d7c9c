"""Greatest common divisors (reasoning-gym's gcd) of two numbers by Euclid's repeated subtraction."""

from ibtpo.world.family import Family, worked


def _demonstrate(entry: dict) -> list[str]:
    big, small = sorted(entry["metadata"]["numbers"], reverse=True)
    lines = [f"{big},{small}"]
    while big != small:
        lines.append(f"{big}-{small}={big - small}")
        big, small = max(small, big - small), min(small, big - small)
    return worked(lines, entry["answer"])


FAMILY = Family(
    "gcd",
    "gcd",
    lambda entry: "gcd " + ",".join(map(str, entry["metadata"]["numbers"])),
    lambda entry: tuple(sorted(entry["metadata"]["numbers"])),
    _demonstrate,
)
