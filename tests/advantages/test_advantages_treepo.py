"""TreePO (C.6): golden values by hand, aggregation, equal subgroups, identities."""

import math

import numpy as np
import pytest
from estimating import advantages, firsts
from helpers import hang, make_tree, one_step_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

exact = settings(derandomize=True, deadline=None, max_examples=40)


def forked(rewards=(1.0, 0.0, 0.0, 0.0)):
    """q -> a -> (b | c), q -> d, q -> e."""
    tree = make_tree()
    hang(tree, tree.root, "a|b$", rewards[0])
    hang(tree, tree.nodes[1], "c$", rewards[1])
    hang(tree, tree.root, "d|d$", rewards[2])
    hang(tree, tree.root, "e$", rewards[3])
    return tree


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [(0.75 + 0.5) / 2, (-0.25 - 0.5) / 2, -0.25, -0.25]),
        ({"aggregation": "size"}, [(4 * 0.75 + 2 * 0.5) / 6, (-4 * 0.25 - 2 * 0.5) / 6, -0.25, -0.25]),
        ({"drop_equal_subgroups": True}, [(0.75 + 0.5) / 2, (-0.25 - 0.5) / 2, -0.25, -0.25]),
    ],
)
def test_golden_values(values, expected):
    """The whole group has mean 1/4, the subgroup at a mean 1/2; subgroups of one are skipped."""
    assert firsts(advantages(forked(), "treepo", **values)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "shared", "alone"),
    [
        ({}, (-0.25 + 0) / 2, (0.75, -0.25)),
        ({"aggregation": "size"}, (-4 * 0.25 + 0) / 6, (0.75, -0.25)),
        ({"drop_equal_subgroups": True}, -0.25, (0.75, -0.25)),
        ({"drop_equal_subgroups": True, "aggregation": "size"}, -0.25, (0.75, -0.25)),
    ],
)
def test_equal_subgroups_count_unless_dropped(values, shared, alone):
    """Both trajectories through a are wrong: their difference to its mean is 0."""
    assert firsts(advantages(forked((0.0, 0.0, 1.0, 0.0)), "treepo", **values)) == pytest.approx([shared, shared, *alone])


def test_every_depth_counts_though_nothing_forks_there():
    """a|b shared by two: depths 0, 1 and 2 have the means 1/3, 1/2, 1/2."""
    tree = make_tree()
    hang(tree, tree.root, "a|b|c$", 1.0)
    hang(tree, tree.root, "a|b|d$", 0.0)
    hang(tree, tree.root, "e$", 0.0)
    right, wrong, other = firsts(advantages(tree, "treepo"))
    assert [right, wrong, other] == pytest.approx([(2 / 3 + 1 / 2 + 1 / 2) / 3, (-1 / 3 - 1 / 2 - 1 / 2) / 3, -1 / 3])


def test_two_equal_responses_are_a_subgroup_to_the_last_node():
    tree = make_tree()
    for reward in (1.0, 0.0):
        hang(tree, tree.root, "a$", reward)
    hang(tree, tree.root, "b$", 0.0)
    assert firsts(advantages(tree, "treepo")) == pytest.approx([(2 / 3 + 1 / 2) / 2, (-1 / 3 - 1 / 2) / 2, -1 / 3])


def test_an_unscorable_trajectory_makes_no_subgroup():
    tree = forked((1.0, None, 0.0, 0.0))
    assert firsts(advantages(tree, "treepo")) == pytest.approx([2 / 3, 0, -1 / 3, -1 / 3])


@exact
@given(st.lists(st.sampled_from([0.0, 1.0, 0.1, 0.7, None]), min_size=1, max_size=12), st.sampled_from(["mean", "size"]), st.booleans())
def test_without_shared_nodes_it_is_the_centred_reward(rewards, aggregation, drop):
    tree = one_step_tree(rewards, [0.5] * len(rewards))
    scored = [reward for reward in rewards if reward is not None]
    mean = np.mean(scored) if scored else 0.0
    expected = [0.0 if reward is None else reward - mean for reward in rewards]
    assert firsts(advantages(tree, "treepo", aggregation=aggregation, drop_equal_subgroups=drop)) == pytest.approx(expected, abs=1e-12)


@exact
@given(trees(), st.sampled_from(["mean", "size"]), st.booleans())
def test_agrees_with_the_formula_by_brute_force(tree, aggregation, drop):
    """Subgroups by comparing the first j nodes of every pair of trajectories."""
    scored = [t for t in tree.trajectories if not math.isnan(t.reward)]
    for t, row in zip(tree.trajectories, advantages(tree, "treepo", aggregation=aggregation, drop_equal_subgroups=drop), strict=True):
        path, differences, sizes = t.leaf.path, [], []
        for j in range(len(path)):
            rewards = [o.reward for o in scored if o.leaf.path[: j + 1] == path[: j + 1]]
            if math.isnan(t.reward) or (j and len(rewards) == 1) or (drop and len(set(rewards)) == 1):
                continue
            differences.append(t.reward - np.mean(rewards))
            sizes.append(len(rewards) if aggregation == "size" else 1)
        expected = np.average(differences, weights=sizes) if differences else 0.0
        assert row == pytest.approx([expected] * len(t.ids), abs=1e-12)
