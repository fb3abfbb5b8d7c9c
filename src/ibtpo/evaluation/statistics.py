"""Estimates from samples of many problems and a few seeds, with intervals and tests that treat a problem, not an answer, as the unit.

avg@k is the mean over problems of the mean of k samples; pass@k the unbiased 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374,
Eq. 1). Samples of one problem are no independent observations, so all uncertainty is of problems and of seeds.

Intervals [OURS]: the spread over problems and the spread over seeds each get Student's quantile for their own degrees of freedom, and
the two half-lengths are added in quadrature (Howe 1974, JASA 69; as MOVER in Zou & Donner 2008, Stat. Med. 27):
    half^2 = (t_problems se_problems)^2 + (t_{S-1} se_seeds)^2
With 3 seeds t is 4.3, so a difference that depends on the luck of single runs is not told apart from 0. The noise of sampling is in both
terms, so the interval errs on the wide side. By simulation (3 seeds, 64 problems, 95%) it covers 95% where the seeds dominate, 97% where
the problems do, 98% where they are alike and over 99% where all is sampling noise; a two-way bootstrap, its deviations of seeds scaled by
sqrt(S / (S - 1)), covers 79% where the seeds dominate. A rate v has the score interval (Wilson 1927, JASA 22) of as many independent
answers as show its half-length, {p : (v - p)^2 <= k p (1 - p)} with k = half^2 / (v (1 - v)): it stays within [0, 1], is wider towards 1/2,
and covers 94% instead of 90% at a mean of 4%. Ratios have theirs on the log scale.

Tests [OURS]: sign flips, paired by problem (`permutation_test`), Holm-corrected over the rows of a table (`holm`).

Arrays have shape (seeds, problems). An estimate over several benchmarks takes one array each (a stratum) and is the plain mean of their
means; the problems of a benchmark are a sample of their own. All rates are fractions in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, exp, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
import pandas as pd

from ibtpo import IbtpoError

LARGEST = 700.0  # exp of more is no float
INCOMPLETE = ("macro-over-present", "micro", "missing-as-wrong")


class IncompleteSamples(IbtpoError):
    """Samples of a problem are missing, so avg@k and pass@k are not defined."""


# ---- values of problems ----------------------------------------------------------------------------------------------------------------


def sample_matrix(frame: pd.DataFrame, samples: int, uids: Iterable[str] | None = None) -> np.ndarray:
    """Rewards of one policy on one benchmark (columns uid, sample, reward), shape (problems, samples), NaN where one is missing.

    `uids`: the problems there should be, in order; without it those of the frame. Raises IbtpoError if a sample occurs twice, or if there
    is a sample or a problem too many.
    """
    twice = frame.duplicated(["uid", "sample"])
    if twice.any():
        raise IbtpoError(f"{int(twice.sum())} samples occur twice, e.g. of {frame.loc[twice, 'uid'].iloc[0]}; is an input listed twice?")
    uids = sorted(frame["uid"].unique()) if uids is None else list(uids)
    wide = frame.pivot(index="uid", columns="sample", values="reward").astype(float)
    surplus = [f"sample {s}" for s in wide.columns if s not in range(samples)] + [f"problem {u}" for u in wide.index if u not in set(uids)]
    if surplus:
        raise IbtpoError(f"expected {len(uids)} problems x {samples} samples, but there is also {surplus[0]}; sample again")
    return wide.reindex(index=uids, columns=range(samples)).to_numpy()


def complete(rewards: np.ndarray) -> np.ndarray:
    """The same array; raises IncompleteSamples if a value is NaN, i.e. missing."""
    present = int(np.count_nonzero(~np.isnan(rewards)))
    if present < rewards.size or not rewards.size:
        raise IncompleteSamples(f"{present} of {rewards.size} samples present; sample and score the rest")
    return rewards


def avg_at_k(samples: Sequence[Sequence[float]], k: int, allow_incomplete: str | None = None) -> tuple[str, float]:
    """Name and value of avg@k over problems with up to k rewards each.

    Raises IncompleteSamples ("6 of 12 samples present") unless `allow_incomplete` says how to count: "macro-over-present" (mean over
    problems with a sample of the mean of those present), "micro" (mean of all samples present) or "missing-as-wrong". The name says so.
    """
    rewards = np.full((len(samples), k), np.nan)
    for row, given in zip(rewards, samples, strict=True):
        if len(given) > k:
            raise IbtpoError(f"a problem has {len(given)} samples, more than k = {k}")
        row[: len(given)] = given
    if allow_incomplete is None:
        return f"avg@{k}", float(complete(rewards).mean())
    if allow_incomplete not in INCOMPLETE:
        raise IbtpoError(f"allow_incomplete: {allow_incomplete!r} is not one of {', '.join(INCOMPLETE)}")
    if np.isnan(rewards).all():
        raise IncompleteSamples(f"0 of {rewards.size} samples present")
    if allow_incomplete == "macro-over-present":
        value = np.nanmean(rewards[~np.isnan(rewards).all(axis=1)], axis=1).mean()
    elif allow_incomplete == "micro":
        value = np.nanmean(rewards)
    else:
        value = np.nan_to_num(rewards).mean()
    return f"avg@{k} ({allow_incomplete})", float(value)


@lru_cache(maxsize=4096)
def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased pass@k of a problem with c right answers among n: 1 - C(n-c, k) / C(n, k), in exact integers.

    Raises IbtpoError unless 1 <= k <= n and 0 <= c <= n: with fewer than k samples there is no unbiased estimate.
    """
    if not 1 <= k <= n:
        raise IbtpoError(f"pass@{k} needs k between 1 and the number of samples, which is {n}: draw more samples or lower k")
    if not 0 <= c <= n:
        raise IbtpoError(f"{c} right answers among {n} samples")
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def pass_rates(rewards: np.ndarray, k: int) -> np.ndarray:
    """pass@k of each problem, shape (problems,), from rewards of shape (problems, samples); a sample is right if its reward is 1."""
    right = np.count_nonzero(complete(rewards) == 1, axis=1)
    return np.array([pass_at_k(rewards.shape[1], int(c), k) for c in right])


