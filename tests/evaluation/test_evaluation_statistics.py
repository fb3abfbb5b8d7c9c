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
    IncompleteSamples,
    Intervals,
    across_seed_se,
    avg_at_k,
    clustered_se,
    complete,
    format_rate,
    holm,
    parsed,
    pass_at_k,
    pass_rates,
    permutation_test,
    sample_matrix,
    t_quantile,
    wilson,
)

RAGGED = [[1, 1, 0, 1], [1, 0], []]
intervals = Intervals(confidence=0.95)


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


def test_format_rate_counts_every_response():
    statuses = ["ok", "ok", "parse_failed", "oov", "timeout", "error", "abstained", "ok"]
    scores = pd.DataFrame({"uid": list("aaaabbbb"), "sample": [0, 1, 2, 3] * 2, "status": statuses, "reward": [1.0, 0.0] * 4})
    assert format_rate(scores) == 3 / 8
    rates = sample_matrix(scores.assign(reward=parsed(scores)), 4).mean(axis=1)
    assert rates.tolist() == [0.5, 0.25]
    assert np.isnan(format_rate(scores[:0]))


def test_t_quantile():
    """Table values of Student's t."""
    for freedom, quantile in [(1, 12.7062), (2, 4.3027), (63, 1.9983), (1e9, 1.9600)]:
        assert t_quantile(0.975, freedom) == pytest.approx(quantile, abs=1e-4)


def test_errors_are_clustered_by_problem():
    problems = np.repeat([[1.0], [0.0]], 32, axis=1).mean(axis=1)[None]  # 2 problems x 32 samples, all right and all wrong
    estimate = intervals.estimate(problems)
    assert estimate.value == 0.5
    assert estimate.se_problems == pytest.approx(0.5)  # not 0.0625
    assert estimate.low < 0.002 and estimate.high > 0.998  # two problems tell nothing


def test_the_interval_by_hand():
    """Two seeds x three problems, additive: se over problems 0.5 / sqrt(3), over seeds 0.25; t with 2 and 1 degrees of freedom."""
    values = np.array([[1.0, 1.5, 2.0], [1.5, 2.0, 2.5]])
    half = sqrt((4.302653 * 0.5 / sqrt(3)) ** 2 + (12.706205 * 0.25) ** 2)
    estimate = intervals.difference([values], [0 * values])
    assert (estimate.value, estimate.se_problems, estimate.se_seeds) == pytest.approx((1.75, 0.5 / sqrt(3), 0.25))
    assert (estimate.low, estimate.high) == pytest.approx((1.75 - half, 1.75 + half), abs=1e-5)


def test_the_interval_of_a_rate_by_hand():
    """One seed, mean 0.25, se 0.05 by four problems: the p with (0.25 - p)^2 = k p (1 - p), k = (3.182446 x 0.05)^2 / (0.25 x 0.75)."""
    values = np.array([[0.25 - 0.05 * sqrt(3), 0.25 - 0.05 * sqrt(3), 0.25 + 0.05 * sqrt(3), 0.25 + 0.05 * sqrt(3)]])
    estimate = intervals.estimate(values)
    assert estimate.low < 0.25 < estimate.high
    for p in (estimate.low, estimate.high):
        assert (0.25 - p) ** 2 == pytest.approx(0.13504 * p * (1 - p), rel=1e-4)


def test_the_interval_of_a_rate_at_the_edge_is_close_to_wilsons():
    """One answer wrong of three seeds x 64 problems: hardly wider than for the last few, which are all right."""
    values = np.ones((3, 64))
    whole = intervals.estimate(values)
    values[1, 7] = 0
    almost = intervals.estimate(values)
    assert (almost.low, almost.high) == pytest.approx((0.886, 1.0), abs=1e-3)
    assert (whole.low, whole.high) == pytest.approx((0.9434, 1.0), abs=1e-3)


