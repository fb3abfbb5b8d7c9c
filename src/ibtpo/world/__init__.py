"""The tiny world: procedural multi-step tasks with worked solutions, small enough for a policy that two cores train in minutes."""

from ibtpo.world import chain_sum, countdown, gcd, leg_counting
from ibtpo.world.family import DELIMITER, Family, Problem, problems

FAMILIES: dict[str, Family] = {module.FAMILY.name: module.FAMILY for module in (chain_sum, countdown, gcd, leg_counting)}

__all__ = ["DELIMITER", "FAMILIES", "Family", "Problem", "problems"]
