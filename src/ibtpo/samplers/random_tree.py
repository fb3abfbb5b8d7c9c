"""Random tree: expand uniformly random nodes (Table 3, "random"; C.9).

After B0 rollouts from the root, a uniformly random non-leaf node, root included, gets a continuation, (G - B0) times. [OURS]: a node is
eligible under the same rule as for IBTree (D.2 row 3); with K > 1 the K nodes of a round are drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import ReasoningTree


def random_tree(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """Rounds of spec.nodes random nodes, spec.branches continuations each; exactly spec.group_size trajectories."""
    yield [Branch(tree.root, spec.initial)]
    for _ in range(spec.iterations - 1):
        candidates = tree.candidates(spec.min_room)
        picked = [candidates[i] for i in rng.integers(len(candidates), size=spec.nodes)]
        tree.expansions += picked
        yield [Branch(node, spec.branches) for node in picked]
