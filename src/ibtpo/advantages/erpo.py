"""ERPO's advantage: GRPO's, plus an implicit progress of each token, gated by its entropy (C.7).

ERPO (arXiv 2603.28204), over the tokens t = 1..|o_i| of the trajectories i of a group, A_i GRPO's advantage:
    s      = beta_prog (log pi_old - log pi_ref)                  implicit progress
    W      = sigmoid(gamma (H - mean H) / (std H + delta))        entropy gate
    s~     = (s - mean_k s) / (std_k s + delta)                   in bucket k = min(floor(K t / |o_i|), K - 1)
    Psi    = sigma_target Psi^ / (std Psi^ + delta), Psi^ = W sgn(A_i) s~, std over the active tokens
    A      = Norm(A_i + eta Psi), Norm: mean 0, variance 1 over the group's tokens
Choices [OURS], the paper's own were not to be had: K, sigma_target, delta; active = of a trajectory with A_i != 0; std of the population;
a group of equal rewards gets 0, for Norm would blow Psi up; at the start s is rounding noise, so std_k s is at least
progress_floor beta_prog, and Psi is 0 while the mean of |s| is below that, for the std of Psi^ would undo the first guard.
Tokens of a trajectory that could not be scored get 0 and are in no statistic (T19).
"""

from __future__ import annotations

import math

import numpy as np

from ibtpo.advantages.group import cut
from ibtpo.advantages.grpo import grpo
from ibtpo.advantages.signals import Signals
from ibtpo.tree import ReasoningTree


def erpo(tree: ReasoningTree, spec, signals: Signals | None = None) -> list[np.ndarray]:
    """One float64 array of shape (len(trajectory.ids),) per trajectory, in order; spec = config.Advantage.

    Raises ValueError if `signals` is missing, does not fit the tree or is not finite.
    """
    if signals is None:
        raise ValueError("erpo needs signals (log-probs, reference log-probs, entropy of each token); pass Signals of the tree")
    logprobs, reference, entropy = (_flat(tree, signals, name) for name in ("logprobs", "reference", "entropy"))
    rows = grpo(tree, spec)
    if not any(row.any() for row in rows):
        return rows
    lengths = [len(row) for row in rows]
    reward = np.concatenate(rows)
    bucket = np.concatenate([_buckets(length, spec.buckets) for length in lengths])
    ok = np.repeat([not math.isnan(t.reward) for t in tree.trajectories], lengths)
    psi = _progress(reward[ok], bucket[ok], (logprobs - reference)[ok], entropy[ok], spec)
    values = np.zeros_like(reward)
    values[ok] = _standard(reward[ok] + spec.eta * psi, 0.0, spec.delta)
    return cut(values, lengths)


def _progress(reward: np.ndarray, bucket: np.ndarray, gain: np.ndarray, entropy: np.ndarray, spec) -> np.ndarray:
    """Psi of the group's tokens, shape (scored tokens,)."""
    progress, floor = spec.progress_weight * gain, spec.progress_floor * spec.progress_weight
    if np.abs(progress).mean() < floor:
        return np.zeros_like(progress)
    for k in np.unique(bucket):
        progress[bucket == k] = _standard(progress[bucket == k], floor, spec.delta)
    gate = np.exp(-np.logaddexp(0.0, -spec.gate * _standard(entropy, 0.0, spec.delta)))  # sigmoid
    raw = gate * np.sign(reward) * progress
    return spec.sigma_target * raw / (raw[reward != 0].std() + spec.delta)


def _standard(values: np.ndarray, floor: float, delta: float) -> np.ndarray:
    return (values - values.mean()) / (max(values.std(), floor) + delta)


def _buckets(length: int, count: int) -> np.ndarray:
    return np.minimum(count * np.arange(1, length + 1) // max(length, 1), count - 1)


def _flat(tree: ReasoningTree, signals: Signals, name: str) -> np.ndarray:
    """One signal of all tokens, shape (tokens,)."""
    rows = [np.asarray(row, dtype=np.float64) for row in getattr(signals, name)]
    if [row.shape for row in rows] != [(len(t.ids),) for t in tree.trajectories]:
        raise ValueError(f"tree {tree.uid!r}: signals.{name} does not fit; give one array per trajectory, one value per token of its ids")
    if not all(np.isfinite(row).all() for row in rows):
        raise ValueError(f"tree {tree.uid!r}: signals.{name} is not finite; check the policy's and the reference's weights")
    return np.concatenate([np.zeros(0), *rows])
