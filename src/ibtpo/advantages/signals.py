"""What an estimator may ask of the policy beside the scored tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Signals:
    """Of one tree: an array of shape (len(trajectory.ids),) per trajectory, in order, all at the sampling temperature.

    logprobs: log pi_old of the sampled tokens (nats). reference: log pi_ref of the same tokens. entropy: of pi_old over the full
    vocabulary at each token (nats).
    """

    logprobs: list[np.ndarray]
    reference: list[np.ndarray]
    entropy: list[np.ndarray]
