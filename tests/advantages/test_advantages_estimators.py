"""GRPO and IB-TPO advantages: golden values of D.1, T19, D.2 rows 1, 8, 10, 11, 18-24."""

import math

import numpy as np
import pytest
from estimating import advantages, firsts
from helpers import encode, hang, make_tree, one_step_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

exact = settings(derandomize=True, deadline=None, max_examples=50)
PI = (0.9, 0.8, 0.7, 0.6)


def estimate(tree, name="ibtpo", **values):
    return advantages(tree, name, **values)


@pytest.mark.parametrize(
    ("rewards", "local", "glob", "total"),
    [
        ("1000", (2.52, -0.96, -0.84, -0.72), (1.4997, *[-0.4999] * 3), (1.7517, -0.5959, -0.5839, -0.5719)),
        ("0001", (-1.08, -0.96, -0.84, 1.68), (*[-0.4999] * 3, 1.4997), (-0.6079, -0.5959, -0.5839, 1.6677)),
        ("1100", (0.72, 0.64, -0.84, -0.72), (0.8659, 0.8659, -0.8659, -0.8659), (0.9379, 0.9299, -0.9499, -0.9379)),
        ("0000", (-0.18, -0.16, -0.14, -0.12), (0, 0, 0, 0), (-0.018, -0.016, -0.014, -0.012)),
        ("1111", (-0.18, -0.16, -0.14, -0.12), (0, 0, 0, 0), (-0.018, -0.016, -0.014, -0.012)),
    ],
)
def test_d1_golden_advantages(rewards, local, glob, total):
    tree = one_step_tree([float(r) for r in rewards], PI)
    assert firsts(estimate(tree)) == pytest.approx(total, abs=6e-5)
    assert firsts(estimate(tree, local_weight=0.0)) == pytest.approx(glob, abs=6e-5)
    difference = np.subtract(firsts(estimate(tree, local_weight=1.0)), firsts(estimate(tree, local_weight=0.0)))
    assert difference == pytest.approx(local, abs=6e-5)
    assert firsts(estimate(tree, "grpo")) == pytest.approx(glob, abs=6e-5)


def test_d1_unbalanced():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 0.0, 0.8)
    hang(tree, tree.root, "c$", 1.0, 0.6)
    for _ in range(4):
        hang(tree, tree.nodes[1], "d$", 0.0)
    a, c = estimate(tree, local_weight=1.0)[:2]
    a0, c0 = estimate(tree, local_weight=0.0)[:2]
    assert (a - a0)[0] == pytest.approx(-0.96, abs=1e-6) and (c - c0)[0] == pytest.approx(2.88, abs=1e-6)
    std = np.std([0, 1, 0, 0, 0, 0], ddof=1)
    assert a0[0] == pytest.approx((0 - 1 / 6) / (std + 1e-4)) and c0[0] == pytest.approx((1 - 1 / 6) / (std + 1e-4))


def test_row_24_independent_rollouts():
    """A_IB of the first step is (R_i / mean R - 1.2) pi, and -pi/beta elsewhere."""
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0, (0.9, 0.7))
    hang(tree, tree.root, "c|d$", 0.0, (0.5, 0.6))
    local = [(one - zero)[[0, -1]] for one, zero in zip(estimate(tree, local_weight=1.0), estimate(tree, local_weight=0.0), strict=True)]
    assert np.ravel(local) == pytest.approx([(2 - 1.2) * 0.9, -0.7 / 5, -1.2 * 0.5, -0.6 / 5], abs=1e-6)


def test_row_20_a_shared_step_has_one_value_in_all_its_trajectories():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0, 0.9)
    hang(tree, tree.root, "c$", 0.0, 0.5)
    hang(tree, tree.nodes[1], "d$", 0.0, 0.4)
    hang(tree, tree.root, "a|e$", 1.0, 0.1)
    first, _, third, fourth = estimate(tree)
    shared = (2 / 3 - 1 / 2) / (np.std([1, 0, 0, 1], ddof=1) + 1e-4) + 0.1 * (4 / 3 - 1.2) * 0.9
    assert [*first[:2], *third[:2], *fourth[:2]] == pytest.approx([shared] * 6, abs=1e-6)


def test_t19_singleton_and_unbiased_std():
    assert firsts(estimate(one_step_tree([1.0], [0.5]), "grpo")) == [0.0]
    one = one_step_tree([1.0, 0.0, 0.0, 0.0], PI)
    assert firsts(estimate(one, "grpo", std_epsilon=0.0)) == pytest.approx([1.5, -0.5, -0.5, -0.5])
    two = one_step_tree([1.0, 1.0, 0.0, 0.0], PI)
    assert firsts(estimate(two, "grpo", std_epsilon=0.0)) == pytest.approx([0.8660254, 0.8660254, -0.8660254, -0.8660254])


@pytest.mark.parametrize(
    ("rewards", "ddof", "expected"),
    [
        ((1, 0, 0, 0), 0, (1.7320508, *[-0.5773503] * 3)),
        ((1, 0, 0, 0), 1, (1.5, *[-0.5] * 3)),
        ((1, 1, 0, 0), 0, (1, 1, -1, -1)),
        ((1, 1, 0, 0), 1, (0.8660254, 0.8660254, -0.8660254, -0.8660254)),
    ],
)
def test_t19_the_kind_of_std_is_a_config_value(rewards, ddof, expected):
    values = firsts(estimate(one_step_tree(rewards, PI), "grpo", std_ddof=ddof, std_epsilon=0.0))
    assert values == pytest.approx(expected)


