"""The short forward of the Llama family against the models' own, and models that it does not cover."""

from functools import partial

import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, OlmoConfig, Qwen2Config, Qwen3Config

from ibtpo.config.models import Engine
from ibtpo.engines import EngineError, Request
from ibtpo.engines.cache import RowCache
from ibtpo.engines.decoder import decode_any, decode_llama, decoder
from ibtpo.engines.transformers import TransformersEngine

SHAPE = {
    "vocab_size": 260,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.1,
}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
MODELS = {
    "llama": LlamaConfig(**SHAPE),
    "llama with biases and scaled positions": LlamaConfig(
        **SHAPE, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rope_parameters={**LLAMA3, "rope_theta": 1e4}
    ),
    "qwen2": Qwen2Config(**SHAPE),
    "qwen3": Qwen3Config(**SHAPE, head_dim=32),
    "qwen3, heads not grouped": Qwen3Config(**{**SHAPE, "num_key_value_heads": 4}, head_dim=16, tie_word_embeddings=True),
}
EOS = 2


def build(config, **options):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, **options).eval()
    for name, parameter in model.named_parameters():  # no bias 0 and no norm weight 1
        if name.endswith("bias") or "norm" in name:
            torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.2)
    return model


def requests(count=10):
    return [Request(str(i), tuple((i * 7 + j * j) % 250 for j in range(1 + 4 * i)), 5 + 3 * i, seed=i) for i in range(count)]


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_the_short_forward_is_the_models_own(name):
    model = build(MODELS[name])
    assert decoder(model).func is decode_llama
    rows, outputs = 7, []
    generator = torch.Generator().manual_seed(1)
    prefixes = [
        torch.randn(2, 2, model.config.num_key_value_heads, 3 * row, model.model.layers[0].self_attn.head_dim) for row in range(rows)
    ]
    tokens, positions = torch.randint(260, (rows,), generator=generator), 3 * torch.arange(rows)
    for decode in (partial(decode_any, model), decoder(model)):
        cache = RowCache(model.config, model.dtype, model.device)
        cache.fit(rows, 20, 0)
        for row, prefix in enumerate(prefixes):
            cache.load(row, prefix)
        cache.aim(positions)
        mask = torch.zeros(rows, cache.capacity).masked_fill(torch.arange(cache.capacity) > positions[:, None], -torch.inf)
        outputs.append((decode(tokens, positions, mask, cache), [cache.prefix(row, 3 * row + 1) for row in range(rows)]))
    (expected, stored), (found, written) = outputs
    assert expected.shape == (rows, 260) and expected.std() > 0.1
    assert (found - expected).abs().max() < 1e-4
    assert max((a - b).abs().max() for a, b in zip(stored, written, strict=True)) < 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_logprobs_of_the_family(name, sampling, finish, error):
    model = build(MODELS[name])
    done = finish(TransformersEngine(model, EOS, sampling, Engine(max_sequences=4)), requests())
    assert max(error(model, request, done[request.id]) for request in requests()) < 1e-4


def with_adapter():
    model = build(MODELS["qwen3"])
    inject_adapter_in_model(LoraConfig(r=4, target_modules=["q_proj", "down_proj"], init_lora_weights=False), model)
    return model


@pytest.mark.parametrize("make", [lambda: build(OlmoConfig(**SHAPE)), with_adapter, lambda: build(LlamaConfig(**SHAPE, hidden_act="gelu"))])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_other_models_go_through_their_own_forward(make, attention, sampling, finish, error):
    model = make()
    model.set_attn_implementation(attention)
    assert decoder(model).func is decode_any
    done = finish(TransformersEngine(model, EOS, sampling, Engine(max_sequences=4)), requests())
    assert max(error(model, request, done[request.id]) for request in requests()) < 1e-4


def test_refused_attention(sampling):
    for config in (
        MistralConfig(**SHAPE, sliding_window=16),
        Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=16, max_window_layers=1),
    ):
        with pytest.raises(EngineError, match=r"sliding or other special attention here: set engine.kind: vllm"):
            TransformersEngine(build(config), EOS, sampling, Engine())
    with pytest.raises(EngineError, match="'flex_attention': load the model with attn_implementation='sdpa'"):
        TransformersEngine(build(MODELS["qwen3"], attn_implementation="flex_attention"), EOS, sampling, Engine())
