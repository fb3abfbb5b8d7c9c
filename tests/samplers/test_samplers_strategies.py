"""The samplers against scripted sources: section E, C.9, D.2 rows 3-6."""

from collections import Counter

import numpy as np
import pytest
from helpers import END, EOS, encode, grow, hang, letter, make_tree, random_source, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.models import Sampler
from ibtpo.samplers import SAMPLERS, Branch
from ibtpo.tree import ib_score
from ibtpo.tree.statistics import root_share

exact = settings(derandomize=True, deadline=None, max_examples=100)


def spec(name: str, initial=4, iterations=9, nodes=1, branches=1, min_room=1) -> Sampler:
    size = initial + (iterations - 1) * nodes * branches
    return Sampler(
        name=name, group_size=size, initial=initial, iterations=iterations, nodes=nodes, branches=branches, beta=5.0, min_room=min_room
    )


def run(shape: Sampler, source, seed: int = 0, max_tokens: int = 32):
    tree = make_tree(max_tokens)
    return tree, grow(tree, SAMPLERS[shape.name](tree, shape, np.random.default_rng(seed)), source)


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
@settings(derandomize=True, deadline=None, max_examples=10)
@given(
    shape=st.tuples(*(st.integers(2, 4) for _ in range(2)), *(st.integers(1, 3) for _ in range(2))),
    seed=st.integers(0, 99),
    min_room=st.sampled_from([1, 8, 99]),
)
def test_exactly_g_trajectories_whatever_the_policy_does(name, source, shape, seed, min_room):
    sampler = spec(name, *shape, min_room=min_room)
    tree, rounds = run(sampler, SOURCES[source](np.random.default_rng(seed)), seed, max_tokens=16)
    initial, iterations, nodes, branches = shape
    assert len(tree.trajectories) == sampler.group_size
    assert tree.generated_tokens == sum(len(t.ids) - t.branch.prefix_length for t in tree.trajectories)
    if name == "independent":
        assert rounds == [[Branch(tree.root, sampler.group_size)]] and tree.expansions == []
        return
    assert rounds[0] == [Branch(tree.root, initial)] and len(rounds) == iterations
    assert all(len(branches_) == nodes and all(b.n == branches for b in branches_) for branches_ in rounds[1:])
    assert tree.expansions == [b.node for branches_ in rounds[1:] for b in branches_]
    assert all(node is tree.root or tree.room(node) >= min_room for node in tree.expansions)
    assert not any(node.terminal for node in tree.expansions)


def test_the_papers_shape_gives_twelve():
    tree, rounds = run(spec("ibtree"), random_source(np.random.default_rng(0)))
    assert len(tree.trajectories) == 12 and [sum(b.n for b in branches) for branches in rounds] == [4] + [1] * 8


def picks(tree, **shape):
    """The nodes IBTree picks next on a tree that already holds its initial rollouts."""
    sampler = SAMPLERS["ibtree"](tree, spec("ibtree", initial=len(tree.trajectories), **shape), None)
    next(sampler)
    return [branch.node for branch in next(sampler)]


def test_ibtree_picks_the_highest_score():
    tree = make_tree()
    hang(tree, tree.root, "a|b|c$", 0.0, (0.9, 0.3, 0.8))  # J(a) = 1 - .3
    hang(tree, tree.root, "d|e$", 0.0, (0.9, 0.6))
    assert [n.ids for n in picks(tree)] == [encode("a|")]
    assert [n.ids for n in picks(tree, nodes=3)] == [encode("a|"), encode("d|"), encode("b|")]


def test_ibtree_looks_at_covariance_not_only_at_uncertainty():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0, (0.9, 0.5))
    hang(tree, tree.root, "c|d$", 0.0, (0.2, 0.4))  # the root: uncertainty .45, Cov(r, pi) = .35, J = .45 + 5 * .35
    assert picks(tree) == [tree.root]
    hang(tree, tree.root, "c|d$", 1.0)
    hang(tree, tree.root, "c|d$", 1.0)
    hang(tree, tree.nodes[1], "b$", 0.0)  # now the confident child is the worse one
    assert [n.ids for n in picks(tree)] == [encode("c|")]


