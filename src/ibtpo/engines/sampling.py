"""Drawing the next token of many rows at once: temperature, then top-k, then top-p, by inverse distribution function.

The distribution is that of transformers' TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper in this order; only the tokens that
top-k keeps are sorted and normalised.
"""

from __future__ import annotations

import torch

from ibtpo.config.models import Sampling


def draw(logits: torch.Tensor, uniforms: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The tokens (rows,) that `uniforms` (rows,), float64 in [0, 1), select from `logits` (rows, vocabulary).

    Tokens share out [0, 1) in the order of their ids: rounding of the logits then moves a border a little, and never swaps two tokens.
    """
    weights, ids = nucleus(logits / sampling.temperature, sampling.top_k, sampling.top_p)
    ids, order = ids.sort(dim=1)
    cumulative = weights.gather(1, order).cumsum(dim=1)
    chosen = torch.searchsorted(cumulative, uniforms[:, None] * cumulative[:, -1:], right=True)
    return ids.gather(1, chosen.clamp_(max=ids.shape[1] - 1))[:, 0]  # past the end only if logits are NaN, which the tree reports


def nucleus(scores: torch.Tensor, top_k: int, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """What top-k and top-p keep of `scores` (rows, vocabulary): (weights, ids), both (rows, candidates), the largest score first.

    weights: float64, not normalised, 0 for what is left out. top_k 0 and top_p 1 keep all.
    """
    best, ids = _best(scores, top_k)
    weights = torch.softmax(best.double(), dim=1)
    if top_p < 1:  # the token that crosses the threshold stays
        weights = weights * (weights.cumsum(dim=1) - weights < top_p)
    return weights, ids


def _best(scores: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    if not 0 < top_k < scores.shape[1]:
        return scores.sort(dim=1, descending=True)
    best, ids = scores.topk(top_k + 1, dim=1)
    least = best[:, top_k - 1 : top_k]
    if bool((best[:, top_k:] == least).any()):  # top-k keeps all that equal the k-th best
        best, ids = scores.topk(int((scores >= least).sum(dim=1).max()), dim=1)
        return best.masked_fill(best < least, -torch.inf), ids
    return best[:, :top_k], ids[:, :top_k]


def log_probability(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Natural log-probability (rows,) of `tokens` (rows,) under softmax(logits), logits (rows, vocabulary)."""
    return torch.log_softmax(logits, dim=1).gather(1, tokens[:, None])[:, 0]
