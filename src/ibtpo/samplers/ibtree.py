"""IBTree: expand the nodes with the highest IB-Score.

IB-TPO (arXiv 2605.28109), formula 3 and the pseudo-code of section E: B0 rollouts from the root; then L - 1 times the K best nodes by
(J desc, depth asc, creation asc) get B continuations each, and the scores are taken anew. Candidates are the root, always, and every
non-leaf with room for min_room tokens (D.2 rows 3-6). [OURS]: with fewer than K candidates the ranking is gone through again from the
best one, so that exactly G = B0 + (L - 1) K B trajectories always result.

Only nodes on the paths of new trajectories are scored anew (D.2 row 9): J(n) depends on p(n), on p and pi of n's children and on their
draws, and a trajectory changes these on its own path alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import Node, ReasoningTree, ib_score


def ibtree(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """Rounds of spec.nodes nodes, spec.branches continuations each; deterministic, `rng` is not used."""

    def rank(node: Node) -> tuple[float, int, int]:
        return -ib_score(node, spec.beta, tree.scoring), node.depth, node.index

    ranks: dict[Node, tuple[float, int, int]] = {}  # of every candidate
    scored = 0  # trajectories
    yield [Branch(tree.root, spec.initial)]
    for _ in range(spec.iterations - 1):
        changed = {node for trajectory in tree.trajectories[scored:] for node in trajectory.leaf.path}
        scored = len(tree.trajectories)
        ranks |= {node: rank(node) for node in changed if tree.expandable(node, spec.min_room)}
        best = [tree.nodes[index] for _, _, index in heapq.nsmallest(spec.nodes, ranks.values())]
        picked = [best[k % len(best)] for k in range(spec.nodes)]
        tree.expansions += picked
        yield [Branch(node, spec.branches) for node in picked]
