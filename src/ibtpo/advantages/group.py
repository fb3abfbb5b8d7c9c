"""The spread of a group's rewards, shared by the estimators."""

from __future__ import annotations

import numpy as np

from ibtpo.tree import ReasoningTree
from ibtpo.tree.statistics import effective, scored_rewards


def reward_std(tree: ReasoningTree, ddof: int) -> float:
    """Std (ddof 1: unbiased, D.2 row 22) of the scored rewards; exactly 0 where they are all equal or fewer than two (T19)."""
    return float(np.std(scored_rewards(tree), ddof=ddof)) if effective(tree) else 0.0
