"""Shared by the tests of the estimators: one call for all of them, random signals, a tree grown again from other trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from helpers import make_tree

from ibtpo.advantages import NEEDS_SIGNALS, Signals, estimate
from ibtpo.config.methods import Advantage
from ibtpo.tree import ReasoningTree, Trajectory


def spec(name: str, **values) -> Advantage:
    return Advantage(name=name, **values)


def advantages(tree: ReasoningTree, name: str, signals: Signals | None = None, **values) -> list[np.ndarray]:
    """Advantages of one tree; an estimator that needs signals gets random ones unless they are given."""
    if name in NEEDS_SIGNALS and signals is None:
        signals = random_signals(tree)
    return estimate([tree], spec(name, **values), signals and [signals])


def random_signals(tree: ReasoningTree, seed: int = 0, gain: float = 1.0) -> Signals:
    """log pi_old and log pi_ref that differ by about `gain` nats, and an entropy; the same for equal trajectories of a tree."""
    rows = [np.random.default_rng([seed, *(token + 1 for token in t.ids)]).normal(size=(3, len(t.ids))) for t in tree.trajectories]
    return Signals([row[0] for row in rows], [row[0] - gain * row[1] for row in rows], [np.abs(row[2]) for row in rows])


def again(trajectories: Sequence[Trajectory]) -> ReasoningTree:
    """The tree of these trajectories, in this order, all started from the root."""
    tree = make_tree()
    for t in trajectories:
        tree.add(tree.root, t.ids, t.logprobs, t.finished, t.reward, t.status)
    return tree


def firsts(arrays: Sequence[np.ndarray]) -> list[float]:
    """The one value of each trajectory."""
    assert all(len(set(array)) == 1 for array in arrays), "one value a trajectory"
    return [float(array[0]) for array in arrays]
