"""Scores of policies as arrays: what all tables and figures of accuracies share.

avg@k, pass@k: D.2 rows 31 and 32. The base policy is one policy, so it has one seed, whatever seed its rows carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.config.slices import BASE
from ibtpo.evaluation.statistics import complete, pass_rates, sample_matrix
from ibtpo.report.inputs import gather
from ibtpo.report.wording import distinct

BASE_SEED = -1
Strata = list[np.ndarray]  # one array (seeds, problems) per benchmark


@dataclass(frozen=True)
class Scores:
    """`values[method, benchmark]`: rewards, shape (seeds, problems, samples); `titles`: rows by method, the base policy first."""

    titles: dict[str, str]
    benchmarks: tuple[str, ...]
    values: Mapping[tuple[str, str], np.ndarray]

    def seeds(self, method: str) -> int:
        return len(self.values[method, self.benchmarks[0]])

    @property
    def problems(self) -> dict[str, int]:
        return {benchmark: self.values[BASE, benchmark].shape[1] for benchmark in self.benchmarks}

    def means(self, method: str) -> Strata:
        """avg@k of each problem."""
        return [self.values[method, benchmark].mean(axis=2) for benchmark in self.benchmarks]

    def passes(self, method: str, k: int) -> Strata:
        """Unbiased pass@k of each problem."""
        return [np.array([pass_rates(rewards, k) for rewards in self.values[method, benchmark]]) for benchmark in self.benchmarks]


def titled(config: Config, methods: Sequence[str]) -> dict[str, str]:
    """Titles of the base policy and the methods, no two alike."""
    return distinct({BASE: "base policy"} | {method: config.methods[method].title for method in methods})


def policy_seeds(config: Config, methods: Sequence[str]) -> dict[str, tuple[int, ...]]:
    return {BASE: (BASE_SEED,)} | {method: config.seeds for method in methods}


def base_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with BASE_SEED as the seed of the base policy's rows."""
    known = {"method", "seed"} <= set(frame.columns)
    return frame.assign(seed=frame["seed"].mask(frame["method"] == BASE, BASE_SEED)) if known else frame


def read_scores(name: str, config: Config, methods: Sequence[str], frames: Sequence[pd.DataFrame]) -> Scores:
    """Rewards in `scores` artifacts of the base policy and `methods`, for the table or figure `name`.

    Raises IbtpoError naming method/seed/benchmark where there are no rows, or samples are missing or occur twice.
    """
    benchmarks, seeds = config.evaluate.benchmarks, policy_seeds(config, methods)
    expected = [(method, seed, benchmark) for method in seeds for seed in seeds[method] for benchmark in benchmarks]
    keys, rest = ["method", "seed", "benchmark"], ["uid", "sample", "reward"]
    scores = gather(name, [base_seed(frame) for frame in frames], [*keys, *rest], expected)
    groups = {key: rows[rest] for key, rows in scores.groupby(keys) if key in set(expected)}
    uids = {b: sorted({uid for key, rows in groups.items() if key[2] == b for uid in rows["uid"].unique()}) for b in benchmarks}

    def matrix(key: tuple[str, int, str]) -> np.ndarray:
        unscored = groups[key][groups[key]["reward"].isna()]
        try:
            if len(unscored):
                uid, sample = unscored.iloc[0][["uid", "sample"]]
                raise IbtpoError(
                    f"the verifier failed on {len(unscored)} answers, e.g. sample {sample} of {uid}: delete this policy's scores artifact "
                    "and run again; if it fails again, see what it says of this answer (docs/verifiers.md)"
                )
            return complete(sample_matrix(groups[key], config.evaluate.samples, uids[key[2]]))
        except IbtpoError as error:
            raise type(error)(f"{name}, {'/'.join(map(str, key))}: {error}") from error

    values = {(m, b): np.array([matrix((m, seed, b)) for seed in seeds[m]]) for m in seeds for b in benchmarks}
    return Scores(titled(config, methods), benchmarks, values)
