"""The reasoning tree: a trie of steps over the trajectories sampled for one problem.

IB-TPO (arXiv 2605.28109): the root is the problem q, a node is a reasoning step s, a leaf ends a trajectory tau, and
T^(s) = {tau : s < tau} are the trajectories through s. Choices [OURS]: D.2 rows 3, 7, 8, 16-19. Token ids are the only truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ibtpo.tree.segment import Segmenter

ROUNDING = 1e-3  # a log-probability may exceed 0 by this much


@dataclass(eq=False, slots=True)
class Node:
    """A step in its context. Two steps are one node iff parent, ids and `terminal` agree (D.2 row 18).

    index: creation order, the root is 0. logprobs: raw log-probabilities (nats) of the first draw, shape (len(ids),). terminal: a
    trajectory ends here (EOS or truncated). depth: steps from the root. prefix_length: tokens from the root through this node.
    draws: how often this node was drawn at its parent (D.2 row 7). count, wins: number and sum of rewards of the scored trajectories
    through this node. pi: geometric mean of the token probabilities; an empty step has the empty product, 1.
    """

    index: int
    parent: Node | None = field(repr=False)
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(repr=False)
    terminal: bool
    depth: int = field(init=False)
    prefix_length: int = field(init=False)
    pi: float = field(init=False)
    children: dict[tuple[tuple[int, ...], bool], Node] = field(default_factory=dict, init=False, repr=False)
    draws: int = field(default=0, init=False)
    count: int = field(default=0, init=False)
    wins: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.depth = self.parent.depth + 1 if self.parent else 0
        self.prefix_length = len(self.ids) + (self.parent.prefix_length if self.parent else 0)
        self.pi = math.exp(math.fsum(self.logprobs) / len(self.logprobs)) if self.logprobs else 1.0

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

    ids, logprobs, nodes: one entry a token, shared prefix included; the prefix's log-probs are those of its nodes. leaf: the last node
    (it holds no token if the engine returned none). reward: in [0, 1], NaN if unscorable. finished: ended by EOS. branch: the node it was
    started from. new_tokens: tokens generated for it, the prefix left out.
    """

    uid: str
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(repr=False)
    nodes: tuple[Node, ...] = field(repr=False)
    leaf: Node = field(repr=False)
    reward: float
    status: str
    finished: bool
    branch: Node = field(repr=False)
    new_tokens: int


class ReasoningTree:
    """The tree of one problem.

    uid: of the problem. max_tokens: response tokens of a trajectory. nodes, trajectories: in order of creation. expansions: the node of
    each branch a sampler chose after its initial rollouts, in order; samplers append to it (D.2 row 5).
    """

    def __init__(self, uid: str, segmenter: Segmenter, max_tokens: int) -> None:
        self.uid = uid
        self.segmenter = segmenter
        self.max_tokens = max_tokens
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
        return tuple(token for step in node.path for token in step.ids)

    def room(self, node: Node) -> int:
        """Tokens that a continuation below `node` may have."""
        return self.max_tokens - node.prefix_length

    def candidates(self, min_room: int) -> list[Node]:
        """Nodes that may be expanded: the root, always, and every non-leaf with room for `min_room` tokens (D.2 rows 3-4)."""
        return [n for n in self.nodes if n is self.root or (not n.terminal and self.room(n) >= min_room)]

    def add(
        self, node: Node, ids: Sequence[int], logprobs: Sequence[float], finished: bool, reward: float | None, status: str = "ok"
    ) -> Trajectory:
        """Hang a continuation below `node` and return its trajectory.

        ids, logprobs: the new tokens only, EOS included, and their raw log-probabilities. reward: in [0, 1]; None or NaN if unscorable,
        then it is left out of count and wins. An empty completion (an aborted request) becomes a terminal child without ids, whose
        trajectory is the prefix. Raises ValueError, and leaves the tree as it was, on a node that is a leaf or of another tree, on more
        tokens than there is room for, on log-probs that are not one number <= 0 a token, and on a reward outside [0, 1].
        """
        ids, logprobs = tuple(int(token) for token in ids), tuple(float(value) for value in logprobs)
        reward = math.nan if reward is None else float(reward)
        self._check(node, ids, logprobs, reward)
        prefix = node.path
        leaf, tokens, start = node, [step for step in prefix for _ in step.ids], 0
        steps = self.segmenter.split(ids) or [()]
        for number, step in enumerate(steps, start=1):
            leaf = self._child(leaf, step, logprobs[start : start + len(step)], terminal=number == len(steps))
            leaf.draws += 1  # only below the branch node: the prefix was drawn before (D.2 row 7)
            tokens += [leaf] * len(step)
            start += len(step)
        if not math.isnan(reward):
            for passed in leaf.path:
                passed.count += 1
                passed.wins += reward
        trajectory = Trajectory(
            uid=self.uid,
            ids=self.prefix_ids(node) + ids,
            logprobs=tuple(value for step in prefix for value in step.logprobs) + logprobs,
            nodes=tuple(tokens),
            leaf=leaf,
            reward=reward,
            status=status,
            finished=finished,
            branch=node,
            new_tokens=len(ids),
        )
        self.trajectories.append(trajectory)
        return trajectory

    def _child(self, parent: Node, ids: tuple[int, ...], logprobs: tuple[float, ...], terminal: bool) -> Node:
        # `terminal` is part of the key: a truncated leaf never merges with an inner node of the same ids.
        if (ids, terminal) not in parent.children:
            child = Node(index=len(self.nodes), parent=parent, ids=ids, logprobs=logprobs, terminal=terminal)
            parent.children[ids, terminal] = child
            self.nodes.append(child)
        return parent.children[ids, terminal]

    def _check(self, node: Node, ids: tuple[int, ...], logprobs: tuple[float, ...], reward: float) -> None:
        where = f"tree {self.uid!r}, node {node.index}"
        if node.index >= len(self.nodes) or self.nodes[node.index] is not node:
            raise ValueError(f"{where}: the node belongs to another tree; branch at a node of tree.nodes")
        if node.terminal:
            raise ValueError(f"{where}: a leaf cannot be continued; branch at one of tree.candidates()")
        if len(ids) > self.room(node):
            raise ValueError(f"{where}: {len(ids)} tokens but room for {self.room(node)}; request at most tree.room(node) tokens")
        if len(ids) != len(logprobs):
            raise ValueError(f"{where}: {len(ids)} tokens but {len(logprobs)} log-probs; the engine must return one a token")
        if not all(value <= ROUNDING for value in logprobs):
            raise ValueError(f"{where}: a log-prob is NaN or positive; check the policy's weights and the engine's log-prob mode")
        if not (math.isnan(reward) or 0 <= reward <= 1):
            raise ValueError(f"{where}: reward {reward} is outside [0, 1]; use NaN for a trajectory that cannot be scored")
