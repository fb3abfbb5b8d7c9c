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
from ibtpo.tree import ReasoningTree, ib_score


def ibtree(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """Rounds of spec.nodes nodes, spec.branches continuations each; deterministic, `rng` is not used."""

    ranks: dict[int, tuple[float, int, int]] = {}  # index of a candidate -> its rank; the least is the best
    heap: list[tuple[float, int, int]] = []  # every rank so far; out of date unless it is still that of its node
    scored = 0  # trajectories
    yield [Branch(tree.root, spec.initial)]
    for _ in range(spec.iterations - 1):
        changed = {node for trajectory in tree.trajectories[scored:] for node in trajectory.leaf.path}
        scored = len(tree.trajectories)
        for node in changed:
            if tree.expandable(node, spec.min_room):
                ranks[node.index] = -ib_score(node, spec.beta, tree.scoring), node.depth, node.index
                heapq.heappush(heap, ranks[node.index])
        best = _least(heap, ranks, spec.nodes)
        picked = [tree.nodes[best[k % len(best)]] for k in range(spec.nodes)]
        tree.expansions += picked
        yield [Branch(node, spec.branches) for node in picked]


def _least(heap: list[tuple[float, int, int]], ranks: dict[int, tuple[float, int, int]], number: int) -> list[int]:
    """The indices of the best nodes, at most `number`, which stay in the heap; ranks that are out of date leave it."""
    best: list[tuple[float, int, int]] = []
    while heap and len(best) < number:
        rank = heapq.heappop(heap)
        if ranks[rank[-1]] == rank and rank not in best[-1:]:  # a node whose new rank equals the old one is there twice
            best.append(rank)
    for rank in best:
        heapq.heappush(heap, rank)
    return [rank[-1] for rank in best]
