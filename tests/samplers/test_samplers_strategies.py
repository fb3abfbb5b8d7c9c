"""All samplers against scripted sources: exactly G trajectories, whatever the policy writes; independent and random sampling (C.9)."""

from collections import Counter

import numpy as np
import pytest
from helpers import END, EOS, encode, grow, hang, letter, make_tree, plant, random_source
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.methods import Sampler
from ibtpo.samplers import SAMPLERS, Branch
from ibtpo.samplers import make_tree as plant_tree
from ibtpo.tree import BlockSegmenter, NoisySegmenter, Scoring, Segmenter

SHAPE = ("initial", "iterations", "nodes", "branches")


@st.composite
def specs(draw, name: str) -> Sampler:
    """Random shapes of a strategy."""

    def upto(limit, start=1):
        return draw(st.integers(start, limit))

    keys = {"name": name, "group_size": upto(14, 2), "min_room": draw(st.sampled_from([1, 4, 99]))}
    if name in ("random", "ibtree", "eptree"):
        keys |= {"initial": upto(4, 2), "iterations": upto(4), "nodes": upto(3), "branches": upto(3)}
        scope = draw(st.sampled_from(["forest", "tree"])) if name == "eptree" else "forest"
        chains = keys["initial"] if scope == "tree" else 1
        keys["group_size"] = keys["initial"] + (keys["iterations"] - 1) * keys["nodes"] * keys["branches"] * chains
        keys |= {"scope": scope} if name == "eptree" else {}
    if name == "fixed-width":
        keys["fan_out"] = upto(4, 2)
    if name == "treepo":
        keys |= {"initial": upto(5), "fan_out": upto(4, 2), "segment": upto(9), "depth": upto(6)}
    return Sampler(**keys)


def run(spec: Sampler, source, seed: int = 0, max_tokens: int = 32):
    tree = plant(spec, max_tokens)
    return tree, grow(tree, SAMPLERS[spec.name](tree, spec, np.random.default_rng(seed)), source)


def always(ids, reward=1.0):
    """The same tokens each time, cut at the room."""
    return lambda node, room: (ids[:room], [-0.5] * len(ids[:room]), EOS in ids[:room], reward)