def parsed(frame: pd.DataFrame) -> pd.Series:
    """1.0 for each response (row of `scores`) whose boxed answer could be parsed, else 0.0.

    Status "ok" is a parsed answer, right or wrong; every other status is none: no box or not of the asked form (parse_failed), beyond
    the vocabulary (oov), or never read (timeout, error, abstained). For intervals take `frame.assign(reward=parsed(frame))`.
    """
    return (frame["status"] == "ok").astype(float)


def format_rate(frame: pd.DataFrame) -> float:
    """Share of all responses of `frame` (columns of `scores`) whose boxed answer could be parsed; NaN without responses."""
    return float(parsed(frame).mean())


# ---- uncertainty -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A value with its interval. Standard errors are None ("n/a") where a single problem, or a single seed, cannot show any."""

    value: float
    low: float
    high: float
    se_problems: float | None = None
    se_seeds: float | None = None

    @property
    def verdict(self) -> str:
        """What the interval of a difference says, in words."""
        return "higher" if self.low > 0 else "lower" if self.high < 0 else "not told apart"


def clustered_se(strata: Sequence[np.ndarray]) -> float | None:
    """Standard error over problems, with all answers to a problem as one cluster.

    A benchmark of one problem shows no spread and adds none; None if there is no other.
    """
    spreads = [means.var(ddof=1) / len(means) for values in strata if len(means := values.mean(axis=0)) > 1]
    return sqrt(sum(spreads)) / len(strata) if spreads else None


def across_seed_se(strata: Sequence[np.ndarray]) -> float | None:
    """Standard error over seeds of the mean of each seed. None, not 0, with one seed."""
    seeds = np.mean([values.mean(axis=1) for values in strata], axis=0)
    return float(seeds.std(ddof=1) / sqrt(len(seeds))) if len(seeds) > 1 else None


