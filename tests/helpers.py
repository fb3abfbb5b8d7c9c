"""Shared by tests: a small vocabulary, hand-made and random trees, and a scripted source of continuations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from hypothesis import strategies as st

from ibtpo import samplers
from ibtpo.samplers import Branch
from ibtpo.tree import LITERAL, Node, ReasoningTree, Scoring, Segmenter

EOS = 0
# Newlines apart and merged, and a three-byte character (U+222F) cut in every way; then the letters, one id each.
PIECES = [b"", b"\n", b"\n\n", b".\n\n", b" ", b"\xe2\x88", b"\xaf", b"\n\n\xe2", b"\x88\xaf", b"\xe3\x80\x80"]
VOCABULARY = [*PIECES, *(bytes([letter]) for letter in range(ord("a"), ord("z") + 1))]
END = PIECES.index(b".\n\n")  # the usual end of a step
UNKNOWN = len(VOCABULARY)  # an id outside the vocabulary


def letter(character: str) -> int:
    return VOCABULARY.index(character.encode())


def make_tree(max_tokens: int = 64, uid: str = "q", scoring: Scoring = LITERAL) -> ReasoningTree:
    return ReasoningTree(uid, Segmenter(VOCABULARY, EOS), max_tokens, scoring)


def plant(spec, max_tokens: int = 64, uid: str = "q", seed: int = 0) -> ReasoningTree:
    """The empty tree of a sampler."""
    return samplers.make_tree(uid, spec, Segmenter(VOCABULARY, EOS), max_tokens, seed)


def encode(text: str) -> tuple[int, ...]:
    """Ids of a text of letters, spaces, '|' (ends a step, ".\\n\\n") and '$' (EOS)."""
    return tuple({"|": END, "$": EOS, " ": VOCABULARY.index(b" ")}.get(c) if c in "|$ " else letter(c) for c in text)


def hang(tree: ReasoningTree, node: Node, text: str, reward: float | None, pi: float | Sequence[float] = 0.5):
    """Adds `encode(text)` below `node`; every token has probability `pi`, or each step its own."""
    ids = encode(text)
    if isinstance(pi, float):
        probabilities = [pi] * len(ids)
    else:
        steps = tree.segmenter.split(ids)
        probabilities = [p for step, p in zip(steps, pi, strict=True) for _ in step]
    return tree.add(node, ids, [math.log(p) for p in probabilities], text.endswith("$"), reward)


def one_step_tree(rewards: Sequence[float | None], pis: Sequence[float]) -> ReasoningTree:
    """The root with one leaf child per reward; child i is a letter and EOS, each token with probability pi_i."""
    tree = make_tree()
    for number, (reward, pi) in enumerate(zip(rewards, pis, strict=True)):
        hang(tree, tree.root, "abcdefghijklmnopqrstuvwxyz"[number] + "$", reward, pi)
    return tree


Continuation = tuple[Sequence[int], Sequence[float], bool, float | None]  # ids, log-probs, finished, reward
Source = Callable[[Node, int], Continuation]  # (branch node, room) -> continuation


def grow(tree: ReasoningTree, sampler: Iterator[list[Branch]], source: Source) -> list[list[Branch]]:
    """Runs a sampler against a scripted source, adding in request order; returns its rounds."""
    rounds = []
    for branches in sampler:
        rounds.append(branches)
        answers = [(branch.node, source(branch.node, tree.room(branch.node))) for branch in branches for _ in range(branch.n)]
        for node, answer in answers:
            tree.add(node, *answer)
    return rounds


def scripted(script: Sequence[tuple[str, float | Sequence[float]]], reward: float = 0.0) -> Source:
    """The continuations of a script, in order: (text, a probability for all tokens or one for each), cut at the room."""
    answers = iter(script)

    def source(node: Node, room: int) -> Continuation:
        text, probabilities = next(answers)
        ids = encode(text)[:room]
        each = [probabilities] * len(ids) if isinstance(probabilities, float) else list(probabilities)[: len(ids)]
        return ids, [math.log(p) for p in each], EOS in ids, reward

    return source


def random_source(rng, tokens: Sequence[int] = range(1, len(VOCABULARY)), end: float = 0.1, rewards=(0.0, 1.0)) -> Source:
    """Uniform tokens; after each, EOS with probability `end`; truncated at the room."""

    def source(node: Node, room: int) -> Continuation:
        ids: list[int] = []
        while len(ids) < room and EOS not in ids:
            ids.append(EOS if ids and rng.random() < end else int(rng.choice(tokens)))
        return ids, rng.uniform(-3, 0, len(ids)).tolist(), EOS in ids, float(rng.choice(rewards))

    return source


REWARDS = (0.0, 1.0, 0.1, 0.7, math.nan)


@st.composite
def continuations(draw, room: int, rewards: Sequence[float] = REWARDS) -> Continuation:
    """Up to `room` tokens of a small alphabet (so that steps repeat), EOS or cut off, possibly empty."""
    body = draw(st.lists(st.sampled_from([letter("a"), letter("b"), END, END, 1, 2, 4, 7, 8, UNKNOWN]), max_size=min(room, 8)))
    finished = len(body) < room and draw(st.booleans())
    ids = [*body, EOS] if finished else body
    logprobs = draw(st.lists(st.sampled_from([-5.0, -1.0, -0.1, 0.0]), min_size=len(ids), max_size=len(ids)))
    return ids, logprobs, finished, draw(st.sampled_from(rewards))


@st.composite
def trees(draw, rewards: Sequence[float] = REWARDS, independent: bool = False, splits: bool = False, scoring: Scoring = LITERAL):
    """Random trees of 1-12 trajectories, branched at random non-leaf nodes (or all from the root), with random splits if asked for."""
    tree = make_tree(max_tokens=draw(st.integers(1, 16)), scoring=scoring)
    for _ in range(draw(st.integers(1, 12))):
        node = tree.root if independent else draw(st.sampled_from(tree.candidates(min_room=1)))
        tree.add(node, *draw(continuations(tree.room(node), rewards)))
        if splits and draw(st.booleans()):
            split = draw(st.sampled_from([node for node in tree.nodes if node.ids] or [None]))
            if split is not None:
                tree.split(split, draw(st.integers(0, len(split.ids) - 1)))
    return tree
