"""TreePO's sampling: grow all paths a segment at a time and fork while the width allows (TreePO and its released code; C.6).

Width G = group_size, W = segment tokens, d = fan_out; `initial` paths leave the root. After each segment a path has finished (its text
repeats a 32-character substring 8 times, it ended, or it has `depth` segments) or is active. Then
    free = G - finished;  total = max(min(free, d (finished in this round + active)), active)
is split evenly over the active paths, the remainder to the last: the ways in which each goes on. With no path active and fewer than G
finished, paths that ended by EOS are taken in random order (the root if there are none); from a boundary of each, uniform over its
segments' beginnings, min(d, missing) paths start anew, until there are G.

We need no partial generations: a continuation depends on its prefix alone, so a path is generated whole and revealed W tokens at a time;
c ways are its own and c - 1 new continuations from the boundary. Nodes are the segments (BlockSegmenter).
[OURS]: a path that repeats itself or is too deep is not cut, it only forks no more; a boundary with less than min_room tokens left does
not fork; at most G paths leave the root; the paths that start anew fork no more, as the width leaves them one way each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import Node, ReasoningTree, Trajectory

REPEAT_LENGTH, REPEAT_COUNT = 32, 8


def treepo(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """A round for each segment at which paths fork, and one for those that start anew; `rng` draws only the latter."""
    yield [Branch(tree.root, min(spec.initial, spec.group_size))]
    active, finished, by_eos = list(tree.trajectories), 0, []
    for block in range(1, spec.depth + 1):
        repeating = [path for path in active if _repeats(tree, path, block, spec.segment)]
        ended = [path for path in active if len(path.ids) <= block * spec.segment]
        stopped = [path for path in active if path in repeating or path in ended or block == spec.depth]
        by_eos += [path for path in ended if path.finished and path not in repeating]
        finished += len(stopped)
        active = [path for path in active if path not in stopped]
        if not active:
            break
        total = max(min(spec.group_size - finished, spec.fan_out * (len(stopped) + len(active))), len(active))
        ways = [total // len(active)] * len(active)
        ways[-1] += total % len(active)
        boundaries = [path.leaf.path[block] for path in active]
        more = [(way - 1) * tree.expandable(node, spec.min_room) for way, node in zip(ways, boundaries, strict=True)]
        forks = [Branch(node, new) for node, new in zip(boundaries, more, strict=True) if new]
        known = len(tree.trajectories)
        tree.expansions += [fork.node for fork in forks]
        if forks:
            yield forks
        new_paths = iter(tree.trajectories[known:])
        active = [path for old, new in zip(active, more, strict=True) for path in (old, *islice(new_paths, new))]
    missing = spec.group_size - len(tree.trajectories)
    if missing:
        anew = _anew(tree, by_eos, missing, spec, rng)
        tree.expansions += anew
        yield [Branch(node, 1) for node in anew]


def _repeats(tree: ReasoningTree, path: Trajectory, block: int, size: int) -> bool:
    text = tree.segmenter.text(path.ids[(block - 1) * size : block * size])
    pieces = Counter(text[start : start + REPEAT_LENGTH] for start in range(len(text) - REPEAT_LENGTH + 1))
    return max(pieces.values(), default=0) >= REPEAT_COUNT


def _anew(tree: ReasoningTree, paths: list[Trajectory], missing: int, spec, rng: np.random.Generator) -> list[Node]:
    """The boundaries from which the `missing` paths start."""
    nodes: list[Node] = []
    while len(nodes) < missing:
        for number in rng.permutation(max(len(paths), 1)):
            known = paths[number].leaf.path[:-1] if paths else [tree.root]
            eligible = [node for node in known if tree.expandable(node, spec.min_room)]
            nodes += [eligible[rng.integers(len(eligible))]] * spec.fan_out
    return nodes[:missing]
