"""Offline IB-Scores of policies as arrays: what the table `ibscore` and the figure `ibscores` share.

Protocol: D.2 row 29, Cov with 1/B: row 30. The mean over all step nodes of all problems is a ratio: nodes cluster in problems, and
problems have different numbers of them. So a problem's value is linearised [OURS]: u = R + (sum - R n) / mean n, R = all sums / all n.
The plain mean of u is R; intervals and paired differences of u are those of the ratio to first order (Cochran 1977, Sampling Techniques,
chapter 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.report.inputs import gather
from ibtpo.report.scores import base_seed, policy_seeds, titled
from ibtpo.report.table import Column

MEASURES = {
    "ib_score": Column("IB-Score", decimals=4),
    "covariance": Column("Cov(eta1, eta2)", decimals=5),
    "mean_pi": Column("mean pi", decimals=4),
    "dead": Column.percent("dead nodes"),
}


@dataclass(frozen=True)
class Offline:
    """`steps[method][measure]`, `roots[...]`: shape (seeds, problems), means over nodes; `nodes[method]`: step nodes, (seeds, problems)."""

    titles: dict[str, str]
    steps: Mapping[str, dict[str, np.ndarray]]
    roots: Mapping[str, dict[str, np.ndarray]]
    nodes: Mapping[str, np.ndarray]

    @property
    def problems(self) -> int:
        return next(iter(self.nodes.values())).shape[1]


def read_offline(name: str, config: Config, methods: Sequence[str], frames: Sequence[pd.DataFrame]) -> Offline:
    """Measures from `offline` artifacts of the base policy and `methods`, for the table or figure `name`.

    Raises IbtpoError naming method and seed where there are no rows, rows occur twice or have no value, or problems differ.
    """
    seeds = policy_seeds(config, methods)
    expected = [(method, seed) for method in seeds for seed in seeds[method]]
    columns = ["method", "seed", "uid", "node", "at_root", *MEASURES]
    rows = gather(name, [base_seed(frame) for frame in frames], columns, expected)
    groups = {key: group for key, group in rows.groupby(["method", "seed"]) if key in set(expected)}
    uids = sorted({uid for group in groups.values() for uid in group["uid"].unique()})
    for (method, seed), group in groups.items():
        _check(f"{name}, {method}/{seed}", group, uids)

    def sums(method: str, at_root: bool) -> np.ndarray:
        """Number of nodes and sums of the measures, shape (1 + measures, seeds, problems)."""
        parts = []
        for seed in seeds[method]:
            group = groups[method, seed]
            by_problem = group[group["at_root"] == at_root].astype(dict.fromkeys(MEASURES, float)).groupby("uid")
            table = by_problem[list(MEASURES)].sum().reindex(uids, fill_value=0)
            parts.append([by_problem.size().reindex(uids, fill_value=0).to_numpy(), *table.to_numpy().T])
        return np.array(parts, dtype=float).swapaxes(0, 1)

    steps, roots = ({method: sums(method, at_root) for method in seeds} for at_root in (False, True))
    for method, (counts, *_) in steps.items():
        if not counts.any():
            raise IbtpoError(f"{name}: {method} has no step node that is not terminal; raise offline.problems or offline.seeds")
    means = [{m: dict(zip(MEASURES, linearised(c, s), strict=True)) for m, (c, *s) in part.items()} for part in (steps, roots)]
    return Offline(titled(config, methods), *means, {method: counts for method, (counts, *_) in steps.items()})


def linearised(counts: np.ndarray, sums: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For each array of sums, values of the same shape whose mean is sums.sum() / counts.sum()."""
    rates = [part.sum() / counts.sum() for part in sums]
    return [rate + (part - rate * counts) / counts.mean() for rate, part in zip(rates, sums, strict=True)]


def _check(where: str, group: pd.DataFrame, uids: Sequence[str]) -> None:
    if group.duplicated(["uid", "node"]).any():
        raise IbtpoError(f"{where}: a node occurs twice; is an input listed twice?")
    if group[list(MEASURES)].isna().any(axis=None):
        raise IbtpoError(f"{where}: a node has no value; measure the policy again")
    missing = sorted(set(uids) - set(group["uid"][group["at_root"]]))
    if missing:
        raise IbtpoError(f"{where}: no rows for {len(missing)} of {len(uids)} problems, e.g. {missing[0]}; measure the policy again")