def wilson(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion of n independent cases (Wilson 1927, JASA 22). Raises IbtpoError unless 0 <= right <= n."""
    if not 0 <= right <= n or n == 0:
        raise IbtpoError(f"{right} of {n} is no proportion")
    return _score_interval(right / n, NormalDist().inv_cdf((1 + confidence) / 2) ** 2 / n)


def _score_interval(rate: float, k: float) -> tuple[float, float]:
    """The p with (rate - p)^2 <= k p (1 - p)."""
    half = sqrt(k * rate * (1 - rate) + k * k / 4)
    return max(0.0, (rate + k / 2 - half) / (1 + k)), min(1.0, (rate + k / 2 + half) / (1 + k))


@dataclass(frozen=True)
class Intervals:
    """Estimates with two-sided intervals that cover the truth with probability `confidence`: of any problems and any seeds like these.

    One seed, or one problem, shows no spread and adds none: the interval is then of this one run, or this one problem. Deterministic.
    """

    confidence: float

    def estimate(self, *strata: np.ndarray) -> Estimate:
        """A rate: the mean of the means of arrays (seeds, problems), with its score interval; if it is 0 or 1, Wilson's of the problems.

        Raises IbtpoError if the mean is outside [0, 1]; single values may be, if they are linearised.
        """
        value, half = _mean(strata), self._half(strata)
        if not 0 <= value <= 1:
            raise IbtpoError(f"a rate of {value:g} is outside [0, 1]")
        if 0 < value < 1:
            low, high = _score_interval(value, half**2 / (value * (1 - value)))
        else:
            low, high = wilson(int(value) * _problems(strata), _problems(strata), self.confidence)
        return Estimate(value, low, high, clustered_se(strata), across_seed_se(strata))

    def difference(self, strata: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> Estimate:
        """strata - reference, paired by problem and by seed; a policy with one seed is held against every seed of the other.

        Raises IbtpoError unless both have the same problems, and the same seeds or a single one.
        """
        differences = [a - b for a, b in _paired(strata, reference)]
        value, half = _mean(differences), self._half(differences)
        return Estimate(value, value - half, value + half, clustered_se(differences), across_seed_se(differences))

    def ratio(self, strata: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> Estimate:
        """mean(strata) / mean(reference), paired; errors as `difference`, and IbtpoError if the reference has mean 0.

        Linearised (delta method): the ratio varies as the mean of (a - ratio b) / mean(reference).
        """
        pairs, below = _paired(strata, reference), _mean(reference)
        if below == 0:
            raise IbtpoError("the reference of a ratio has mean 0")
        value = _mean(strata) / below
        linear = [(a - value * b) / below for a, b in pairs]
        half = self._half(linear)
        if value > 0:
            factor = exp(min(LARGEST, half / value))
            low, high = value / factor, value * factor
        else:
            low, high = value - half, value + half
        return Estimate(value, low, high, clustered_se(linear), across_seed_se(linear))

    def _half(self, strata: Sequence[np.ndarray]) -> float:
        """Half-length of the interval of the mean, on its own scale."""
        level = (1 + self.confidence) / 2
        sources = [(clustered_se(strata), _problem_freedom(strata)), (across_seed_se(strata), len(strata[0]) - 1)]
        return sqrt(sum((t_quantile(level, freedom) * se) ** 2 for se, freedom in sources if se))


@lru_cache(maxsize=1024)
def t_quantile(level: float, freedom: float) -> float:
    """Quantile of Student's t distribution; `freedom` need not be whole."""
    from scipy.special import stdtrit  # 0.4 s, which only intervals pay

    return float(stdtrit(freedom, level))


def _problem_freedom(strata: Sequence[np.ndarray]) -> float:
    """Degrees of freedom of `clustered_se` (Welch 1947, Satterthwaite 1946); 0 where there is no spread."""
    shares = [(values.mean(axis=0).var(ddof=1) / values.shape[1], values.shape[1] - 1) for values in strata if values.shape[1] > 1]
    total = sum(share for share, _ in shares)
    return total**2 / sum(share**2 / n for share, n in shares) if total else 0.0


# ---- tests -----------------------------------------------------------------------------------------------------------------------------


def permutation_test(
    strata: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    unit: Literal["problem", "seed"] = "problem",
    resamples: int = 9999,
    seed: int = 0,
) -> float:
    """Two-sided p-value of the difference of the means of `strata` and `reference`, arrays (seeds, problems) each, by sign flips.

    unit "problem": under the null hypothesis the two methods may be swapped on any problem, in all seeds of it at once, since the answers
    of several runs to one problem are one cluster. The test is of the runs at hand: it holds over problems like these, not over
    seeds, whose luck moves all problems of a run together. unit "seed" flips whole seeds, and holds over both; but S seeds allow no p
    below 2 / 2^S, which is 0.25 with three. So with few seeds quote p by problem beside the interval, which has the spread of seeds.

    Exact (all 2^n flips) where these are no more than `resamples` + 1, else by `resamples` random flips and (1 + hits) / (1 + resamples)
    (Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9). Errors as `Intervals.difference`; ValueError for another unit.
    """
    differences = [a - b for a, b in _paired(strata, reference)]
    if unit == "problem":
        shares = np.concatenate([x.mean(axis=0) / x.shape[1] for x in differences])
    elif unit == "seed":
        shares = np.mean([x.mean(axis=1) for x in differences], axis=0)
    else:
        raise ValueError(f"unit {unit!r} is not one of problem, seed")
    moving = shares[shares != 0]
    exact = 2.0 ** len(moving) <= resamples + 1
    if exact:
        shares = moving
        signs = 1 - 2.0 * (np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares)) & 1)
    else:
        signs = _signs(len(shares), resamples, seed)
    rounding = 1e-12 * np.abs(shares).sum()  # sums that are equal count as equal
    hits = int(np.count_nonzero(np.abs(signs @ shares) >= abs(shares.sum()) - rounding))
    return hits / len(signs) if exact else (1 + hits) / (1 + resamples)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Adjusted p-values in the given order: reject where they are <= alpha, and the chance of any false rejection is at most alpha.

    Holm 1979, Scand. J. Stat. 6; for any dependence of the tests. Raises ValueError for a p outside [0, 1].
    """
    p = np.asarray(p_values, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p-values must lie in [0, 1], got {p_values}")
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


@lru_cache(maxsize=8)
def _signs(n: int, resamples: int, seed: int) -> np.ndarray:
    """Random signs, shape (resamples, n): the same for all comparisons of a table."""
    return 1 - 2.0 * np.random.default_rng(seed).integers(2, size=(resamples, n), dtype=np.int8)


def _mean(strata: Sequence[np.ndarray]) -> float:
    return float(np.mean([values.mean() for values in strata]))


def _problems(strata: Sequence[np.ndarray]) -> int:
    return sum(values.shape[1] for values in strata)


def _paired(strata: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    pairs = list(zip(strata, reference, strict=True))
    for a, b in pairs:
        if a.shape[1] != b.shape[1] or (a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0])):
            raise IbtpoError(f"cannot pair {a.shape} with {b.shape} (seeds, problems): compare on the same problems and seeds")
    return pairs