def test_a_rate_is_within_0_and_1_but_its_linearised_values_need_not_be():
    values = np.array([[-0.1, 0.2, 1.1]])
    estimate = intervals.estimate(values)
    assert 0 < estimate.low < 0.4 < estimate.high < 1
    with pytest.raises(ValueError, match="a rate of 2 is outside"):
        intervals.estimate(1.6 + values)


def test_one_seed_or_problem_shows_no_spread():
    estimate = intervals.estimate(np.array([[0.2, 0.4]]))
    assert estimate.se_seeds is None
    single = intervals.estimate(np.array([[0.2]]))
    assert (single.low, single.high, single.se_problems) == (0.2, 0.2, None)
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
    estimate = intervals.estimate(np.full((3, 30), value))
    assert (estimate.low, estimate.high) == wilson(30 * int(value), 30)


rates = st.integers(1, 3).flatmap(lambda s: st.integers(1, 6).flatmap(lambda p: arrays(s, p)))


def arrays(seeds, problems):
    return st.lists(st.lists(st.integers(0, 4), min_size=problems, max_size=problems), min_size=seeds, max_size=seeds).map(
        lambda x: np.array(x) / 4
    )


@settings(derandomize=True, deadline=None, max_examples=100)
@given(rates, st.sampled_from([0.5, 0.95, 0.9999]))
def test_an_estimate_is_a_rate_and_the_same_each_time(values, confidence):
    intervals = Intervals(confidence)
    estimate = intervals.estimate(values)
    assert 0 <= estimate.low <= estimate.high <= 1
    assert estimate.low - 1e-12 <= estimate.value <= estimate.high + 1e-12
    assert estimate.value == pytest.approx(values.mean())
    assert estimate == intervals.estimate(values)
    mirrored = intervals.estimate(1 - values)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - estimate.high, 1 - estimate.low))
    same = intervals.difference([values], [values])
    assert (same.value, same.low, same.high, same.verdict) == (0, 0, 0, "not told apart")


def test_problem_spread_gives_the_normal_interval():
    values = np.random.default_rng(0).random((1, 400))
    estimate = intervals.estimate(values)
    half = 1.96 * values.std(ddof=1) / sqrt(400)
    assert (estimate.low, estimate.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.05 * half)


