"""EPTree: fork at the tokens that surprised the policy most (TreeRL, arXiv 2506.11902, and its released code; C.5).

    score of a token = -log p(sampled token), of the pi that the engine gives; a fork's prefix ends before the token, which is drawn again
    masked: the first token of a branched chain; a token with less than min_room tokens left; every token after the first one whose text
            contains "conclusion" or "answer", in any case
    M = initial chains; then iterations - 1 rounds: the N = nodes best tokens of a pool, T = branches continuations of each
scope "tree", the released loop: each initial chain and what branches off it is a pool of its own, so a round forks M N times; a forked
token stays in its pool and may be the best again (in the released script there is one round only).
scope "forest" [OURS]: the initial chains share the root, so all are one pool: (M, L, N, T) = (4, 9, 1, 1) gives IBTree's shape. Here a
token is forked once: with one fork a round the first choice would mostly be repeated to the end.
[OURS]: chains are not judged by how they ended; with fewer than N tokens in a pool they are gone through again, with none the fork is at
the root, so that exactly G trajectories result; ties go to the earlier chain, then to the earlier token; room never forbids the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import Node, ReasoningTree

LAST_WORDS = (b"conclusion", b"answer")
Token = tuple[float, int, int]  # log p, number of its trajectory, position: the smallest is the best


def eptree(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """Rounds of spec.nodes tokens a pool, spec.branches continuations each; deterministic, `rng` is not used."""
    forest = spec.scope == "forest"
    pools: list[list[Token]] = [[] for _ in range(1 if forest else spec.initial)]  # heaps
    owners = [number % len(pools) for number in range(spec.initial)]  # the pool of each trajectory
    pooled = 0  # trajectories
    yield [Branch(tree.root, spec.initial)]
    for _ in range(spec.iterations - 1):
        for number in range(pooled, len(tree.trajectories)):
            for token in _tokens(tree, number, spec):
                heappush(pools[owners[number]], token)
        pooled = len(tree.trajectories)
        nodes = []
        for owner, pool in enumerate(pools):
            best = [heappop(pool) for _ in range(min(spec.nodes, len(pool)))]
            nodes += [_fork(tree, best[k % len(best)]) if best else tree.root for k in range(spec.nodes)]
            owners += [owner] * (spec.nodes * spec.branches)
            for token in () if forest else best:
                heappush(pool, token)
        tree.expansions += nodes
        yield [Branch(node, spec.branches) for node in nodes]


def _tokens(tree: ReasoningTree, number: int, spec) -> list[Token]:
    """The unmasked tokens of a chain: of what was generated for trajectory `number`."""
    chain = tree.trajectories[number]
    first = len(chain.ids) - chain.new_tokens
    last = {token for token in set(chain.ids[first:]) if any(word in tree.segmenter.piece(token).lower() for word in LAST_WORDS)}
    stop = next((position for position in range(first, len(chain.ids)) if chain.ids[position] in last), len(chain.ids) - 1)
    allowed = range(first + (number >= spec.initial), min(stop, max(0, tree.max_tokens - spec.min_room)) + 1)
    return [(chain.logprobs[position], number, position) for position in allowed]


def _fork(tree: ReasoningTree, token: Token) -> Node:
    """The node that ends before the token; splits the step it lies in."""
    _, number, position = token
    node = tree.trajectories[number].nodes[position]
    return tree.split(node, position - (node.prefix_length - len(node.ids)))