@pytest.mark.parametrize("name", ["grpo", "ibtpo"])
@pytest.mark.parametrize("missing", [None, math.nan])
def test_t19_an_unscorable_reward_is_left_out_and_gets_zero(name, missing):
    tree = one_step_tree([1.0, missing, 0.0, 0.0, 0.0], [0.9, 0.5, 0.8, 0.7, 0.6])
    assert firsts(estimate(tree, name, local_weight=0.0)) == pytest.approx([1.4997, 0.0, *[-0.4999] * 3], abs=6e-5)
    assert firsts(estimate(tree, name))[1] == 0.0


def test_an_unscorable_trajectory_gets_zero_on_shared_steps_too():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    hang(tree, tree.root, "a|c$", None)
    hang(tree, tree.root, "d$", 0.0)
    first, second, _ = estimate(tree)
    assert (first[:2] != 0).all() and (second == 0).all()


def test_row_21_equal_groups_keep_the_local_part_unless_masked():
    for reward in (0.0, 1.0):
        tree = one_step_tree([reward] * 4, PI)
        assert firsts(estimate(tree)) == pytest.approx([-0.018, -0.016, -0.014, -0.012])
        assert firsts(estimate(tree, mask_equal_groups=True)) == [0.0] * 4
    mixed = one_step_tree([1.0, 0.0], [0.9, 0.8])
    assert firsts(estimate(mixed, mask_equal_groups=True)) == firsts(estimate(mixed)), "only equal groups are masked"


def test_row_18_pi_is_of_the_first_draw():
    tree = make_tree()
    hang(tree, tree.root, "a$", 0.0, 0.9)
    hang(tree, tree.root, "a$", 0.0, 0.1)
    assert firsts(estimate(tree)) == pytest.approx([-0.018, -0.018])


def test_beta_and_lambda_come_from_the_config():
    tree = one_step_tree([1.0, 0.0], [0.9, 0.8])
    zero = firsts(estimate(tree, local_weight=0.0))
    assert np.subtract(firsts(estimate(tree, beta=1.0, local_weight=0.5)), zero) == pytest.approx([0.0, 0.5 * -2 * 0.8], abs=1e-6)


@exact
@given(
    st.lists(st.sampled_from([0.0, 1.0, 0.1, 0.7, 1 / 3]), min_size=2, max_size=12),
    st.lists(st.integers(1, 4), min_size=12, max_size=12),
)
def test_row_22_without_shared_steps_lambda_0_is_grpo_exactly(rewards, lengths):
    """Bit by bit; trajectories differ in their first letter and share what follows."""
    tree = make_tree()
    for number, reward in enumerate(rewards):
        hang(tree, tree.root, "abcdefghijkl"[number] + "|x" * lengths[number] + "$", reward)
    for ours, grpo in zip(estimate(tree, local_weight=0.0), estimate(tree, "grpo"), strict=True):
        assert (ours == grpo).all()


@exact
@given(trees(independent=True))
def test_row_22_a_shared_step_gets_the_mean_of_its_trajectories(tree):
    """lambda = 0: exactly GRPO where a step is of one trajectory, the mean of GRPO's over its scored trajectories where it is shared."""
    grpo = {t: array for t, array in zip(tree.trajectories, estimate(tree, "grpo"), strict=True)}
    for t, array in zip(tree.trajectories, estimate(tree, local_weight=0.0), strict=True):
        for node, value in zip(t.nodes, array, strict=True):
            through = [other for other in tree.trajectories if node in other.leaf.path and not math.isnan(other.reward)]
            if math.isnan(t.reward):
                assert value == 0
            elif through == [t]:
                assert value == grpo[t][0]
            else:
                assert value == pytest.approx(np.mean([grpo[other][0] for other in through]), abs=1e-9)


@exact
@given(trees(rewards=(0.0, 1.0)))
def test_the_local_part_is_bounded(tree):
    """-(1 + 1/beta) pi <= A_IB <= (G - (1 + 1/beta)) pi, from r <= M_n / m_c."""
    zero, one = estimate(tree, local_weight=0.0), estimate(tree, local_weight=1.0)
    for t, low, high in zip(tree.trajectories, zero, one, strict=True):
        for node, local in zip(t.nodes, high - low, strict=True):
            assert -1.2 * node.pi - 1e-6 <= local <= (len(tree.trajectories) - 1.2) * node.pi + 1e-6


@exact
@given(trees(rewards=(0.0,)))
def test_all_wrong_trees_push_gently_against_confidence(tree):
    """A = -lambda pi / beta everywhere."""
    for t, array in zip(tree.trajectories, estimate(tree), strict=True):
        assert array == pytest.approx([-0.1 * node.pi / 5 for node in t.nodes], abs=1e-12)


def test_values_follow_the_nodes_of_the_tokens():
    tree = make_tree()
    hang(tree, tree.root, "a|bbb|c$", 1.0, (0.9, 0.5, 0.7))
    hang(tree, tree.root, "d$", 0.0)
    array = estimate(tree)[0]
    assert len(array) == len(encode("a|bbb|c$")) and len(set(array[:2])) == len(set(array[2:6])) == len(set(array[6:])) == 1
    assert len(set(array)) == 3
