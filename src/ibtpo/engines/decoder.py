"""One token a row through a model: by the model's own forward, or, for the Llama family, by the same arithmetic in fewer calls.

A small model spends most of a forward on the calls of modules and kernels. `decode_llama` is LlamaForCausalLM, Qwen2ForCausalLM and
Qwen3ForCausalLM of transformers for one token a row, on the weights of their modules; tests compare the two. Query heads that share a key
head are multiplied as one matrix, so that keys and values need not be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.nn.functional import linear, rms_norm, silu
from transformers import PreTrainedModel

from ibtpo.engines.cache import RowCache

FAMILY = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
LINEAR = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
Decoder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, RowCache], torch.Tensor]


def decoder(model: PreTrainedModel) -> Decoder:
    """The faster of the two that computes this model, as long as its weights stay: adapters, for one, are left to the model itself."""
    family = type(model).__name__ in FAMILY and model.config.hidden_act == "silu"
    if not family or any(type(layer.get_submodule(name)) is not torch.nn.Linear for layer in model.model.layers for name in LINEAR):
        return partial(decode_any, model)
    return partial(decode_llama, model, [_factors(layer.self_attn) for layer in model.model.layers])


def decode_any(model: PreTrainedModel, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: RowCache) -> torch.Tensor:
    """Logits (rows, vocabulary) after `tokens` (rows,) at `positions` (rows,); mask (rows, capacity) over `cache`, additive."""
    inputs = {"input_ids": tokens[:, None], "position_ids": positions[:, None], "attention_mask": mask[:, None, None]}
    return model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def decode_llama(
    model: PreTrainedModel,
    factors: Sequence[torch.Tensor],
    tokens: torch.Tensor,
    positions: torch.Tensor,
    mask: torch.Tensor,
    cache: RowCache,
) -> torch.Tensor:
    """The same as `decode_any`. factors: of each layer, what its query and key heads are multiplied with before they are rotated."""
    rows, body = len(tokens), model.model
    hidden = body.embed_tokens.weight[tokens]
    cos, sin = (table.transpose(0, 1) for table in body.rotary_emb(hidden, positions[None]))  # (rows, 1, head size)
    size = sin.shape[-1]
    sin = torch.cat([-sin[..., : size // 2], sin[..., size // 2 :]], dim=-1)  # rotate_half(x) * sin = roll(x) * (-sin, sin)
    mask = mask[:, None, None]
    for index, (layer, factor) in enumerate(zip(body.layers, factors, strict=True)):
        attention, mlp = layer.self_attn, layer.mlp
        normed = _norm(hidden, layer.input_layernorm)
        both = torch.cat([_linear(normed, attention.q_proj), _linear(normed, attention.k_proj)], dim=1).view(rows, -1, size)
        if hasattr(attention, "q_norm"):
            both = rms_norm(both, (size,), None, attention.q_norm.variance_epsilon)
        both = both * factor
        both = both * cos + both.roll(size // 2, dims=-1) * sin
        heads = attention.config.num_attention_heads
        keys, values = cache.update(both[:, heads:], _linear(normed, attention.v_proj), index)
        query = both[:, :heads].reshape(rows, keys.shape[1], -1, size)
        weights = torch.softmax(torch.matmul(query, keys.mT).add_(mask), dim=-1, dtype=torch.float32).to(values.dtype)
        hidden = hidden + _linear(torch.matmul(weights, values).view(rows, -1), attention.o_proj)
        normed = _norm(hidden, layer.post_attention_layernorm)
        hidden = hidden + _linear(silu(_linear(normed, mlp.gate_proj)).mul_(_linear(normed, mlp.up_proj)), mlp.down_proj)
    return _linear(_norm(hidden, body.norm), model.lm_head)


@torch.no_grad()
def _factors(attention: torch.nn.Module) -> torch.Tensor:
    """(query heads + key heads, head size): the weights of their norms, if there are any, and the scale of the scores on the queries."""
    heads, kv_heads = attention.config.num_attention_heads, attention.config.num_key_value_heads
    factors = attention.q_proj.weight.new_ones(heads + kv_heads, attention.head_dim)
    if hasattr(attention, "q_norm"):
        factors[:heads], factors[heads:] = attention.q_norm.weight, attention.k_norm.weight
    factors[:heads] *= attention.scaling
    return factors


def _norm(states: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    return rms_norm(states, module.weight.shape, module.weight, module.variance_epsilon)


def _linear(states: torch.Tensor, module: torch.nn.Linear) -> torch.Tensor:
    return linear(states, module.weight, module.bias)
