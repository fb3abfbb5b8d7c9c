"""ERPO (C.7): golden values by hand, each guard, identities."""

import math

import numpy as np
import pytest
from estimating import advantages, random_signals, spec
from helpers import hang, make_tree, one_step_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.advantages import Signals, estimate
from ibtpo.advantages.erpo import _buckets

exact = settings(derandomize=True, deadline=None, max_examples=40)


def signals(gains, entropies):
    """log pi_old - log pi_ref, and H, of each token of each trajectory."""
    logprobs = [np.full(len(row), -0.5) for row in gains]
    return Signals(
        logprobs, [row - np.array(gain) for row, gain in zip(logprobs, gains, strict=True)], [np.array(row) for row in entropies]
    )


def flat(arrays):
    return np.concatenate([np.zeros(0), *arrays])


def normed(values):
    values = np.asarray(values, dtype=float)
    return (values - values.mean()) / values.std()


TWO = one_step_tree([1.0, 0.0], [0.5, 0.5])  # two tokens each; with std_epsilon 0 GRPO's advantages are +-1/sqrt 2
GAINS, EVEN, UNEVEN = [[1, -1], [1, -1]], [[0.7, 0.7], [0.7, 0.7]], [[2, 0], [2, 0]]
A = 1 / math.sqrt(2)


def test_golden_values_with_an_even_gate():
    """One bucket: s~ = 1, -1, 1, -1; W = 1/2; Psi^ = (1, -1, -1, 1)/2 has std 1/2, so Psi = 1, -1, -1, 1; variance A^2 + .04 = .54."""
    values = flat(advantages(TWO, "erpo", signals(GAINS, EVEN), buckets=1, std_epsilon=0.0))
    assert values == pytest.approx(np.array([A + 0.2, A - 0.2, -A - 0.2, -A + 0.2]) / math.sqrt(0.54), abs=1e-6)


def test_golden_values_with_the_entropy_gate():
    """H has z-scores 1, -1, 1, -1: W = 1 / (1 + e^-5) = .9933072 and .0066929; std of Psi^ = .7023903."""
    high, low, std = 0.9933072, 0.0066929, 0.7023903
    assert std == pytest.approx(math.sqrt((high**2 + low**2) / 2), abs=1e-7)
    values = flat(advantages(TWO, "erpo", signals(GAINS, UNEVEN), buckets=1, std_epsilon=0.0))
    psi = np.array([high, -low, -high, low]) / std
    assert values == pytest.approx(normed(np.array([A, A, -A, -A]) + 0.2 * psi), abs=1e-6)


def test_each_number_of_the_configuration_acts():
    values = advantages(TWO, "erpo", signals(GAINS, UNEVEN), buckets=1, std_epsilon=0.0, gate=1.0, eta=0.5, sigma_target=2.0)
    high, low = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))
    psi = 2.0 * np.array([high, -low, -high, low]) / math.sqrt((high**2 + low**2) / 2)
    assert flat(values) == pytest.approx(normed(np.array([A, A, -A, -A]) + 0.5 * psi), abs=1e-6)


@pytest.mark.parametrize(
    ("length", "count", "expected"),
    [
        (4, 2, [0, 1, 1, 1]),
        (10, 10, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]),
        (3, 10, [3, 6, 9]),
        (20, 4, [0] * 4 + [1] * 5 + [2] * 5 + [3] * 6),
        (0, 10, []),
    ],
)
def test_buckets_are_floor_of_k_t_over_length_with_t_from_1_clipped(length, count, expected):
    assert _buckets(length, count).tolist() == expected


def test_progress_is_normalised_within_its_bucket():
    """Bucket 0 holds the first token of each, bucket 1 the rest; another level and scale of the gains in one bucket changes nothing."""
    tree = make_tree()
    for letter, reward in zip("abc", (1.0, 0.0, 0.0), strict=True):
        hang(tree, tree.root, letter * 3 + "$", reward)
    gains = [[1, 2, -1, 0.5], [3, 1, 0, 2], [-1, 0, 4, 1]]
    moved = [[50 + 7 * row[0], *row[1:]] for row in gains]
    one, two, all_in_one = (
        flat(advantages(tree, "erpo", signals(values, [[0.1, 0.9, 0.4, 0.3]] * 3), buckets=buckets))
        for values, buckets in ((gains, 2), (moved, 2), (moved, 1))
    )
    assert one == pytest.approx(two, abs=1e-6) and np.abs(one - all_in_one).max() > 0.01


