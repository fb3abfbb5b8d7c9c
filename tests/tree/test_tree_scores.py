"""Density, ratio, IB-Score and covariance: golden values and identities of D.1, rows 1, 2, 7, T20."""

import math

import numpy as np
import pytest
from helpers import hang, make_tree, one_step_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.tree import LITERAL, Scoring, covariance, density, ib_score, information_gain, mean_etas, ratio

HIERARCHICAL, SQUARED = Scoring("hierarchical"), Scoring(ratio_power=2)
exact = settings(derandomize=True, deadline=None, max_examples=150)
betas = st.sampled_from([1.0, 5.0, 10.0])
PI = (0.9, 0.8, 0.7, 0.6)


@pytest.mark.parametrize(
    ("rewards", "score", "cov"),
    [("1000", 1.00, 0.15), ("0001", -0.50, -0.15), ("1100", 0.75, 0.10), ("0000", 0.25, 0.0), ("1111", 0.25, 0.0)],
)
def test_d1_golden_scores(rewards, score, cov):
    root = one_step_tree([float(r) for r in rewards], PI).root
    assert ib_score(root, 5.0) == pytest.approx(score, abs=1e-6)
    assert covariance(root, 5.0) == pytest.approx(cov, abs=1e-6)
    assert mean_etas(root, 5.0) == pytest.approx((-0.2, 0.75), abs=1e-6), "mean r = 1 under equal weights"


@pytest.mark.parametrize(("pi", "score"), [(0.99, 0.01), (0.9, 0.1), (0.5, 0.5)])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_d1_single_child(pi, score, reward):
    assert ib_score(one_step_tree([reward], [pi]).root, 5.0) == pytest.approx(score, abs=1e-12)


def unbalanced():
    """Two children of the root with 5 wrong leaves and 1 right one (D.1): four rollouts were branched below the first."""
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 0.0, 0.8)
    hang(tree, tree.root, "c$", 1.0, 0.6)
    for _ in range(4):
        hang(tree, tree.nodes[1], "d$", 0.0)
    return tree


def test_d1_unbalanced():
    tree = unbalanced()
    first, second = tree.root.children.values()
    assert (first.draws, second.draws, first.count, second.count) == (1, 1, 5, 1)
    assert (ratio(first), ratio(second)) == pytest.approx((0, 6), abs=1e-6)
    assert mean_etas(tree.root, 5.0)[0] + 1.2 == pytest.approx(3, abs=1e-6)
    assert ib_score(tree.root, 5.0) == pytest.approx(5.8, abs=1e-6)
    assert [information_gain(c, 5.0) * c.pi for c in (first, second)] == pytest.approx([-0.96, 2.88], abs=1e-6)


def test_row_7_a_child_drawn_twice_counts_twice():
    tree = make_tree()
    for reward in (0.0, 0.0):
        hang(tree, tree.root, "a$", reward, 0.8)
    hang(tree, tree.root, "b$", 1.0, 0.5)
    # r(a) = 0, r(b) = 3; J = 1 + 5/3 (2 * -1.2 * .8 + 1.8 * .5)
    assert ib_score(tree.root, 5.0) == pytest.approx(1 + 5 / 3 * (2 * -1.2 * 0.8 + 1.8 * 0.5), abs=1e-6)


def test_row_1_ratio_of_zeros_is_one():
    tree = one_step_tree([0.0, 0.0], [0.9, 0.5])
    assert [ratio(child) for child in tree.nodes[1:]] == [1.0, 1.0]
    mixed = one_step_tree([0.0, 1.0], [0.9, 0.5])
    assert [ratio(child) for child in mixed.nodes[1:]] == pytest.approx([0, 2], abs=1e-7)


def test_t20_equal_rates_say_nothing_whatever_the_counts():
    tree = make_tree()
    for _ in range(4):
        hang(tree, tree.root, "a$", 0.0)
        hang(tree, tree.root, "b$", 0.0)
    assert all(math.log(ratio(node)) == 0 for node in tree.nodes[1:])


def test_the_root_has_no_ratio_and_an_empty_tree_no_score():
    tree = make_tree()
    assert density(tree.root) == 0.0
    with pytest.raises(ValueError, match="root"):
        ratio(tree.root)
    for function in (ib_score, covariance, mean_etas):
        with pytest.raises(ValueError, match="no draws"):
            function(tree.root, 5.0)


def test_an_unscored_node_has_the_density_of_its_parent():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    hang(tree, tree.root, "c|d$", None)
    hang(tree, tree.root, "e$", 0.0)
    c = tree.nodes[3]
    d = next(iter(c.children.values()))
    assert density(tree.root) == density(c) == density(d) == 0.5 and ratio(c) == ratio(d) == 1.0


@exact
@given(trees(), betas)
def test_score_is_entropy_difference_and_covariance_identity(tree, beta):
    """J = (beta+1) H^(s) - beta H^(s|a*) = 1 + beta [Cov + mean mean], from the draws written out one by one."""
    for node in tree.nodes:
        if not node.children:
            continue
        drawn = [child for child in node.children.values() for _ in range(child.draws)]
        pi = np.array([child.pi for child in drawn])
        p = node.wins / node.count if node.count else None
        r = np.array([1.0 if not child.count else (child.wins / child.count + 1e-8) / (p + 1e-8) for child in drawn])
        entropy, conditional = 1 - pi.mean(), 1 - (r * pi).mean()
        assert ib_score(node, beta) == pytest.approx((beta + 1) * entropy - beta * conditional, abs=1e-9)
        gain, confidence = mean_etas(node, beta)
        assert (gain, confidence) == pytest.approx((r.mean() - 1 - 1 / beta, pi.mean()))
        assert covariance(node, beta) == pytest.approx(np.cov(r, pi, ddof=0)[0, 1], abs=1e-9)
        assert ib_score(node, beta) == pytest.approx(1 + beta * (covariance(node, beta) + gain * confidence), abs=1e-9)


