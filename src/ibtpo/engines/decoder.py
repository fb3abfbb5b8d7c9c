"""One token a row through a model: by the model's own forward, or, for the Llama family, by the same arithmetic in fewer calls.

A small model spends most of a forward on the calls of modules and kernels. `decode_llama` is LlamaForCausalLM, Qwen2ForCausalLM and
Qwen3ForCausalLM of transformers for one token a row, on the weights of their modules; tests compare the two. Query heads that share a key
head are multiplied as one matrix, so that keys and values need not be repeated.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import linear, rms_norm, silu
from transformers import PreTrainedModel

from ibtpo.engines.cache import RowCache

FAMILY = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
LINEAR = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
Decoder = Callable[[PreTrainedModel, torch.Tensor, torch.Tensor, torch.Tensor, RowCache], torch.Tensor]


def decoder(model: PreTrainedModel) -> Decoder:
    """The faster of the two that computes this model: adapters, for one, are left to the model's own forward."""
    family = type(model).__name__ in FAMILY and model.config.hidden_act == "silu"
    plain = family and all(type(layer.get_submodule(name)) is torch.nn.Linear for layer in model.model.layers for name in LINEAR)
    return decode_llama if plain else decode_any


def decode_any(model: PreTrainedModel, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: RowCache) -> torch.Tensor:
    """Logits (rows, vocabulary) after `tokens` (rows,) at `positions` (rows,); mask (rows, capacity) over `cache`, additive."""
    inputs = {"input_ids": tokens[:, None], "position_ids": positions[:, None], "attention_mask": mask[:, None, None]}
    return model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def decode_llama(
    model: PreTrainedModel, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: RowCache
) -> torch.Tensor:
    """The same as `decode_any`, for the models that `decoder` tells."""
    rows, body = len(tokens), model.model
    hidden = body.embed_tokens.weight[tokens]
    cos, sin = (table.transpose(0, 1) for table in body.rotary_emb(hidden, positions[None]))  # (rows, 1, head size)
    half = sin.shape[-1] // 2
    sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)  # rotate_half(x) * sin = roll(x) * (-sin, sin)
    mask = mask[:, None, None]
    for index, layer in enumerate(body.layers):
        attention, mlp = layer.self_attn, layer.mlp
        normed = _norm(hidden, layer.input_layernorm)
        query, key, value = (_linear(normed, module) for module in (attention.q_proj, attention.k_proj, attention.v_proj))
        query, key = query.view(rows, -1, attention.head_dim), key.view(rows, -1, attention.head_dim)
        if hasattr(attention, "q_norm"):
            query, key = _norm(query, attention.q_norm), _norm(key, attention.k_norm)
        both = torch.cat([query * attention.scaling, key], dim=1)
        both = both * cos + both.roll(half, dims=-1) * sin
        query, key = both.split([query.shape[1], key.shape[1]], dim=1)
        keys, values = cache.update(key, value, index)
        scores = torch.matmul(query.reshape(rows, keys.shape[1], -1, attention.head_dim), keys.mT).add_(mask)
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
        hidden = hidden + _linear(torch.matmul(weights, values).view(rows, -1), attention.o_proj)
        normed = _norm(hidden, layer.post_attention_layernorm)
        hidden = hidden + _linear(silu(_linear(normed, mlp.gate_proj)).mul_(_linear(normed, mlp.up_proj)), mlp.down_proj)
    return _linear(_norm(hidden, body.norm), model.lm_head)


def _norm(states: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    return rms_norm(states, module.weight.shape, module.weight, module.variance_epsilon)


def _linear(states: torch.Tensor, module: torch.nn.Linear) -> torch.Tensor:
    return linear(states, module.weight, module.bias)
