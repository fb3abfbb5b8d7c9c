"""How case studies are picked: one pure function a rule, from tidy trajectories and picks (forests.py). Nothing is picked by hand.

Each returns what it found, or None where nothing fits. Ties go to the row that comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import combinations

import pandas as pd

from ibtpo.site.forests import KEYS


def overlap(one: list[int], other: list[int]) -> float:
    """2 M / (tokens of both), M the tokens in common stretches (Ratcliff and Obershelp); 1 for equal answers."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def most_alike(trajectories: pd.DataFrame) -> dict | None:
    """The pair of right answers to one problem that differ, with the highest overlap of tokens, then the lowest mean entropy: `first`
    and `second` (rows of `trajectories`), `overlap`, `entropy` (nats, the mean of both).
    """
    found = [
        {"first": one, "second": other, "overlap": overlap(one.ids, other.ids), "entropy": (one.entropy + other.entropy) / 2}
        for one, other in _right_pairs(trajectories)
        if one.ids != other.ids
    ]
    return min(found, key=lambda pair: (-pair["overlap"], pair["entropy"]), default=None)


def identical_share(trajectories: pd.DataFrame) -> float:
    """Share of the pairs of right answers to one problem that are the same, token by token; NaN without pairs."""
    same = [one.ids == other.ids for one, other in _right_pairs(trajectories)]
    return sum(same) / len(same) if same else float("nan")


def highest_entropy(trajectories: pd.DataFrame) -> pd.Series | None:
    """The trajectory with the highest mean entropy."""
    known = trajectories[trajectories["entropy"].notna()]
    return None if known.empty else known.loc[known["entropy"].idxmax()]


def most_contrasting(trajectories: pd.DataFrame) -> dict | None:
    """The problem on which samplers differ most in their share of right answers: `uid`, `shares` (by sampler), `range`."""
    if trajectories.empty:
        return None
    shares = trajectories.groupby(["uid", "sampler"], sort=False)["reward"].mean().unstack()
    spans = shares.max(axis=1) - shares.min(axis=1)
    uid = spans.idxmax()
    return {"uid": uid, "shares": shares.loc[uid].to_dict(), "range": float(spans[uid])}


def latest_success(trajectories: pd.DataFrame) -> pd.Series | None:
    """Of the trees whose first rollouts all failed: the first right answer that came in the latest round."""
    right = trajectories[trajectories["reward"] == 1]
    first = right.drop_duplicates(KEYS)  # rows are in order of creation
    late = first[first["round"] > 0]
    return None if late.empty else late.loc[late["round"].idxmax()]


def deepest_pick(picks: pd.DataFrame) -> pd.Series | None:
    """The pick of the deepest node, then of the latest round."""
    return None if picks.empty else picks.sort_values(["depth", "round"], ascending=False, kind="stable").iloc[0]


def most_picked(picks: pd.DataFrame) -> dict | None:
    """The node that its sampler picked in most rounds: its `tree` (KEYS), `node`, `times`, `rounds`."""
    if picks.empty:
        return None
    rounds = picks.groupby([*KEYS, "node"], sort=False)["round"].agg(list)
    best = rounds.map(len).idxmax()
    return {"tree": dict(zip(KEYS, best, strict=False)), "node": best[-1], "times": len(rounds[best]), "rounds": rounds[best]}


def _right_pairs(trajectories: pd.DataFrame) -> Iterator[tuple]:
    right = trajectories[trajectories["reward"] == 1]
    for _, answers in right.groupby(KEYS, sort=False):
        yield from combinations(answers.itertuples(index=False), 2)