@exact
@given(trees())
def test_ratio_is_bounded_by_leaves(tree):
    """r(c) <= M_n / m_c."""
    for node in tree.nodes[1:]:
        assert ratio(node) >= 0
        if node.count:
            assert ratio(node) <= node.parent.count / node.count * (1 + 1e-9)


@exact
@given(trees(rewards=(0.0,)), betas)
def test_all_wrong_groups_rank_by_uncertainty(tree, beta):
    for node in tree.nodes:
        if node.children:
            total = sum(child.draws for child in node.children.values())
            confidence = sum(child.draws * child.pi for child in node.children.values()) / total
            assert ib_score(node, beta) == pytest.approx(1 - confidence)


def test_row_8_hierarchical_densities_weigh_children_by_their_draws():
    tree = unbalanced()
    first, second = tree.root.children.values()
    assert density(tree.root) == pytest.approx(1 / 6) and density(tree.root, HIERARCHICAL) == 0.5
    assert (ratio(first, HIERARCHICAL), ratio(second, HIERARCHICAL)) == pytest.approx((0, 2), abs=1e-6)
    # J = (1 - mean pi) + beta Cov(r, pi) = .3 + 5 * (-.1)
    assert ib_score(tree.root, 5.0, HIERARCHICAL) == pytest.approx(-0.2, abs=1e-6)
    hang(tree, first, "d$", 1.0)  # five draws "d$" and one "b$" at the first child: 1 of its 6 leaves is right
    assert density(first, HIERARCHICAL) == pytest.approx((5 * 1 / 5 + 0) / 6)
    hang(tree, tree.root, "c$", 1.0)  # two of three draws
    assert density(tree.root, HIERARCHICAL) == pytest.approx((1 * 1 / 6 + 2 * 1) / 3)


def test_an_unscorable_trajectory_is_a_draw_for_hierarchical_densities_too():
    """Scores that were read before it came do not hold on: draws 1 and 1 become 2 and 1."""
    tree = make_tree()
    hang(tree, tree.root, "a$", 1.0)
    hang(tree, tree.root, "b$", 0.0)
    assert density(tree.root, HIERARCHICAL) == 0.5
    hang(tree, tree.root, "a$", math.nan)
    assert density(tree.root, HIERARCHICAL) == pytest.approx(2 / 3)


def test_r_squared_golden():
    """D.1's root with R = 1000: r = 4, 0, 0, 0, so mean(r^2 pi) = 16 * .9 / 4 and J = (beta + 1)(1 - .75) - beta (1 - 3.6)."""
    root = one_step_tree([1.0, 0.0, 0.0, 0.0], PI).root
    child = next(iter(root.children.values()))
    assert information_gain(child, 5.0, SQUARED) == pytest.approx(16 - 1.2, abs=1e-5)
    assert ib_score(root, 5.0, SQUARED) == pytest.approx(6 * 0.25 - 5 * (1 - 3.6), abs=1e-5)
    single = one_step_tree([1.0], [0.9]).root
    assert ib_score(single, 5.0, SQUARED) == pytest.approx(0.1, abs=1e-12), "r = 1: the power does not matter"


def test_scorings_are_checked():
    assert Scoring("literal", 1) == LITERAL and hash(LITERAL) == hash(Scoring())
    for bad in ({"density": "pooled"}, {"ratio_power": 3}):
        with pytest.raises(ValueError, match="ratio_power 1 or 2"):
            Scoring(**bad)


@exact
@given(trees() | trees(splits=True), betas)
def test_hierarchical_densities_are_recursive_means_and_make_mean_r_one(tree, beta):
    """The cached values equal the recursion of row 8, unscored draws left out; J = (1 - mean pi) + beta Cov."""

    def recursive(node):
        parts = [(child.draws, recursive(child)) for child in node.children.values()]
        parts = [(weight, value) for weight, value in parts if value is not None]
        if parts:
            return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)
        return node.wins / node.count if node.count else None

    for node in tree.nodes:
        if node.count:
            assert density(node, HIERARCHICAL) == pytest.approx(recursive(node), abs=1e-12)
            assert -1e-12 <= density(node, HIERARCHICAL) <= 1 + 1e-12
        if node.children:
            gain, confidence = mean_etas(node, beta, HIERARCHICAL)
            assert gain == pytest.approx(-1 / beta, abs=1e-6), "mean r = 1"
            expected = 1 - confidence + beta * covariance(node, beta, HIERARCHICAL)
            assert ib_score(node, beta, HIERARCHICAL) == pytest.approx(expected, abs=1e-6)


@exact
@given(trees(independent=True, rewards=(0.0, 1.0)))
def test_both_densities_agree_where_every_trajectory_started_at_the_root(tree):
    for node in tree.nodes:
        assert density(node, HIERARCHICAL) == pytest.approx(density(node), abs=1e-12)
