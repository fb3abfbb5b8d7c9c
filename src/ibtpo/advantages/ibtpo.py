"""IB-TPO's advantage: one value a step, global plus local.

IB-TPO (arXiv 2605.28109), formulas 4-6:
    A_IB(s) = (r(s) - (1 + 1/beta)) pi_old(s)              local; r(s) squared if tree.scoring says so
    A_GL(s) = (p(a*|s) - p(a*|q)) / (std R + epsilon)      global, 0 in a group of equal rewards
    A(s)    = A_GL(s) + lambda A_IB(s)                     for every token of step s, in every trajectory through s
Choices [OURS]: pi_old is the raw probability of the behaviour policy at the node's first draw (D.2 rows 10, 11, 18); std as in GRPO
(row 22); no re-centring (row 23); A_IB stays in groups of equal rewards unless mask_equal_groups (row 21); a trajectory that could not be
scored gets 0 on all its tokens, shared steps included (T19). p is the density that the tree was grown with (row 8).
"""

from __future__ import annotations

import math

import numpy as np

from ibtpo.advantages.group import reward_std
from ibtpo.tree import Node, ReasoningTree, density, information_gain


def ibtpo(tree: ReasoningTree, spec, signals=None) -> list[np.ndarray]:
    """One float64 array of shape (len(trajectory.ids),) per trajectory, in order; spec = config.Advantage; `signals` are not used."""
    scoring = tree.scoring
    baseline, std = density(tree.root, scoring), reward_std(tree, spec.std_ddof)
    masked = spec.mask_equal_groups and std == 0

    def advantage(node: Node) -> float:
        from_root = (density(node, scoring) - baseline) / (std + spec.std_epsilon) if std else 0.0
        return from_root + spec.local_weight * information_gain(node, spec.beta, scoring) * node.pi

    of_node = np.array([0.0] + [advantage(node) for node in tree.nodes[1:]])
    return [
        np.zeros(len(t.ids)) if masked or math.isnan(t.reward) else of_node[[node.index for node in t.nodes]] for t in tree.trajectories
    ]