def test_ties_go_to_the_shallower_then_to_the_earlier_node():
    tree = make_tree()
    hang(tree, tree.root, "a|b|c$", 0.0, 0.5)
    hang(tree, tree.root, "d|e$", 0.0, 0.5)
    assert [n.ids for n in picks(tree, nodes=4)] == [(), encode("a|"), encode("d|"), encode("b|")]


@exact
@given(trees(), st.integers(1, 5), st.integers(1, 4), st.sampled_from([1, 4, 8]))
def test_ibtree_takes_the_k_best_distinct_nodes_in_order(tree, nodes, branches, min_room):
    if len(tree.trajectories) < 2:
        return
    eligible = [n for n in tree.nodes if not n.terminal and (n is tree.root or tree.max_tokens - n.prefix_length >= min_room)]
    picked = picks(tree, nodes=nodes, branches=branches, min_room=min_room, iterations=2)
    best, rest = picked[: len(eligible)], picked[len(eligible) :]
    assert len(picked) == nodes and len(set(best)) == len(best) and set(best) <= set(eligible)
    keys = [(-ib_score(n, 5.0), n.depth, n.index) for n in best]
    assert keys == sorted(keys)
    assert all((-ib_score(n, 5.0), n.depth, n.index) > keys[-1] for n in set(eligible) - set(best))
    assert rest[: len(best)] == best[: len(rest)], "too few candidates: from the best one again"


def test_without_room_the_root_is_expanded():
    sampler = spec("ibtree", min_room=64)
    tree, _ = run(sampler, random_source(np.random.default_rng(0)), max_tokens=32)
    assert root_share(tree) == 1


def test_scores_are_taken_anew_each_round():
    tree = make_tree()
    sampler = SAMPLERS["ibtree"](tree, spec("ibtree", initial=1, iterations=3), None)
    next(sampler)
    hang(tree, tree.root, "a|b|c$", 0.0, (0.6, 0.1, 0.7))
    (first,) = next(sampler)
    assert first.node is tree.nodes[1]
    for letter_ in "de":  # confident, equal children: a is settled, the root's .4 is the most uncertain
        hang(tree, tree.nodes[1], letter_ + "$", 0.0, 1.0)
    for letter_ in "fgh":
        hang(tree, tree.nodes[1], letter_ + "$", 0.0, 1.0)
    (second,) = next(sampler)
    assert second.node is tree.root and tree.expansions == [tree.nodes[1], tree.root]
    with pytest.raises(StopIteration):
        next(sampler)


def test_ibtree_is_deterministic_and_random_follows_its_generator():
    def expansions(name, seed, source_seed=5):
        tree, _ = run(spec(name), random_source(np.random.default_rng(source_seed)), seed)
        return [node.index for node in tree.expansions]

    assert expansions("ibtree", 1) == expansions("ibtree", 2)
    assert expansions("random", 1) == expansions("random", 1)
    assert len({tuple(expansions("random", seed)) for seed in range(8)}) > 1


def test_random_is_uniform_over_the_eligible_nodes():
    """5 eligible nodes, 4000 picks: each within 5 standard deviations (126) of 800."""
    tree = make_tree()
    hang(tree, tree.root, "a|b|c|d|e$", 0.0)
    sampler = SAMPLERS["random"](tree, spec("random", initial=1, iterations=4001), np.random.default_rng(0))
    next(sampler)
    counts = Counter(branch.node for branches in sampler for branch in branches)
    assert set(counts) == set(tree.nodes[:5]), "the root included, the leaf not"
    assert all(abs(count - 800) < 126 for count in counts.values())