REGIMES = {  # standard errors from problems, from seeds and from noise; how wide the interval may be on average, in true standard errors
    "problems dominate": (1, 0, 0.3, 1.25 * 3.92),
    "both alike": (1, 1, 0.3, 7),
    "seeds dominate": (0.02, 1, 0.05, 8),  # the t interval of three values is 2 x 3.81 wide
    "noise only": (0, 0, 1, 9),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_intervals_of_three_seeds_cover_the_truth(regime):
    """Nominal 95%: at least 93% in 1500 runs (Monte Carlo error 0.6 points) in every regime, by no wider an interval than needed."""
    problems, seeds, noise, widest = REGIMES[regime]
    rng, hits, width, runs, nothing = np.random.default_rng(2), 0, 0.0, 1500, [np.zeros((3, 64))]
    for _ in range(runs):
        values = rng.normal(0, problems * 8, (1, 64)) + rng.normal(0, seeds * sqrt(3), (3, 1)) + rng.normal(0, noise * sqrt(192), (3, 64))
        estimate = intervals.difference([values], nothing)
        hits += estimate.low <= 0 <= estimate.high
        width += (estimate.high - estimate.low) / sqrt(problems**2 + seeds**2 + noise**2)
    assert hits / runs >= 0.93
    assert width / runs <= widest


@pytest.mark.parametrize(("level", "problems", "seeds"), [(0, 1.5, 0.05), (0, 0.2, 0.8), (-3.5, 1.5, 0.05), (-3.5, 0.2, 0.8)])
def test_intervals_of_rates_cover_the_truth(level, problems, seeds):
    """avg@32 of rates around 50% and around 4-7%, whose logits are normal over problems or over seeds: at least 92.5% in 800 runs."""
    normal = np.random.default_rng(0).normal(level, sqrt(problems**2 + seeds**2), 1_000_000)
    truth, rng, hits, runs = (1 / (1 + np.exp(-normal))).mean(), np.random.default_rng(3), 0, 800
    for _ in range(runs):
        logits = level + rng.normal(0, problems, (1, 64)) + rng.normal(0, seeds, (3, 1))
        estimate = intervals.estimate(rng.binomial(32, 1 / (1 + np.exp(-logits))) / 32)
        hits += estimate.low <= truth <= estimate.high
    assert hits / runs >= 0.925


def test_differences_are_paired_by_problem():
    rng = np.random.default_rng(3)
    reference = rng.random((3, 60)) * 0.8
    better = reference + 0.05 + rng.normal(0, 0.01, (3, 60))
    gain = intervals.difference([better], [reference])
    assert gain.value == pytest.approx((better - reference).mean())
    assert gain.verdict == "higher"
    assert intervals.difference([reference], [better]).verdict == "lower"
    assert gain.high - gain.low < 0.3 * (intervals.estimate(better).high - intervals.estimate(better).low)
    assert gain.se_problems == pytest.approx(clustered_se([better - reference]))


def test_one_policy_is_held_against_every_seed():
    trained, base = np.array([[0.5, 0.7], [0.7, 0.9]]), np.array([[0.2, 0.4]])
    gain = intervals.difference([trained], [base])
    assert gain.value == pytest.approx(0.4)
    assert gain.se_seeds == pytest.approx(0.1)


def test_ratio_is_paired():
    tokens = np.array([[100.0, 300.0, 50.0]])
    ratio = intervals.ratio([tokens / 2], [tokens])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((0.5, 0.5, 0.5))
    zero = intervals.ratio([tokens * 0], [tokens])
    assert (zero.value, zero.low, zero.high) == (0, 0, 0)
    with pytest.raises(ValueError, match="has mean 0"):
        intervals.ratio([tokens], [tokens * 0])


def test_the_interval_of_a_ratio_covers_the_truth():
    """Tokens of 40 problems: numerator and denominator share the problem's length; at least 93% in 1000 runs."""
    rng, hits, runs = np.random.default_rng(7), 0, 1000
    for _ in range(runs):
        length = rng.gamma(4, 25, (1, 40))
        ratio = intervals.ratio([length * rng.normal(0.6, 0.2, (1, 40))], [length * rng.normal(1, 0.2, (1, 40))])
        hits += ratio.low <= 0.6 <= ratio.high
    assert hits / runs >= 0.93


@pytest.mark.parametrize("shape", [(1, 3), (2, 4)])
def test_what_cannot_be_paired_is_refused(shape):
    with pytest.raises(ValueError, match=r"cannot pair \(3, 4\) with .* compare on the same problems and seeds"):
        intervals.difference([np.zeros((3, 4))], [np.zeros(shape)])
    with pytest.raises(ValueError, match=r"cannot pair \(3, 4\)"):
        permutation_test([np.zeros((3, 4))], [np.zeros(shape)])


def test_benchmarks_weigh_the_same_whatever_their_size():
    small, large = np.array([[1.0, 1.0]]), np.zeros((1, 98))
    estimate = intervals.estimate(small, large)
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)
    assert clustered_se([np.array([[0.0, 1.0]]), large]) == pytest.approx(0.25)


def test_a_benchmark_of_one_problem_adds_no_spread_and_takes_none_away():
    single, pair = np.array([[0.3]]), np.array([[0.0, 1.0]])
    assert clustered_se([single, pair]) == pytest.approx(0.25)
    estimate = intervals.estimate(single, pair)
    assert estimate.low < estimate.value < estimate.high


