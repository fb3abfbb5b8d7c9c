"""IBTree against scripted sources: section E, D.2 rows 3-6 and 9."""

from importlib import import_module

import numpy as np
import pytest
from helpers import END, encode, grow, hang, make_tree, random_source, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.methods import Sampler
from ibtpo.samplers import SAMPLERS
from ibtpo.tree import Scoring, ib_score
from ibtpo.tree.statistics import root_share

exact = settings(derandomize=True, deadline=None, max_examples=100)


def spec(initial=4, iterations=9, nodes=1, branches=1, min_room=1, **keys) -> Sampler:
    size = initial + (iterations - 1) * nodes * branches
    return Sampler(
        name="ibtree", group_size=size, initial=initial, iterations=iterations, nodes=nodes, branches=branches, min_room=min_room, **keys
    )


def run(shape: Sampler, source, max_tokens: int = 32):
    tree = make_tree(max_tokens)
    return tree, grow(tree, SAMPLERS["ibtree"](tree, shape, None), source)


def test_the_papers_shape_gives_twelve():
    tree, rounds = run(spec(), random_source(np.random.default_rng(0)))
    assert len(tree.trajectories) == 12 and [sum(b.n for b in branches) for branches in rounds] == [4] + [1] * 8


def picks(tree, **shape):
    """The nodes IBTree picks next on a tree that already holds its initial rollouts."""
    sampler = SAMPLERS["ibtree"](tree, spec(initial=len(tree.trajectories), **shape), None)
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
    sampler = spec(min_room=64)
    tree, _ = run(sampler, random_source(np.random.default_rng(0)), max_tokens=32)
    assert root_share(tree) == 1


def test_scores_are_taken_anew_each_round():
    tree = make_tree()
    sampler = SAMPLERS["ibtree"](tree, spec(initial=1, iterations=3), None)
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


class Counted:
    """ib_score with a count of its calls."""

    def __init__(self, monkeypatch):
        self.calls = 0
        monkeypatch.setattr(import_module("ibtpo.samplers.ibtree"), "ib_score", self)

    def __call__(self, *arguments):
        self.calls += 1
        return ib_score(*arguments)


@exact
@given(
    st.tuples(st.integers(1, 4), st.integers(2, 7), st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from([Scoring(), Scoring("hierarchical"), Scoring(ratio_power=2)]),
    st.sampled_from([(0.0, 1.0), (0.0, 1.0, np.nan), (0.0, 0.1, 0.7)]),
    st.integers(0, 999),
)
def test_scores_kept_between_rounds_are_those_of_a_full_recomputation(shape, scoring, rewards, seed):
    """Row 9: in every round, the picks are the K best under scores that are all computed anew."""
    tree = make_tree(40, scoring=scoring)
    source = random_source(np.random.default_rng(seed), tokens=[*encode("ab"), END, END], end=0.15, rewards=rewards)
    for number, branches in enumerate(SAMPLERS["ibtree"](tree, spec(*shape, beta=2.0), None)):
        if number:
            ranked = sorted(tree.candidates(1), key=lambda n: (-ib_score(n, 2.0, scoring), n.depth, n.index))
            assert [b.node for b in branches] == [ranked[k % len(ranked)] for k in range(len(branches))]
        for branch in branches:
            for _ in range(branch.n):
                tree.add(branch.node, *source(branch.node, tree.room(branch.node)))


def test_only_the_paths_of_new_trajectories_are_scored(monkeypatch):
    counted = Counted(monkeypatch)
    tree = make_tree(400)
    sampler = SAMPLERS["ibtree"](tree, spec(), None)
    source, expected, before = random_source(np.random.default_rng(1), end=0.01), 0, 0
    for branches in sampler:
        assert counted.calls == expected
        for branch in branches:
            for _ in range(branch.n):
                tree.add(branch.node, *source(branch.node, tree.room(branch.node)))
        new = tree.trajectories[before:]
        before = len(tree.trajectories)
        expected += len({node for t in new for node in t.leaf.path if tree.expandable(node, 1)})
    assert len(tree.nodes) > 100 and expected - counted.calls == len([n for n in new[0].leaf.path if not n.terminal])


def test_the_density_of_the_tree_decides():
    """Four right rollouts below a confident wrong step hide in the pooled mean at the root that it is the worse of two."""
    for scoring, scores, number in [(Scoring(), (0.406, 0.4, 0.3), 0), (Scoring("hierarchical"), (0.1856, 0.4, 0.3), 1)]:
        tree = make_tree(scoring=scoring)
        hang(tree, tree.root, "a|b$", 0.0, (0.99, 0.6))
        hang(tree, tree.root, "c|d$", 1.0, (0.2, 0.7))
        for _ in range(4):
            hang(tree, tree.nodes[1], "e$", 1.0, 0.6)
        # p(q) = 5/6 or (.8 + 1) / 2, p(a) = .8, p(c) = 1; J(q) = 1 + 5/2 [(.8/p(q) - 1.2) .99 + (1/p(q) - 1.2) .2]
        assert [ib_score(tree.nodes[i], 5.0, scoring) for i in (0, 1, 3)] == pytest.approx(scores, abs=1e-4)
        assert picks(tree) == [tree.nodes[number]]
