"""TreePO's advantage: the reward of a trajectory against every subgroup it belongs to (C.6).

TreePO (arXiv 2508.17445) and its released code, with S_j(i) the trajectories that share the first j segments with trajectory i:
    a_{i,j} = R_i - mean of R over S_j(i)          j = 0: the whole group; subgroups of one trajectory are skipped
    A_i     = mean_j a_{i,j}                       aggregation "mean"; "size": weighted by |S_j(i)|
One value a trajectory, whitened over the response tokens of the batch (spec.whiten, weights.py).
Choices [OURS]: a segment is a node of the tree, so with the treepo sampler it is a segment of tokens and with the others a reasoning
step; a trajectory that could not be scored gets 0 and is in no subgroup (T19); no group is filtered out: one of equal rewards gets exactly
0, which whitening then moves as it moves all tokens.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from ibtpo.tree import Node, ReasoningTree, Trajectory
from ibtpo.tree.statistics import effective


def treepo(tree: ReasoningTree, spec, signals=None) -> list[np.ndarray]:
    """One float64 array of shape (len(trajectory.ids),) per trajectory; spec = config.Advantage (aggregation, drop_equal_subgroups)."""
    subgroups = _subgroups(tree, spec.drop_equal_subgroups) if effective(tree) else {}

    def advantage(trajectory: Trajectory) -> float:
        found = [] if math.isnan(trajectory.reward) else [subgroups[node] for node in trajectory.leaf.path if node in subgroups]
        if not found:
            return 0.0
        sizes, means = np.array(found).T
        return trajectory.reward - float(np.average(means, weights=sizes if spec.aggregation == "size" else None))

    return [np.full(len(t.ids), advantage(t), dtype=np.float64) for t in tree.trajectories]


def _subgroups(tree: ReasoningTree, drop_equal: bool) -> dict[Node, tuple[int, float]]:
    """(size, mean reward) of the trajectories through each node, where that makes a subgroup."""
    rewards: dict[Node, list[float]] = defaultdict(list)
    for trajectory in tree.trajectories:
        if not math.isnan(trajectory.reward):
            for node in trajectory.leaf.path:
                rewards[node].append(trajectory.reward)
    kept = {node: values for node, values in rewards.items() if len(set(values) if drop_equal else values) > 1}
    return {node: (len(values), sum(values) / len(values)) for node, values in kept.items()}
