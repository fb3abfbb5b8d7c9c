"""GRPO's advantage: the reward of a trajectory, normalised within its group (C.1; IB-TPO's Equation 2).

A_i = (R_i - mean R) / (std R + epsilon), std unbiased, the same for all tokens of trajectory i. Exactly 0 in a group of equal rewards and
for a trajectory that could not be scored, which is left out of mean and std (T19).
"""

from __future__ import annotations

import math

import numpy as np

from ibtpo.advantages.group import reward_std
from ibtpo.tree import ReasoningTree, Trajectory, density


def grpo(tree: ReasoningTree, spec, signals=None) -> list[np.ndarray]:
    """One float64 array of shape (len(trajectory.ids),) per trajectory, in order; spec = config.Advantage (std_ddof, std_epsilon)."""
    mean, std = density(tree.root), reward_std(tree, spec.std_ddof)

    def advantage(trajectory: Trajectory) -> float:
        if std == 0 or math.isnan(trajectory.reward):
            return 0.0
        return (trajectory.reward - mean) / (std + spec.std_epsilon)

    return [np.full(len(t.ids), advantage(t), dtype=np.float64) for t in tree.trajectories]
