"""Advantage estimators, by name, and what a batch goes through.

An estimator is a pure function `fn(tree, spec, signals=None) -> list[np.ndarray]`, spec = config.Advantage: one float64 array of shape
(len(trajectory.ids),) per trajectory, in order. A trajectory that could not be scored (reward NaN) gets 0 and is left out of all
statistics. How to add one: docs/adding-a-method.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ibtpo.advantages.erpo import erpo
from ibtpo.advantages.group import cut
from ibtpo.advantages.grpo import grpo
from ibtpo.advantages.ibtpo import ibtpo
from ibtpo.advantages.signals import Signals
from ibtpo.advantages.treepo import treepo
from ibtpo.advantages.treerl import treerl
from ibtpo.advantages.weights import shared_weights, whiten
from ibtpo.tree import ReasoningTree

ADVANTAGES = {"grpo": grpo, "ibtpo": ibtpo, "treerl": treerl, "treepo": treepo, "erpo": erpo}
NEEDS_SIGNALS = frozenset({"erpo"})  # estimators that look at the policy's log-probs and entropy

__all__ = ["ADVANTAGES", "NEEDS_SIGNALS", "Signals", "estimate"]


def estimate(
    trees: Sequence[ReasoningTree],
    spec,
    signals: Sequence[Signals] | None = None,
    gather: Callable[[np.ndarray], np.ndarray] = lambda values: values,
) -> list[np.ndarray]:
    """Advantages of a batch: all trajectories of all trees in order, one float64 array of shape (len(trajectory.ids),) each.

    The estimator `spec.name`, then spec.node_weight, then spec.whiten (both in weights.py). signals: one per tree, for NEEDS_SIGNALS.
    gather: joins values (n,) with those of the batch's trees in other processes; whitening is over all of them.
    Raises ValueError for signals that are missing or do not fit the trees.
    """
    if signals is not None and len(signals) != len(trees):
        raise ValueError(f"signals of {len(signals)} trees for {len(trees)} trees; give one Signals per tree, in order")
    estimator = ADVANTAGES[spec.name]
    if signals is None:
        rows = [row for tree in trees for row in estimator(tree, spec)]
    else:
        rows = [row for tree, of_tree in zip(trees, signals, strict=True) for row in estimator(tree, spec, of_tree)]
    if not rows or (spec.node_weight == "trajectory" and not spec.whiten):
        return rows
    lengths = [len(row) for row in rows]
    values = np.concatenate(rows)
    if spec.node_weight != "trajectory":
        values = values * shared_weights(trees, spec.node_weight)
    if spec.whiten:
        rewards = [trajectory.reward for tree in trees for trajectory in tree.trajectories]
        values = whiten(values, np.repeat(~np.isnan(rewards), lengths), gather)
    return cut(values, lengths)
