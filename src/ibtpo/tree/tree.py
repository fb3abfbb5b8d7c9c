"""The reasoning tree: a trie of steps over the trajectories sampled for one problem.

IB-TPO (arXiv 2605.28109): the root is the problem q, a node is a reasoning step s, a leaf ends a trajectory tau, and
T^(s) = {tau : s < tau} are the trajectories through s. Choices [OURS]: D.2 rows 3, 7, 8, 16-19, 25. Token ids are the only truth.

A fork inside a step splits its node (row 25). Then every trajectory that begins with the upper half passes through it, old or new: no
node has a child that goes on from a split sibling. All statistics are those of the same trajectories added to the finer tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from ibtpo.tree.scores import LITERAL, Scoring
from ibtpo.tree.segment import Segmenter

ROUNDING = 1e-3  # a log-probability may exceed 0 by this much


@dataclass(eq=False, slots=True)
class Node:
    """A step in its context. Two steps are one node iff parent, ids and `terminal` agree (D.2 row 18).

    index: creation order, the root is 0; the upper half of a split node is younger than the lower. logprobs: raw log-probabilities (nats)
    of the first draw, shape (len(ids),). terminal: a trajectory ends here (EOS or truncated). cut: the upper half of a split node: it
    ends at a fork, inside a step. depth: nodes from the root. prefix_length: tokens from the root through this node. draws: how often
    this node was drawn at its parent (D.2 row 7). count, wins: number and sum of rewards of the scored trajectories through this node.
    mean_of_children: a cache of tree/scores.py. pi: geometric mean of the token probabilities; an empty step
    has the empty product, 1.
    """

    index: int
    parent: Node | None = field(repr=False)
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(repr=False)
    terminal: bool
    cut: bool = False
    depth: int = field(init=False)
    prefix_length: int = field(init=False)
    pi: float = field(init=False)
    children: dict[tuple[tuple[int, ...], bool], Node] = field(default_factory=dict, init=False, repr=False)
    draws: int = field(default=0, init=False)
    count: int = field(default=0, init=False)
    wins: float = field(default=0.0, init=False)
    mean_of_children: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.depth = self.parent.depth + 1 if self.parent else 0
        self.prefix_length = len(self.ids) + (self.parent.prefix_length if self.parent else 0)
        self.pi = _geometric_mean(self.logprobs)

    @property
    def path(self) -> list[Node]:
        """The nodes from the root to this one, both included."""
        path = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]


@dataclass(frozen=True, eq=False, slots=True)
class Trajectory:
    """A whole response, from rollout to loss.

    ids, logprobs: one entry a token, shared prefix included; the prefix's log-probs are those of its nodes. leaf: the last node (it holds
    no token if the engine returned none). reward: in [0, 1], NaN if unscorable. finished: ended by EOS. branch: the node it was
    started from. new_tokens: tokens generated for it, the prefix left out.
    """

    uid: str
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(repr=False)
    leaf: Node = field(repr=False)
    reward: float
    status: str
    finished: bool
    branch: Node = field(repr=False)
    new_tokens: int

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The node of each token, shape (len(ids),); read off the tree, where a node may have been split since."""
        return tuple(step for step in self.leaf.path for _ in step.ids)


