"""Estimates from samples of many problems and a few seeds, with intervals that treat a problem, not an answer, as the unit.

avg@k is the mean over problems of the mean of k samples; pass@k the unbiased 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374,
Eq. 1). Samples of one problem are no independent observations, so intervals resample problems, not samples. With two or more seeds the
seeds of training are resampled as well: the two-way "pigeonhole" bootstrap (Owen 2007, Ann. Appl. Stat. 1(2)), every resample the product
of a draw of problems, shared by all seeds, and a draw of seeds. Deviations of seed weights are scaled by sqrt(S / (S - 1)) (Rao & Wu
1988, JASA 83), since S is 3 rather than 30 and the plain bootstrap of S values is too narrow by that factor.

Arrays have shape (seeds, problems). An estimate over several benchmarks takes one array each (a stratum) and is the plain mean of their
means; problems are then drawn within each benchmark. All rates are fractions in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

import numpy as np
import pandas as pd

from ibtpo import IbtpoError

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
    """Standard error over problems, with all answers to a problem as one cluster. None if a benchmark has one problem only."""
    means = [values.mean(axis=0) for values in strata]
    if any(len(x) < 2 for x in means):
        return None
    return sqrt(sum(x.var(ddof=1) / len(x) for x in means)) / len(means)


def across_seed_se(strata: Sequence[np.ndarray]) -> float | None:
    """Standard error over seeds of the mean of each seed. None, not 0, with one seed."""
    seeds = np.mean([values.mean(axis=1) for values in strata], axis=0)
    return float(seeds.std(ddof=1) / sqrt(len(seeds))) if len(seeds) > 1 else None


def wilson(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion of n independent cases (Wilson 1927, JASA 22). Raises IbtpoError unless 0 <= right <= n."""
    if not 0 <= right <= n or n == 0:
        raise IbtpoError(f"{right} of {n} is no proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Bootstrap:
    """Percentile bootstrap over problems and seeds.

    The draws depend on the shape of the data and `seed` alone, so what is computed on the same problems and seeds is computed on the same
    draws: differences and ratios are paired by problem and by seed. A policy with one seed is held against every seed of the other.
    """

    resamples: int
    confidence: float
    seed: int = 0

    def estimate(self, *strata: np.ndarray) -> Estimate:
        """Mean of the means of arrays (seeds, problems). Where every problem is 0, or every one 1, the interval is Wilson's."""
        low, high = self._interval(self._means(strata))
        floor, ceiling = (float(np.mean([limit(values) for values in strata])) for limit in (np.min, np.max))
        if floor == ceiling and floor in (0, 1):
            low, high = wilson(int(floor) * _problems(strata), _problems(strata), self.confidence)
        else:
            low, high = max(low, floor), min(high, ceiling)  # scaled seed weights may leave the range of the data
        return Estimate(_mean(strata), low, high, clustered_se(strata), across_seed_se(strata))

    def difference(self, strata: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> Estimate:
        """strata - reference, paired. Raises IbtpoError unless both have the same problems, and the same seeds or a single one."""
        differences = [a - b for a, b in _paired(strata, reference)]
        draws = self._means(strata) - self._means(reference)
        return Estimate(_mean(differences), *self._interval(draws), clustered_se(differences), across_seed_se(differences))

    def ratio(self, strata: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> Estimate:
        """mean(strata) / mean(reference), paired; errors as `difference`, and IbtpoError if the reference has mean 0."""
        _paired(strata, reference)
        if _mean(reference) == 0:
            raise IbtpoError("the reference of a ratio has mean 0")
        return Estimate(_mean(strata) / _mean(reference), *self._interval(self._means(strata) / self._means(reference)))

    def _means(self, strata: Sequence[np.ndarray]) -> np.ndarray:
        """Shape (resamples,)."""
        total = np.zeros(self.resamples)
        for index, values in enumerate(strata):
            seeds, problems = values.shape
            by_seed = _draws(self.resamples, problems, (self.seed, 1, index)) @ values.T / problems
            share = _draws(self.resamples, seeds, (self.seed, 0)) / seeds
            if seeds > 1:
                share = 1 / seeds + (share - 1 / seeds) * sqrt(seeds / (seeds - 1))
            total += (share * by_seed).sum(axis=1)
        return total / len(strata)

    def _interval(self, draws: np.ndarray) -> tuple[float, float]:
        low, high = np.quantile(draws, [(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        return float(low), float(high)


def _draws(resamples: int, n: int, seed: tuple[int, ...]) -> np.ndarray:
    """How often each of n units is in each of n draws with replacement, shape (resamples, n)."""
    drawn = np.random.default_rng(seed).integers(n, size=(resamples, n)) + n * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * n).reshape(resamples, n).astype(float)


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