def test_problems_of_two_benchmarks_count_apart():
    """Welch-Satterthwaite: the same spread in two benchmarks has twice the degrees of freedom and 1 / sqrt(2) of the error."""
    values = np.random.default_rng(5).normal(size=(1, 50))
    one, two = (intervals.difference(strata, [0 * part for part in strata]) for strata in ([values], [values, values]))
    ratio = t_quantile(0.975, 98) / t_quantile(0.975, 49) / sqrt(2)
    assert (two.high - two.low) / (one.high - one.low) == pytest.approx(ratio)


class TestPermutation:
    """Sign flips by problem; means over seeds first."""

    def test_exact_by_hand(self):
        """Differences 3, 2, 1: of 8 sign patterns only the two of equal signs reach |mean| = 2. With 3, -1, 0 both patterns + - and - +
        reach |2|, and so do + + and - -: p = 1."""
        assert permutation_test([np.array([[3.0, 2.0, 1.0]])], [np.zeros((1, 3))]) == 2 / 8
        assert permutation_test([np.array([[3.0, -1.0, 0.0]])], [np.zeros((1, 3))]) == 1

    def test_no_difference_is_no_evidence(self):
        values = np.random.default_rng(0).random((3, 20))
        assert permutation_test([values], [values]) == 1
        assert permutation_test([values], [values[:, ::-1]]) == 1  # differences cancel

    @pytest.mark.parametrize("problems", [8, 40])
    def test_it_agrees_with_scipy(self, problems):
        """scipy's paired test, exact with 8 problems, random with 40, on means over three seeds."""
        scipy = pytest.importorskip("scipy.stats")
        rng = np.random.default_rng(problems)
        reference = rng.random((3, problems))
        values = reference + rng.normal(0.04, 0.3, (3, problems))
        expected = scipy.permutation_test(
            (values.mean(axis=0), reference.mean(axis=0)), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=9999, rng=1
        )
        tolerance = 1e-12 if problems == 8 else 0.02
        assert permutation_test([values], [reference]) == pytest.approx(expected.pvalue, abs=tolerance)

    def test_random_flips_agree_with_all_flips(self):
        values = np.random.default_rng(4).normal(0.3, 1, (2, 13))
        exact = permutation_test([values], [np.zeros((2, 13))])
        assert permutation_test([values], [np.zeros((2, 13))], resamples=8000) == pytest.approx(exact, abs=0.02)
        assert 0.01 < exact < 0.9

    def test_benchmarks_weigh_alike(self):
        """Differences 1 in a benchmark of one problem, -1 and 2 in one of two: shares 1, -0.5 and 1 of Avg, whose sums are 2.5, 1.5, 0.5
        and 0.5, half of them >= 1.5. Weighed by problem they would be 4, 2, 2 and 0, with p = 0.75."""
        assert permutation_test([np.array([[1.0]]), np.array([[-1.0, 2.0]])], [np.zeros((1, 1)), np.zeros((1, 2))]) == 0.5

    def test_by_seed_it_cannot_be_small(self):
        values = np.random.default_rng(1).random((3, 50)) + 1
        assert permutation_test([values], [np.zeros((3, 50))], unit="seed") == 0.25
        assert permutation_test([values], [np.zeros((3, 50))]) == 1e-4
        with pytest.raises(ValueError, match="'answer' is not one of problem, seed"):
            permutation_test([values], [values], unit="answer")

    @pytest.mark.parametrize("problems", [9, 40])
    def test_false_rejections_are_as_rare_as_they_should_be(self, problems):
        """Two methods whose rates on a problem are drawn alike, three seeds that share them, 8 samples: exact and random flips at 5%
        reject 5% of 1500 comparisons at most, up to twice the Monte Carlo error."""
        rng, hits, runs, alpha = np.random.default_rng(problems), 0, 1500, 0.05
        for _ in range(runs):
            difficulty = rng.beta(1, 1, problems)
            first, second = (np.clip(difficulty + rng.normal(0, 0.2, problems), 0, 1) for _ in range(2))
            a, b = (rng.binomial(8, np.tile(rate, (3, 1))) / 8 for rate in (first, second))
            hits += permutation_test([a], [b], resamples=599) <= alpha
        assert hits / runs <= alpha + 2 * sqrt(alpha * (1 - alpha) / runs)
        assert hits / runs >= 0.03  # nor is it blunt

    def test_it_finds_what_is_there(self):
        rng = np.random.default_rng(6)
        p = [permutation_test([rng.normal(0.5, 1, (3, 60))], [np.zeros((3, 60))], resamples=999) for _ in range(50)]
        assert np.mean(np.array(p) <= 0.01) > 0.9

    def test_the_luck_of_runs_is_the_intervals_business(self):
        """Methods that are alike, runs that are not: by problem the runs differ, the interval and the flips by seed leave methods be."""
        rng, runs, told, by_problem, by_seed = np.random.default_rng(8), 300, 0, 0, 0
        for _ in range(runs):
            values, nothing = rng.normal(0, 0.1, (3, 1)) + rng.normal(0, 0.2, (3, 60)), [np.zeros((3, 60))]
            told += intervals.difference([values], nothing).verdict != "not told apart"
            by_problem += permutation_test([values], nothing, resamples=199) <= 0.05
            by_seed += permutation_test([values], nothing, unit="seed") <= 0.05
        assert by_seed == 0 and told / runs <= 0.05 + 2 * sqrt(0.05 * 0.95 / runs) < 0.5 < by_problem / runs


