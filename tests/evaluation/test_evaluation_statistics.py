"""Estimates and intervals against hand-computed values, and against what they claim to be."""

import time
from itertools import combinations
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.evaluation.statistics import (
    Bootstrap,
    IncompleteSamples,
    across_seed_se,
    avg_at_k,
    clustered_se,
    complete,
    pass_at_k,
    pass_rates,
    sample_matrix,
    wilson,
)

RAGGED = [[1, 1, 0, 1], [1, 0], []]
bootstrap = Bootstrap(resamples=2000, confidence=0.95)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (32, 0, 1, 0),
        (32, 1, 1, 1 / 32),
        (32, 3, 8, 367 / 620),
        (5, 2, 3, 0.9),
        (200, 1, 100, 0.5),
        (2000, 7, 1000, 0.9922693669002),
        (10, 3, 5, 11 / 12),  # the plug-in 1 - (1 - c/n)^k would give 0.83193
        (4, 4, 4, 1),
    ],
)
def test_pass_at_k_is_exact(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("n", "c", "k"), [(2, 0, 5), (2, 1, 0), (0, 0, 1)])
def test_pass_at_k_needs_k_samples(n, c, k):
    with pytest.raises(ValueError, match=rf"pass@{k} needs k between 1 and the number of samples, which is {n}"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize("c", [-1, 3])
def test_pass_at_k_refuses_impossible_counts(c):
    with pytest.raises(ValueError, match="right answers among 2 samples"):
        pass_at_k(2, c, 1)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(right, data):
    k = data.draw(st.integers(1, len(right)))
    subsets = list(combinations(right, k))
    assert pass_at_k(len(right), sum(right), k) == pytest.approx(np.mean([any(subset) for subset in subsets]))


def test_pass_rates_by_problem_count_full_rewards_only():
    rewards = np.array([[1, 0, 0, 0.5], [1, 1, 1, 1], [0, 0, 0, 0]])
    assert pass_rates(rewards, 1).tolist() == [0.25, 1, 0]
    assert pass_rates(rewards, 2).tolist() == [0.5, 1, 0]
    with pytest.raises(ValueError, match=r"pass@5 needs k between 1 and .* 4"):
        pass_rates(rewards, 5)
    with pytest.raises(IncompleteSamples, match="11 of 12 samples present"):
        pass_rates(np.where(rewards == 0.5, np.nan, rewards), 2)


def test_avg_at_k_refuses_missing_samples():
    with pytest.raises(IncompleteSamples, match=r"^6 of 12 samples present"):
        avg_at_k(RAGGED, 4)
    assert avg_at_k([[1, 0], [1, 1]], 2) == ("avg@2", 0.75)


@pytest.mark.parametrize(("how", "expected"), [("macro-over-present", 0.625), ("micro", 2 / 3), ("missing-as-wrong", 1 / 3)])
def test_avg_at_k_of_incomplete_samples_is_named(how, expected):
    name, value = avg_at_k(RAGGED, 4, allow_incomplete=how)
    assert name == f"avg@4 ({how})"
    assert value == pytest.approx(expected)


def test_avg_at_k_refuses_what_it_cannot_count():
    with pytest.raises(ValueError, match="'average' is not one of macro-over-present, micro, missing-as-wrong"):
        avg_at_k(RAGGED, 4, allow_incomplete="average")
    with pytest.raises(ValueError, match="has 4 samples, more than k = 3"):
        avg_at_k(RAGGED, 3)
    with pytest.raises(IncompleteSamples, match="0 of 8 samples present"):
        avg_at_k([[], []], 4, allow_incomplete="micro")
    with pytest.raises(IncompleteSamples, match="0 of 0 samples present"):
        avg_at_k([], 4)


def frame(rows):
    return pd.DataFrame(rows, columns=["uid", "sample", "reward"])


def test_sample_matrix_is_in_order_of_problems_and_shows_what_is_missing():
    rows = frame([("b", 1, 1.0), ("b", 0, 0.0), ("a", 0, 1.0)])
    matrix = sample_matrix(rows, 2, ["a", "b", "c"])
    np.testing.assert_array_equal(matrix, [[1, np.nan], [0, 1], [np.nan, np.nan]])
    with pytest.raises(IncompleteSamples, match="3 of 6 samples present"):
        complete(matrix)
    np.testing.assert_array_equal(sample_matrix(rows[:2], 2), [[0, 1]])


def test_sample_matrix_refuses_double_and_surplus_samples():
    rows = frame([("a", 0, 1.0), ("a", 1, 1.0)])
    with pytest.raises(ValueError, match=r"2 samples occur twice, e\.g\. of a; is an input listed twice"):
        sample_matrix(pd.concat([rows, rows]), 2)
    with pytest.raises(ValueError, match="expected 1 problems x 1 samples, but there is also sample 1"):
        sample_matrix(rows, 1)
    with pytest.raises(ValueError, match="there is also problem a"):
        sample_matrix(rows, 2, ["b"])


def test_errors_are_clustered_by_problem():
    problems = np.repeat([[1.0], [0.0]], 32, axis=1).mean(axis=1)[None]  # 2 problems x 32 samples, all right and all wrong
    estimate = bootstrap.estimate(problems)
    assert estimate.value == 0.5
    assert estimate.se_problems == pytest.approx(0.5)  # not 0.0625
    assert (estimate.low, estimate.high) == (0, 1)


def test_one_seed_or_problem_shows_no_spread():
    estimate = bootstrap.estimate(np.array([[0.2, 0.4]]))
    assert estimate.se_seeds is None
    assert across_seed_se([np.array([[0.0, 1.0], [1.0, 1.0]])]) == pytest.approx(0.25)
    assert clustered_se([np.array([[0.2], [0.3]])]) is None


@pytest.mark.parametrize(("right", "low", "high"), [(0, 0, 0.1135), (15, 0.3315, 0.6685), (30, 0.8865, 1)])
def test_wilson(right, low, high):
    assert wilson(right, 30) == pytest.approx((low, high), abs=5e-5)
    assert wilson(right, 30)[0] >= 0
    assert wilson(right, 30)[1] <= 1


@pytest.mark.parametrize(("right", "n"), [(3, 2), (-1, 2), (0, 0)])
def test_wilson_needs_a_proportion(right, n):
    with pytest.raises(ValueError, match="is no proportion"):
        wilson(right, n)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_certain_results_have_a_wilson_interval(value):
    estimate = bootstrap.estimate(np.full((3, 30), value))
    assert (estimate.low, estimate.high) == wilson(30 * int(value), 30)


rates = st.integers(1, 3).flatmap(lambda s: st.integers(1, 6).flatmap(lambda p: arrays(s, p)))


def arrays(seeds, problems):
    return st.lists(st.lists(st.integers(0, 4), min_size=problems, max_size=problems), min_size=seeds, max_size=seeds).map(
        lambda x: np.array(x) / 4
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rates)
def test_an_estimate_is_a_rate_and_the_same_each_time(values):
    small = Bootstrap(200, 0.9)
    estimate = small.estimate(values)
    assert 0 <= estimate.low <= estimate.high <= 1
    assert estimate.value == pytest.approx(values.mean())
    assert estimate == small.estimate(values)
    same = small.difference([values], [values])
    assert (same.value, same.low, same.high, same.verdict) == (0, 0, 0, "not told apart")


def test_problem_spread_gives_the_normal_interval():
    values = np.random.default_rng(0).random((1, 400))
    estimate = bootstrap.estimate(values)
    half = 1.96 * values.std(ddof=1) / sqrt(400)
    assert (estimate.low, estimate.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_seed_spread_is_not_shrunk_by_the_small_number_of_seeds():
    values = np.repeat(np.array([[0.4], [0.5], [0.6]]), 50, axis=1)  # problems are all alike
    draws = bootstrap._means([values])
    assert draws.std() == pytest.approx(across_seed_se([values]), rel=0.05)  # a plain bootstrap has sqrt(2/3) of it


def test_both_levels_are_resampled():
    rng = np.random.default_rng(1)
    problems, seeds = rng.normal(0, 0.2, (1, 100)), np.array([[-0.1], [0.0], [0.1]])
    draws = bootstrap._means([problems + seeds])
    expected = sqrt(problems.var(ddof=1) / 100 + seeds.var(ddof=1) / 3)
    assert draws.std() == pytest.approx(expected, rel=0.08)


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng, small, hits, runs = np.random.default_rng(2), Bootstrap(300, 0.9), 0, 300
    for _ in range(runs):
        values = rng.normal(0, 0.25, (1, 40)) + rng.normal(0, 0.03, (3, 1)) + rng.normal(0, 0.1, (3, 40))
        estimate = small.estimate(values)
        hits += estimate.low <= 0 <= estimate.high
    assert 0.86 <= hits / runs <= 0.96


def test_differences_are_paired_by_problem():
    rng = np.random.default_rng(3)
    reference = rng.random((3, 60)) * 0.8
    better = reference + 0.05 + rng.normal(0, 0.01, (3, 60))
    gain = bootstrap.difference([better], [reference])
    assert gain.value == pytest.approx((better - reference).mean())
    assert gain.verdict == "higher"
    assert bootstrap.difference([reference], [better]).verdict == "lower"
    assert gain.high - gain.low < 0.3 * (bootstrap.estimate(better).high - bootstrap.estimate(better).low)
    assert gain.se_problems == pytest.approx(clustered_se([better - reference]))


def test_one_policy_is_held_against_every_seed():
    trained, base = np.array([[0.5, 0.7], [0.7, 0.9]]), np.array([[0.2, 0.4]])
    gain = bootstrap.difference([trained], [base])
    assert gain.value == pytest.approx(0.4)
    assert gain.se_seeds == pytest.approx(0.1)


def test_ratio_is_paired():
    tokens = np.array([[100.0, 300.0, 50.0]])
    ratio = bootstrap.ratio([tokens / 2], [tokens])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match="has mean 0"):
        bootstrap.ratio([tokens], [tokens * 0])


@pytest.mark.parametrize("shape", [(1, 3), (2, 4)])
def test_what_cannot_be_paired_is_refused(shape):
    with pytest.raises(ValueError, match=r"cannot pair \(3, 4\) with .* compare on the same problems and seeds"):
        bootstrap.difference([np.zeros((3, 4))], [np.zeros(shape)])


def test_benchmarks_weigh_the_same_whatever_their_size():
    small, large = np.array([[1.0, 1.0]]), np.zeros((1, 98))
    estimate = bootstrap.estimate(small, large)
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)
    assert clustered_se([np.array([[0.0, 1.0]]), large]) == pytest.approx(0.25)


def test_problems_of_two_benchmarks_are_drawn_apart():
    values = np.random.default_rng(5).random((1, 50))
    assert bootstrap._means([values, values]).std() == pytest.approx(bootstrap._means([values]).std() / sqrt(2), rel=0.08)


def test_two_thousand_draws_take_less_than_a_second():
    values = np.random.default_rng(4).random((3, 1024))
    started = time.process_time()
    bootstrap.estimate(values)
    assert time.process_time() - started < 1
