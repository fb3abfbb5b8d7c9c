"""Prefix-shared forward: the distinct tokens of a batch are computed once (torch and transformers only)."""

from ibtpo.prefix.forward import Batch, score, share_prefixes, token_limit, unsupported

__all__ = ["Batch", "score", "share_prefixes", "token_limit", "unsupported"]
