"""Statistics of a grown tree, for the training metrics and for Table 3 (D.2 rows 5 and 34). Tokens: `tree.generated_tokens`."""

from __future__ import annotations

import math

from ibtpo.tree.tree import ReasoningTree


def scored_rewards(tree: ReasoningTree) -> list[float]:
    """The rewards of the trajectories that could be scored, in order."""
    return [t.reward for t in tree.trajectories if not math.isnan(t.reward)]


def effective(tree: ReasoningTree) -> bool:
    """Whether the group's rewards differ (Eff-Rate). By equality: the std of equal floats can round to more than 0 (T19)."""
    return len(set(scored_rewards(tree))) > 1


def leaf_depths(tree: ReasoningTree) -> list[int]:
    """Number of steps of each trajectory, in order; one that forks inside is one step, though two nodes."""
    return [sum(not node.cut for node in t.leaf.path[1:]) for t in tree.trajectories]


def root_share(tree: ReasoningTree) -> float:
    """Share of the expansions that picked the root again after its initial rollouts; NaN without expansions."""
    return _mean([node is tree.root for node in tree.expansions])


def repeat_share(tree: ReasoningTree) -> float:
    """Share of the expansions that picked a node an earlier expansion had picked; NaN without expansions."""
    return _mean([node in tree.expansions[:number] for number, node in enumerate(tree.expansions)])


def _mean(values: list[bool]) -> float:
    return sum(values) / len(values) if values else math.nan
