"""Fixed width: fork at every step until the tree is wide enough (Table 3, "fix-width"; C.9).

IB-TPO (arXiv 2605.28109), 5.3: branch at every step until the width reaches G. The fan-out is not given. [OURS]: every path forks
`fan_out` ways at the end of each step, level by level from the root, until there are G paths; then each is finished.

We need no partial generations. A continuation depends on its prefix alone, so the ways of a fork are independent draws given the path so
far: the first of them is what the path's own rollout goes on with, the others are new continuations from the same node. The joint
distribution is that of stopping at each step, and every token is generated once, so the number of new tokens is the same too.
[OURS]: paths that drew the same step share a node, and each of them forks; where the last level has more ways than G leaves room for, each
path gets one more before any gets two, earlier paths first; a path that has ended, or has no room for min_room tokens, does not fork; if
no path goes on to the next level, the rest start at the root. Exactly G trajectories.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import ReasoningTree


def fixed_width(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """A round for each level that forks; deterministic, `rng` is not used."""
    yield [Branch(tree.root, min(spec.fan_out, spec.group_size))]
    depth = 1
    while (missing := spec.group_size - len(tree.trajectories)) > 0:
        paths = [trajectory.leaf.path for trajectory in tree.trajectories]
        level = [path[depth] for path in paths if len(path) > depth]
        ends = [node for node in level if tree.expandable(node, spec.min_room)] if level else [tree.root] * missing
        forks = (ends * (spec.fan_out - 1))[:missing]
        tree.expansions += forks
        if forks:
            yield [Branch(node, 1) for node in forks]
        depth += 1