class TestHolm:
    def test_by_hand(self):
        """The values of R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
        assert holm([0.5, 0.6]) == pytest.approx([1, 1])
        assert holm([0.04]) == pytest.approx([0.04])
        assert holm([]).shape == (0,)

    @settings(derandomize=True, deadline=None, max_examples=100)
    @given(st.lists(st.integers(0, 1000), min_size=1, max_size=9))
    def test_it_is_between_each_and_bonferroni(self, parts):
        p = np.array(parts) / 1000
        adjusted = holm(p)
        assert (adjusted >= p).all() and (adjusted <= np.minimum(1, len(p) * p) + 1e-12).all()
        assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()

    def test_no_false_rejection_in_a_family_of_eight(self):
        """Eight methods against one reference, all alike: any false rejection in at most 5% of 600 tables, up to twice the Monte Carlo
        error. Uncorrected it is far more."""
        rng, runs, corrected, single = np.random.default_rng(9), 600, 0, 0
        for _ in range(runs):
            reference = rng.normal(size=(3, 30))
            p = [permutation_test([rng.normal(size=(3, 30))], [reference], resamples=399) for _ in range(8)]
            corrected += holm(p).min() <= 0.05
            single += min(p) <= 0.05
        assert corrected / runs <= 0.05 + 2 * sqrt(0.05 * 0.95 / runs)
        assert single / runs > 0.15

    @pytest.mark.parametrize("p", [[0.1, 1.1], [-0.1], [float("nan")]])
    def test_it_wants_probabilities(self, p):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            holm(p)


def test_a_whole_table_takes_less_than_three_seconds():
    """Table 1: 8 methods x (4 benchmarks, their Avg, 6 pass@k, a difference and its p), 3 seeds x 64 problems x 32 samples."""
    rng = np.random.default_rng(4)
    methods = [[rng.binomial(1, 0.5, (3, 64, 32)) for _ in range(4)] for _ in range(8)]
    started = time.process_time()
    means = [[rewards.mean(axis=2) for rewards in method] for method in methods]
    for method, rewards in zip(means, methods, strict=True):
        for values in method:
            intervals.estimate(values)
        intervals.estimate(*method)
        for k in (1, 2, 4, 8, 16, 32):
            intervals.estimate(*([np.array([pass_rates(seed, k) for seed in benchmark]) for benchmark in rewards]))
        intervals.difference(method, means[0])
    holm([permutation_test(method, means[0]) for method in means[1:]])
    assert time.process_time() - started < 3