@exact
@given(trees(), st.integers(0, 5))
def test_eta_0_is_grpo_normalised_over_the_groups_tokens(tree, seed):
    scored = [not math.isnan(t.reward) for t in tree.trajectories]
    grpo = flat(row for row, ok in zip(advantages(tree, "grpo"), scored, strict=True) if ok)
    erpo = advantages(tree, "erpo", random_signals(tree, seed), eta=0.0)
    kept = flat(row for row, ok in zip(erpo, scored, strict=True) if ok)
    if grpo.size and np.ptp(grpo) > 1e-9:
        assert kept == pytest.approx((grpo - grpo.mean()) / grpo.std(), abs=1e-5)
    else:
        assert kept == pytest.approx(np.zeros_like(grpo), abs=1e-5)


@exact
@given(trees(), st.integers(0, 5))
def test_over_the_groups_tokens_the_mean_is_0_and_the_variance_1(tree, seed):
    rows = advantages(tree, "erpo", random_signals(tree, seed))
    kept = flat(row for row, t in zip(rows, tree.trajectories, strict=True) if not math.isnan(t.reward))
    assert kept.sum() == pytest.approx(0, abs=1e-6)
    assert np.abs(kept).max(initial=0) < 1e-5 or kept.var() == pytest.approx(1, abs=1e-5)


@exact
@given(trees(rewards=(1.0,)), st.integers(0, 5))
def test_guard_groups_of_equal_rewards_get_0_whatever_the_signals_say(tree, seed):
    assert not flat(advantages(tree, "erpo", random_signals(tree, seed))).any()


def test_guard_tokens_without_advantage_are_not_active():
    """R = 1, 1/2, 0: the middle one has A = 0, so sgn 0 = 0, and its gains move neither its own Psi nor the std of the others'."""
    tree = one_step_tree([1.0, 0.5, 0.0], [0.5] * 3)
    rows = advantages(tree, "erpo", signals([[1, -1], [1, -1], [1, -1]], [[0.7, 0.7]] * 3), buckets=1, std_epsilon=0.0)
    psi = np.array([1, -1, 0, 0, -1, 1])
    assert flat(rows) == pytest.approx(normed(np.array([1, 1, 0, 0, -1, -1]) + 0.2 * psi), abs=1e-6)
    assert rows[1] == pytest.approx([0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-5])
def test_guard_rounding_noise_at_the_start_does_not_count_as_progress(noise):
    """Policy = reference up to rounding: as with eta = 0. Without the floor the noise would have the weight of true progress."""
    tree = one_step_tree([1.0, 0.0, 0.0, 1.0], [0.5] * 4)
    noisy = random_signals(tree, gain=noise)
    plain = flat(advantages(tree, "erpo", noisy, eta=0.0))
    assert flat(advantages(tree, "erpo", noisy)) == pytest.approx(plain, abs=1e-9)
    if noise:
        assert np.abs(flat(advantages(tree, "erpo", noisy, progress_floor=0.0)) - plain).max() > 0.05


def test_guard_a_bucket_of_noise_among_buckets_of_progress_stays_small():
    """In the first bucket policy and reference agree to 1e-6: with the floor its Psi is about a thousandth, without as large as any."""
    tree = make_tree()
    for letter, reward in zip("abcd", (1.0, 0.0, 0.0, 1.0), strict=True):
        hang(tree, tree.root, letter * 3 + "$", reward)
    gains = [[1e-6, 1, -1, 2], [1e-6, 2, 1, -1], [-1e-6, -2, 1, 1], [-1e-6, 0, -1, 1]]

    def apart(floor):
        """Of the first tokens of the two right answers, which differ in Psi alone."""
        rows = advantages(tree, "erpo", signals(gains, [[0.7] * 4] * 4), buckets=2, progress_floor=floor)
        return abs(rows[0][0] - rows[3][0])

    assert 0 < apart(1e-3) < 1e-3 and apart(0.0) > 0.1


def test_unscorable_trajectories_are_in_no_statistic():
    """Whatever their signals; tokens get 0."""
    tree = one_step_tree([1.0, None, 0.0], [0.5] * 3)
    rows = [
        advantages(tree, "erpo", signals([[1, -1], wild, [1, -1]], [[2, 0], [9, 9], [2, 0]]), std_epsilon=0.0, buckets=1)
        for wild in ([1e3, -7], [0, 0])
    ]
    alone = advantages(TWO, "erpo", signals(GAINS, UNEVEN), std_epsilon=0.0, buckets=1)
    for found in rows:
        assert not found[1].any() and flat([found[0], found[2]]) == pytest.approx(flat(alone))


def test_two_wrong_signals_are_told():
    good = random_signals(TWO)
    for broken, message in [
        (Signals(good.logprobs, good.reference[:1], good.entropy), r"signals.reference does not fit"),
        (Signals(good.logprobs, good.reference, [row[:1] for row in good.entropy]), r"signals.entropy does not fit"),
        (Signals([row * np.nan for row in good.logprobs], good.reference, good.entropy), r"signals.logprobs is not finite"),
        (Signals(good.logprobs, [row - np.inf for row in good.reference], good.entropy), r"signals.reference is not finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimate([TWO], spec("erpo"), [broken])
