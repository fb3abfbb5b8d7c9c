"""TreeRL's advantage: the value of a segment against the root and against the segment before it (C.5, "Values").

TreeRL (arXiv 2506.11902), with N leaves, of which n(s) lie under segment s, and s_p the segment before s:
    R~_i = R_i - mean_{j != i} R_j      leave-one-out; not divided by a std
    V(s) = mean of R~ over the leaves under s; V(root) = 0
    A(s) = [ (V(s) - V(root)) + (V(s) - V(s_p)) ] / sqrt n(s)                         variant "paper"
    A(s) = V'(s) + (V'(s) - V'(s_p)), V'(s) = V(s) / sqrt n(s)                        variant "code", the released one:
           a local difference below 1e-8 is replaced by that of the segment before; all leaves are trained on, so k_n = n(s)
A segment is a chain cut at forks. Our nodes are finer, so a step that the same trajectories pass as the step before goes on with that
step's local difference. truncated_penalty: -1 on all tokens of a response without EOS (released code).
Choices [OURS]: a trajectory that could not be scored gets 0 and is no leaf (T19); groups of equal rewards, or of one, get exactly 0.
"""

from __future__ import annotations

import math

import numpy as np

from ibtpo.tree import Node, ReasoningTree, Trajectory, density
from ibtpo.tree.statistics import effective

NO_DIFFERENCE = 1e-8  # of the released code


def treerl(tree: ReasoningTree, spec, signals=None) -> list[np.ndarray]:
    """One float64 array of shape (len(trajectory.ids),) per trajectory; spec = config.Advantage (variant, truncated_penalty)."""
    of_node = _values(tree, spec.variant) if effective(tree) else np.zeros(len(tree.nodes))

    def advantage(trajectory: Trajectory) -> np.ndarray:
        if math.isnan(trajectory.reward):
            return np.zeros(len(trajectory.ids))
        if spec.truncated_penalty and not trajectory.finished:
            return np.full(len(trajectory.ids), -1.0)
        return of_node[[node.index for node in trajectory.nodes]]

    return [advantage(t) for t in tree.trajectories]


def _values(tree: ReasoningTree, variant: str) -> np.ndarray:
    """A(s) of every node, shape (nodes,); 0 at the root and at nodes without a scored trajectory."""
    leaves, mean = tree.root.count, density(tree.root)
    centred = np.zeros(len(tree.nodes))  # V, or V' of the code, by node.index
    local, values = centred.copy(), centred.copy()
    nodes: list[Node] = [tree.root]
    for node in nodes:  # parents first
        nodes += node.children.values()
        if node is tree.root or not node.count:
            continue
        parent, root_n = node.parent, math.sqrt(node.count)
        value = leaves / (leaves - 1) * (density(node) - mean)  # mean of R~ = N / (N - 1) (mean of R - mean over all)
        centred[node.index] = value if variant == "paper" else value / root_n
        difference = centred[node.index] - centred[parent.index]
        if node.count == parent.count or (variant == "code" and abs(difference) < NO_DIFFERENCE):
            difference = local[parent.index]
        local[node.index] = difference
        values[node.index] = (centred[node.index] + difference) / (root_n if variant == "paper" else 1.0)
    return values