class ReasoningTree:
    """The tree of one problem.

    uid: of the problem. max_tokens: response tokens of a trajectory. scoring: how samplers and advantages score its nodes. nodes,
    trajectories: in order of creation. expansions: the node of each branch a sampler chose after its initial rollouts, in order; samplers
    append to it (D.2 row 5).
    """

    def __init__(self, uid: str, segmenter: Segmenter, max_tokens: int, scoring: Scoring = LITERAL) -> None:
        self.uid = uid
        self.segmenter = segmenter
        self.max_tokens = max_tokens
        self.scoring = scoring
        self.root = Node(index=0, parent=None, ids=(), logprobs=(), terminal=False)
        self.nodes: list[Node] = [self.root]
        self.trajectories: list[Trajectory] = []
        self.expansions: list[Node] = []

    @property
    def generated_tokens(self) -> int:
        """Newly generated tokens; a shared prefix counts once (D.2 row 34)."""
        return sum(trajectory.new_tokens for trajectory in self.trajectories)

    def prefix_ids(self, node: Node) -> tuple[int, ...]:
        """The response ids from the root through `node`: what follows the prompt when branching there."""
        return tuple(chain.from_iterable(step.ids for step in node.path))

    def room(self, node: Node) -> int:
        """Tokens that a continuation below `node` may have."""
        return self.max_tokens - node.prefix_length

    def expandable(self, node: Node, min_room: int) -> bool:
        """Whether `node` may be expanded: the root, always, and every non-leaf with room for `min_room` tokens (D.2 rows 3-4)."""
        return node is self.root or (not node.terminal and self.room(node) >= min_room)

    def candidates(self, min_room: int) -> list[Node]:
        """The nodes that may be expanded."""
        return [node for node in self.nodes if self.expandable(node, min_room)]

    def add(
        self, node: Node, ids: Sequence[int], logprobs: Sequence[float], finished: bool, reward: float | None, status: str = "ok"
    ) -> Trajectory:
        """Hang a continuation below `node` and return its trajectory.

        ids, logprobs: the new tokens only, EOS included, and their raw log-probabilities. reward: in [0, 1]; None or NaN if unscorable,
        then it is left out of count and wins. An empty completion (an aborted request) becomes a terminal child without ids, whose
        trajectory is the prefix. Raises ValueError, and leaves the tree as it was, on a node that is a leaf or of another tree, on more
        tokens than there is room for, on log-probs that are not one number <= 0 a token, and on a reward outside [0, 1].
        """
        ids, logprobs = tuple(map(int, ids)), tuple(map(float, logprobs))
        reward = math.nan if reward is None else float(reward)
        self._check(node, ids, logprobs, reward)
        prefix = node.path
        prefix_ids = tuple(chain.from_iterable(step.ids for step in prefix))
        leaf, start = node, 0
        steps = self.segmenter.split(ids, prefix_ids) or [()]
        for number, step in enumerate(steps, start=1):
            leaf = self._draw(leaf, step, logprobs[start : start + len(step)], terminal=number == len(steps))
            start += len(step)
        for passed in leaf.path:
            passed.mean_of_children = None  # an unscorable trajectory is a draw too
            if not math.isnan(reward):
                passed.count += 1
                passed.wins += reward
        trajectory = Trajectory(
            uid=self.uid,
            ids=prefix_ids + ids,
            logprobs=tuple(chain.from_iterable(step.logprobs for step in prefix)) + logprobs,
            leaf=leaf,
            reward=reward,
            status=status,
            finished=finished,
            branch=node,
            new_tokens=len(ids),
        )
        self.trajectories.append(trajectory)
        return trajectory

    def split(self, node: Node, offset: int) -> Node:
        """The node that ends before token `offset` of `node`, for a fork there; made by splitting `node` if need be (D.2 row 25).

        `node` keeps its last tokens, its children and whatever refers to it; its first `offset` tokens become a new node above it, and
        above all its siblings that begin with them. No node is made at offset 0, where the fork is at the parent, and where a step of
        just these tokens stands beside `node` (a leaf that EOS or white space joined, D.2 row 16): it is returned as it is. Raises
        ValueError on a node of another tree and on an offset outside [0, len(node.ids)).
        """
        self._check_owner(node)
        if not 0 <= offset < len(node.ids):
            raise ValueError(f"{self._where(node)}: cannot split before token {offset} of {len(node.ids)}; give one that the node has")
        parent, head = node.parent, node.ids[:offset]
        if not offset or (head, False) in parent.children:
            return parent.children[head, False] if offset else parent
        family = [child for child in parent.children.values() if len(child.ids) > offset and child.ids[:offset] == head]
        upper = Node(len(self.nodes), parent, head, family[0].logprobs[:offset], terminal=False, cut=True)
        self.nodes.append(upper)
        siblings = [upper if child is family[0] else child for child in parent.children.values() if child not in family[1:]]
        parent.children = {(child.ids, child.terminal): child for child in siblings}
        for lower in family:
            lower.parent, lower.ids, lower.logprobs = upper, lower.ids[offset:], lower.logprobs[offset:]
            lower.pi = _geometric_mean(lower.logprobs)
            upper.children[lower.ids, lower.terminal] = lower
            upper.draws, upper.count, upper.wins = upper.draws + lower.draws, upper.count + lower.count, upper.wins + lower.wins
        below = list(family)
        for lower in below:
            lower.depth += 1
            below += lower.children.values()
        return upper

    def _draw(self, parent: Node, ids: tuple[int, ...], logprobs: tuple[float, ...], terminal: bool) -> Node:
        """Counts a step drawn at `parent`, on the way down through the split nodes it begins with, and returns its last node."""
        for child in parent.children.values():
            if child.cut and len(ids) > len(child.ids) and ids[: len(child.ids)] == child.ids:
                child.draws += 1
                return self._draw(child, ids[len(child.ids) :], logprobs[len(child.ids) :], terminal)
        # `terminal` is part of the key: a truncated leaf never merges with an inner node of the same ids.
        if (ids, terminal) not in parent.children:
            parent.children[ids, terminal] = Node(len(self.nodes), parent, ids, logprobs, terminal)
            self.nodes.append(parent.children[ids, terminal])
        child = parent.children[ids, terminal]
        child.draws += 1  # only below the branch node: the prefix was drawn before (D.2 row 7)
        return child

    def _check(self, node: Node, ids: tuple[int, ...], logprobs: tuple[float, ...], reward: float) -> None:
        self._check_owner(node)
        where = self._where(node)
        if node.terminal:
            raise ValueError(f"{where}: a leaf cannot be continued; branch at one of tree.candidates()")
        if len(ids) > self.room(node):
            raise ValueError(f"{where}: {len(ids)} tokens but room for {self.room(node)}; request at most tree.room(node) tokens")
        if len(ids) != len(logprobs):
            raise ValueError(f"{where}: {len(ids)} tokens but {len(logprobs)} log-probs; the engine must return one a token")
        if not all(map(ROUNDING.__ge__, logprobs)):
            raise ValueError(f"{where}: a log-prob is NaN or positive; check the policy's weights and the engine's log-prob mode")
        if not (math.isnan(reward) or 0 <= reward <= 1):
            raise ValueError(f"{where}: reward {reward} is outside [0, 1]; use NaN for a trajectory that cannot be scored")

    def _check_owner(self, node: Node) -> None:
        if node.index >= len(self.nodes) or self.nodes[node.index] is not node:
            raise ValueError(f"{self._where(node)}: the node belongs to another tree; branch at a node of tree.nodes")

    def _where(self, node: Node) -> str:
        return f"tree {self.uid!r}, node {node.index}"


def _geometric_mean(logprobs: Sequence[float]) -> float:
    return math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else 1.0
