"""What the estimators share: the spread of a group's rewards, and the cut of a flat array into trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ibtpo.tree import ReasoningTree
from ibtpo.tree.statistics import effective, scored_rewards


def reward_std(tree: ReasoningTree, ddof: int) -> float:
    """Std (ddof 1: unbiased, D.2 row 22) of the scored rewards; exactly 0 where they are all equal or fewer than two (T19)."""
    return float(np.std(scored_rewards(tree), ddof=ddof)) if effective(tree) else 0.0


def cut(values: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """`values` (tokens,) as consecutive pieces of the given lengths, which sum to the number of tokens."""
    return [values[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]
