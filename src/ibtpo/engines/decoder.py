"""One token a row through a model: by the model's own forward, or, for the Llama family, by the same arithmetic in fewer calls.

A small model spends most of a forward on the calls of modules and kernels. `decode_llama` is LlamaForCausalLM, Qwen2ForCausalLM and
Qwen3ForCausalLM of transformers for one token a row, on the weights of their modules; tests compare the two. Query heads that share a key
head are multiplied as one matrix, so that keys and values need not be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn.functional import linear, rms_norm, silu
from transformers import PreTrainedModel

from ibtpo.engines.cache import RowCache

FAMILY = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
LINEAR = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
MOVING = ("dynamic", "longrope")  # rotary frequencies that depend on the length
Decoder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, RowCache], torch.Tensor]


def decoder(model: PreTrainedModel) -> Decoder:
    """The faster of the two that computes this model, as long as its weights stay: adapters, for one, are left to the model itself."""
    family = type(model).__name__ in FAMILY and model.config.hidden_act == "silu" and model.model.rotary_emb.rope_type not in MOVING
    if not family or any(type(layer.get_submodule(name)) is not torch.nn.Linear for layer in model.model.layers for name in LINEAR):
        return partial(decode_any, model)
    return partial(decode_llama, Llama(model))


def decode_any(model: PreTrainedModel, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: RowCache) -> torch.Tensor:
    """Logits (rows, vocabulary) after `tokens` (rows,) at `positions` (rows,); mask (rows, capacity) over `cache`, additive."""
    inputs = {"input_ids": tokens[:, None], "position_ids": positions[:, None], "attention_mask": mask[:, None, None]}
    return model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


class Llama:
    """The weights of a model of the family, as they are used: looking them up in modules takes as long as a small product."""

    @torch.no_grad()
    def __init__(self, model: PreTrainedModel):
        config, body = model.config, model.model
        self.embedding, self.norm, self.head = body.embed_tokens.weight, _norm(body.norm), _linear(model.lm_head)
        self.heads, self.kv_heads, self.size = config.num_attention_heads, config.num_key_value_heads, body.layers[0].self_attn.head_dim
        self.layers = [
            (
                _norm(layer.input_layernorm),
                *map(_linear, (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj, layer.self_attn.o_proj)),
                _factors(layer.self_attn),
                layer.self_attn.q_norm.variance_epsilon if hasattr(layer.self_attn, "q_norm") else None,
                _norm(layer.post_attention_layernorm),
                *map(_linear, (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj)),
            )
            for layer in body.layers
        ]
        self.frequencies, self.scale = body.rotary_emb.inv_freq.float().repeat(2), body.rotary_emb.attention_scaling
        self.sign = torch.ones(self.size, device=self.frequencies.device)
        self.sign[: self.size // 2] = -1  # rotate_half(x) * sin = roll(x) * (-sin, sin)

    def rotation(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What a head and its halves, exchanged, are multiplied with; both (rows, 1, head size)."""
        angles = (positions[:, None] * self.frequencies)[:, None]
        return (angles.cos() * self.scale).to(self.embedding.dtype), (angles.sin() * (self.scale * self.sign)).to(self.embedding.dtype)


def decode_llama(llama: Llama, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: RowCache) -> torch.Tensor:
    """The same as `decode_any`."""
    rows, heads, size = len(tokens), llama.heads, llama.size
    hidden = llama.embedding.index_select(0, tokens)
    cos, sin = llama.rotation(positions)
    mask = mask[:, None, None]
    for index, (before, to_q, to_k, to_v, to_out, factor, epsilon, after, gate, up, down) in enumerate(llama.layers):
        normed = rms_norm(hidden, *before)
        both = torch.cat([linear(normed, *to_q), linear(normed, *to_k)], dim=1).view(rows, -1, size)
        if epsilon is not None:
            both = rms_norm(both, (size,), None, epsilon)
        both = both * factor
        both = both * cos + both.roll(size // 2, dims=-1) * sin
        keys, values = cache.update(both[:, heads:], linear(normed, *to_v), index)
        query = both[:, :heads].reshape(rows, llama.kv_heads, -1, size)
        weights = torch.softmax(torch.matmul(query, keys.mT).add_(mask), dim=-1, dtype=torch.float32).to(values.dtype)
        hidden = hidden + linear(torch.matmul(weights, values).view(rows, -1), *to_out)
        normed = rms_norm(hidden, *after)
        hidden = hidden + linear(silu(linear(normed, *gate)).mul_(linear(normed, *up)), *down)
    return linear(rms_norm(hidden, *llama.norm), *llama.head)


def _factors(attention: torch.nn.Module) -> torch.Tensor:
    """(query heads + key heads, head size): the weights of their norms, if there are any, and the scale of the scores on the queries."""
    heads, kv_heads = attention.config.num_attention_heads, attention.config.num_key_value_heads
    factors = attention.q_proj.weight.new_ones(heads + kv_heads, attention.head_dim)
    if hasattr(attention, "q_norm"):
        factors[:heads], factors[heads:] = attention.q_norm.weight, attention.k_norm.weight
    factors[:heads] *= attention.scaling
    return factors


def _norm(module: torch.nn.Module) -> tuple[tuple[int, ...], torch.Tensor, float]:
    """What torch's rms_norm takes beside the states."""
    return tuple(module.weight.shape), module.weight, module.variance_epsilon


def _linear(module: torch.nn.Linear) -> tuple[torch.Tensor, torch.Tensor | None]:
    return module.weight, module.bias