SOURCES = {
    "random": lambda rng: random_source(rng),
    "short steps": lambda rng: random_source(rng, tokens=[letter("a"), letter("b"), END], end=0.2),
    "never a delimiter": lambda rng: random_source(rng, tokens=[letter("a"), letter("b")]),
    "never EOS": lambda rng: random_source(rng, end=0.0),
    "only EOS": lambda rng: always((EOS,)),
    "empty": lambda rng: always(()),
    "always the same": lambda rng: always(encode("a|b|c$")),
    "only delimiters": lambda rng: always((END,) * 99, reward=0.0),
    "all wrong": lambda rng: random_source(rng, rewards=(0.0,)),
    "unscorable at times": lambda rng: random_source(rng, rewards=(0.0, 1.0, np.nan)),
    "never scorable": lambda rng: random_source(rng, rewards=(np.nan,)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SAMPLERS)
@settings(derandomize=True, deadline=None, max_examples=12)
@given(data=st.data())
def test_exactly_g_trajectories_whatever_the_policy_does(name, source, data):
    spec, seed = data.draw(specs(name)), data.draw(st.integers(0, 99))
    answer, rooms = SOURCES[source](np.random.default_rng(seed)), []

    def counting(node, room):
        rooms.append((node, room))
        return answer(node, room)

    tree, rounds = run(spec, counting, seed, max_tokens=16)
    assert len(tree.trajectories) == spec.group_size == len(rooms)
    assert tree.generated_tokens == sum(len(t.ids) - t.branch.prefix_length for t in tree.trajectories)
    assert all(node is tree.root or room >= spec.min_room for node, room in rooms), "an engine needs room for a token"
    assert not any(node.terminal for node in tree.expansions)
    assert rounds[0][0].node is tree.root and tree.expansions == [b.node for branches in rounds[1:] for b in branches]
    for node in tree.nodes:
        assert node.count <= sum(node in t.leaf.path for t in tree.trajectories)


@pytest.mark.parametrize("name", ["random", "ibtree"])
@settings(derandomize=True, deadline=None, max_examples=30)
@given(data=st.data())
def test_rounds_of_k_nodes_with_b_continuations_each(name, data):
    spec = data.draw(specs(name))
    tree, rounds = run(spec, random_source(np.random.default_rng(data.draw(st.integers(0, 99)))))
    assert rounds[0] == [Branch(tree.root, spec.initial)] and len(rounds) == spec.iterations
    assert all(len(branches) == spec.nodes and all(b.n == spec.branches for b in branches) for branches in rounds[1:])


def test_independent_is_one_round_at_the_root():
    tree, rounds = run(Sampler(name="independent", group_size=8), random_source(np.random.default_rng(0)))
    assert rounds == [[Branch(tree.root, 8)]] and tree.expansions == []


def test_a_tree_is_planted_as_its_sampler_says():
    shape = dict(zip(SHAPE, (4, 9, 1, 1), strict=True))
    plain = Segmenter([b"", b"a"], 0)

    def of(**keys):
        return plant_tree("u", Sampler(group_size=12, **keys), plain, 64, 7)

    tree = of(name="ibtree", **shape)
    assert (tree.uid, tree.max_tokens, tree.segmenter, tree.scoring) == ("u", 64, plain, Scoring())
    assert of(name="ibtree", density="hierarchical", ratio_power=2, **shape).scoring == Scoring("hierarchical", 2)
    blocks = of(name="treepo", initial=4, segment=5, depth=9).segmenter
    assert isinstance(blocks, BlockSegmenter) and blocks.size == 5 and blocks.token_bytes is plain.token_bytes
    noisy = of(name="ibtree", delimiter_noise=0.1, boundary_rate=0.2, **shape).segmenter
    assert isinstance(noisy, NoisySegmenter) and (noisy.rho, noisy.rate) == (0.1, 0.2) and b"7" in noisy.key and b"u" in noisy.key


@pytest.mark.parametrize("name", sorted({*SAMPLERS} - {"random", "treepo"}))
@settings(derandomize=True, deadline=None, max_examples=8)
@given(data=st.data())
def test_all_but_random_and_treepo_use_no_generator(name, data):
    spec = data.draw(specs(name))
    trees = []
    for rng in (None, np.random.default_rng(1)):
        tree = plant(spec, 32)
        grow(tree, SAMPLERS[name](tree, spec, rng), random_source(np.random.default_rng(5)))
        trees.append([(t.ids, t.branch.index) for t in tree.trajectories])
    assert trees[0] == trees[1]


def test_random_follows_its_generator():
    def expansions(seed):
        tree, _ = run(random12(9), random_source(np.random.default_rng(5)), seed)
        return [node.index for node in tree.expansions]

    assert expansions(1) == expansions(1) and len({tuple(expansions(seed)) for seed in range(8)}) > 1


def random12(iterations: int, initial: int = 4) -> Sampler:
    return Sampler(
        name="random", group_size=initial + iterations - 1, initial=initial, iterations=iterations, nodes=1, branches=1, min_room=1
    )


def test_random_is_uniform_over_the_eligible_nodes():
    """5 eligible nodes, 4000 picks: each within 5 standard deviations (126) of 800."""
    tree = make_tree()
    hang(tree, tree.root, "a|b|c|d|e$", 0.0)
    sampler = SAMPLERS["random"](tree, random12(4001, initial=1), np.random.default_rng(0))
    next(sampler)
    counts = Counter(branch.node for branches in sampler for branch in branches)
    assert set(counts) == set(tree.nodes[:5]), "the root included, the leaf not"
    assert all(abs(count - 800) < 126 for count in counts.values())
