"""What `estimate` does to the advantages of a batch after the estimator: weights of shared steps, then whitening.

Weights (D.2 row 20; TreeRL, arXiv 2506.11902, divides by sqrt |leaves|): a step that n trajectories share occurs n times in the loss, so
its advantage may be divided by n ("once") or by sqrt n ("sqrt"). Whitening (TreePO, C.6): mean 0 and variance 1 over all response
tokens of the batch.
Choices [OURS]: n and the statistics leave out what could not be scored, as everywhere (T19); the variance is the population's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter

import numpy as np

from ibtpo.tree import ReasoningTree

POWERS = {"once": 1.0, "sqrt": 0.5}
ROUNDING = 1e-12  # values that differ by less, relative to the largest, are equal


def shared_weights(trees: Sequence[ReasoningTree], kind: str) -> np.ndarray:
    """1 / n(s)^power of every token of the batch, shape (tokens,); n(s) = scored trajectories through the token's node, at least 1."""
    nodes = chain.from_iterable(trajectory.nodes for tree in trees for trajectory in tree.trajectories)
    counts = np.fromiter(map(attrgetter("count"), nodes), dtype=np.float64)
    return np.maximum(counts, 1.0) ** -POWERS[kind]


def whiten(values: np.ndarray, kept: np.ndarray, gather: Callable[[np.ndarray], np.ndarray] = lambda values: values) -> np.ndarray:
    """`values` (tokens,) with mean 0 and variance 1 over the `kept` (tokens,) of them, 0 elsewhere; all 0 where nothing varies.

    gather: joins the kept values with those that other processes hold.
    """
    inside = gather(values[kept])
    spread = float(inside.std()) if inside.size else 0.0
    white = np.zeros_like(values)
    if spread > ROUNDING * np.abs(inside).max(initial=0.0):
        white[kept] = (values[kept] - inside.mean()) / spread
    return white
