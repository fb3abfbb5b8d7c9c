"""Attention over a trie of tokens, as an attention implementation of transformers.

[OURS]; see `ibtpo.prefix.trie`. Two ways: keys and values of each sequence are gathered from the distinct tokens, then PyTorch's own kernel
runs (`Gather`); or FlexAttention, where nothing is gathered and blocks of tokens that do not see each other are left out (`Flex`). Without
a trie (generation, a plain forward) it is transformers' SDPA.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from ibtpo.prefix.trie import Bucket, Trie

NAME = "ibtpo_prefix"


@dataclass(frozen=True)
class Gather:
    """A bucket on the device: queries (S, Q), keys (S, K), real (n,) of the S * Q, mask (S, 1, Q, K) or None for the causal one."""

    queries: torch.Tensor
    keys: torch.Tensor
    real: torch.Tensor
    mask: torch.Tensor | None

    @classmethod
    def of(cls, bucket: Bucket, device: torch.device) -> Gather:
        visible = bucket.visible
        arrays = (bucket.queries, bucket.keys, bucket.real.ravel().nonzero()[0])
        return cls(
            *(torch.from_numpy(array).to(device) for array in arrays), None if visible is None else torch.from_numpy(visible).to(device)
        )


@dataclass(frozen=True)
class Flex:
    """A trie on the device, for FlexAttention: a token sees those at its position or before it that its sequence holds."""

    mask: BlockMask

    @classmethod
    def of(cls, trie: Trie, device: torch.device) -> Flex:
        first, last, position = (torch.from_numpy(array).to(device) for array in (trie.first, trie.last, trie.positions))

        def sees(batch, head, query, key):
            held = (first[key] <= first[query]) & (first[query] <= last[key])
            return held & (position[key] <= position[query])

        return cls(create_block_mask(sees, None, None, len(first), len(first), device=device, _compile=device.type == "cuda"))


@cache
def _kernel(device: str):
    """FlexAttention: compiled on a GPU, which makes it fast; on a CPU it is the definition, without gradients."""
    return torch.compile(flex_attention, dynamic=True) if device == "cuda" else flex_attention


Sharing = list[Gather] | Flex


def prefix_attention(module, query, key, value, attention_mask, prefix: Sharing | None = None, scaling=None, dropout=0.0, **kwargs):
    """query (1, H, N, D), key and value (1, H_kv, N, D) of the distinct tokens -> (1, N, H, D), None."""
    if prefix is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs)
    if isinstance(prefix, Flex):
        grouped = key.shape[1] < query.shape[1]
        out = _kernel(query.device.type)(query, key, value, block_mask=prefix.mask, scale=scaling, enable_gqa=grouped)
        return out.transpose(1, 2).contiguous(), None
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    done = [_attend(query, key, value, gather, scaling, dropout) for gather in prefix]
    return torch.cat(done)[None], None


def _attend(query, key, value, gather: Gather, scaling: float | None, dropout: float) -> torch.Tensor:
    """(n, H, D): the real queries of a bucket, in order."""
    q, k, v = (_rows(states, index) for states, index in ((query, gather.queries), (key, gather.keys), (value, gather.keys)))
    if k.shape[1] < q.shape[1]:  # grouped queries
        k, v = (states.repeat_interleave(q.shape[1] // states.shape[1], dim=1) for states in (k, v))
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=gather.mask, is_causal=gather.mask is None, scale=scaling, dropout_p=dropout
    )
    return out.transpose(1, 2).flatten(0, 1).index_select(0, gather.real)


def _rows(states: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """states (N, H, D), index (S, L) -> (S, H, L, D)."""
    return states.index_select(0, index.flatten()).unflatten(0, index.shape).transpose(1, 2)


AttentionInterface.register(NAME, prefix_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
