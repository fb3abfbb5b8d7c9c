"""The prefix-shared forward equals the plain one: values within 1e-5, gradients within 1e-4, for every kind of model and batch."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from torch.nn.attention import flex_attention
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from ibtpo.prefix import Batch, forward, score, share_prefixes, token_limit, unsupported
from ibtpo.rollout.chat import encode_prompt

VOCABULARY, TEMPERATURE = 40, 0.7
SHAPE = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "pad_token_id": 0,
}  # fmt: skip
FAMILIES = {
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE, tie_word_embeddings=False)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE, attention_bias=True)),
    "lora": lambda: get_peft_model(
        Qwen3ForCausalLM(Qwen3Config(**SHAPE)),
        LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False),
    ),
}


@cache
def models(family: str):
    """The same weights twice: a plain model, and one that shares prefixes."""
    torch.manual_seed(0)
    plain = FAMILIES[family]()
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(1 if family == "lora" else 3)  # logits differ by more than rounding; adapters start large enough
    shared = copy.deepcopy(plain)
    share_prefixes(shared)
    return plain, shared


def padded(prompts: list[list[int]], completions: list[list[int]]):
    """As TRL pads: prompts on the left, completions on the right. (ids, mask, columns of the completion)."""
    left, right = max(map(len, prompts)), max(map(len, completions))
    ids = torch.zeros(len(prompts), left + right, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        ids[row, left - len(prompt) : left + len(completion)] = torch.tensor(prompt + completion)
        mask[row, left - len(prompt) : left + len(completion)] = 1
    return ids, mask, right


def reference(model, ids, mask, columns):
    """Each sequence on its own, without any padding: the definition."""
    logps, entropies = torch.zeros(len(ids), columns), torch.zeros(len(ids), columns)
    for row in range(len(ids)):
        sequence, count = ids[row][mask[row].bool()], int(mask[row, -columns:].sum())
        if count:
            logits = torch.log_softmax(model(sequence[None]).logits[0, -count - 1 : -1] / TEMPERATURE, -1)
            logps[row, :count] = logits.gather(1, sequence[-count:, None])[:, 0]
            entropies[row, :count] = -(logits.exp() * logits).sum(-1)
    return logps, entropies


def gradients(model, *values):
    model.zero_grad()
    generator = torch.Generator().manual_seed(5)
    sum((value * torch.randn(value.shape, generator=generator)).sum() for value in values).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def compare(plain, shared, ids, mask, columns, limit: int | None = None, flex: bool = False):
    expected = reference(plain, ids, mask, columns)
    found = score(shared, Batch(ids, mask, columns, limit or token_limit(shared), flex), TEMPERATURE, entropy_gradient=True)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    same(gradients(shared, *found), gradients(plain, *expected))


def same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]):
    """Each within 1e-4 of its own norm; one that should vanish is rounding noise, 1e-5 of the whole gradient."""
    assert ours.keys() == theirs.keys() != set()
    whole = torch.stack([value.norm() for value in theirs.values()]).norm()
    for name in theirs:
        assert (ours[name] - theirs[name]).norm() <= 1e-4 * theirs[name].norm() + 1e-5 * whole, name


@st.composite
def batches(draw):
    """Responses of 1 to 3 problems: any of them may go on from any prefix of another one, or be its copy; some are empty."""
    prompts, completions = [], []
    ids = st.lists(st.integers(1, 6), max_size=12)
    for _ in range(draw(st.integers(1, 3))):
        prompt = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
        group: list[list[int]] = []
        for _ in range(draw(st.integers(1, 6))):
            parent = draw(st.sampled_from(group)) if group and draw(st.booleans()) else []
            group.append(parent[: draw(st.integers(0, len(parent)))] + draw(ids))
        prompts += [prompt] * len(group)
        completions += group
    return padded(prompts, [completion or [0] for completion in completions])


@pytest.mark.parametrize("family", FAMILIES)
@settings(derandomize=True, max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=batches(), limit=st.sampled_from([None, None, 25]))
def test_values_and_gradients_equal_those_of_each_sequence_alone(family, batch, limit):
    compare(*models(family), *batch, limit=limit)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("family", FAMILIES)
@settings(derandomize=True, deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches(), st.sampled_from([12, 10**6]))
def test_flex_attention_gives_the_same_values_and_gradients(monkeypatch, family, batch, limit):
    """On a CPU FlexAttention refuses gradients, though its definition has them: the refusal is taken out here."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)
    compare(*models(family), *batch, limit, flex=True)


def test_long_responses_of_one_tree():
    rng = np.random.default_rng(1)
    trunk = rng.integers(1, VOCABULARY, 120).tolist()
    completions = [trunk[: int(cut)] + rng.integers(1, VOCABULARY, 60).tolist() for cut in rng.integers(0, 120, 7)]
    batch = padded([[1, 2, 3]] * 8, [*completions, trunk])
    compare(*models("qwen3"), *batch)
    compare(*models("qwen3"), *batch, limit=100)


def test_rollouts_of_a_trained_policy(world):
    """Responses that the policy of the tiny world samples itself, eight to a prompt."""
    plain = AutoModelForCausalLM.from_pretrained(world.policy, dtype="float32")
    shared = copy.deepcopy(plain)
    share_prefixes(shared)
    tokenizer = AutoTokenizer.from_pretrained(world.policy)
    torch.manual_seed(0)
    prompts, completions = [], []
    for text in ("1 + 2 - 3", "4 + 5 + 6"):
        prompt = encode_prompt(tokenizer, text)
        for row in plain.generate(torch.tensor([prompt] * 8), do_sample=True, max_new_tokens=60)[:, len(prompt) :].tolist():
            prompts.append(list(prompt))
            completions.append(row[: row.index(tokenizer.eos_token_id) + 1] if tokenizer.eos_token_id in row else row)
    ids, mask, columns = padded(prompts, completions)
    compare(plain, shared, ids, mask, columns)
    assert Batch(ids, mask, columns, 10**6).distinct < 0.9 * mask.sum()


def test_the_head_works_in_parts(monkeypatch):
    """With room for few logits at once, and several tries on top: recomputed activations give the same gradients."""
    monkeypatch.setattr(forward, "LOGITS", 7 * VOCABULARY)
    batch = padded([[1, 2, 3]] * 3, [[4, 5, 6, 7, 8, 9], [4, 5, 9, 9, 9], [1] * 12])
    compare(*models("qwen2"), *batch)
    compare(*models("qwen2"), *batch, limit=9)


@pytest.mark.parametrize("flex", [False, True])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_processes_may_make_as_many_passes_as_each_other(monkeypatch, flex):
    """Tries that are added to level a batch change neither values nor gradients, also where nothing is scored."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)
    plain, shared = models("qwen3")
    for completions in ([[4, 5, 6], [4, 5, 9, 9]], [[], []]):
        ids, mask, columns = padded([[1, 2, 3]] * 2, [completion or [0] for completion in completions])
        mask[:, 3:] *= bool(completions[0])
        batch = Batch(ids, mask, columns, 1000, flex)
        passes, before = [], batch.distinct
        batch.level(3)
        hook = shared.model.layers[0].register_forward_hook(lambda *_, passes=passes: passes.append(1))
        found = score(shared, batch, TEMPERATURE, entropy_gradient=True)
        hook.remove()
        assert len(passes) == len(batch.parts) == 3 and batch.distinct == before
        batch.level(2)
        assert len(batch.parts) == 3
        expected = reference(plain, ids, mask, columns)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
        if completions[0]:
            same(gradients(shared, *found), gradients(plain, *expected))
        else:
            assert all(not value.any() for value in gradients(shared, *found).values())


def test_each_distinct_token_is_computed_once(monkeypatch):
    _, shared = models("qwen3")
    ids, mask, columns = padded([[1, 2, 3]] * 4, [[4, 5, 6, 7], [4, 5, 6, 8], [4, 9], [4, 5, 6, 7]])
    lengths = []
    hook = shared.model.layers[0].mlp.register_forward_hook(lambda module, args, output: lengths.append(args[0].shape))
    batch = Batch(ids, mask, columns, 1000)
    score(shared, batch, TEMPERATURE)
    hook.remove()
    assert lengths == [(1, 6, 32)], "1 2 3 4 5 6; nobody needs what comes after 7, 8 and 9"
    assert (batch.total, batch.distinct) == (26, 6)


def test_entropies_are_optional_and_have_a_gradient_only_on_demand():
    _, shared = models("qwen3")
    batch = Batch(*padded([[1]], [[2, 3]]), 100)
    assert score(shared, batch, TEMPERATURE, entropy=False)[1] is None
    assert not score(shared, batch, TEMPERATURE)[1].requires_grad
    logps, entropies = score(shared, batch, TEMPERATURE, entropy_gradient=True)
    assert logps.requires_grad and entropies.requires_grad
    with torch.no_grad():
        assert not score(shared, batch, TEMPERATURE, entropy_gradient=True)[1].requires_grad


def test_nothing_to_score_gives_zeros():
    _, shared = models("qwen3")
    ids, mask = torch.tensor([[1, 2, 0, 0]]), torch.tensor([[1, 1, 0, 0]])
    logps, entropies = score(shared, Batch(ids, mask, 2, 100), TEMPERATURE)
    assert logps.tolist() == entropies.tolist() == [[0.0, 0.0]]


def test_the_limit_is_as_many_tokens_as_fit_in_memory(monkeypatch):
    """The estimate against the tensors that autograd really keeps, the head's left out."""
    _, shared = models("llama")
    ids = torch.randint(1, VOCABULARY, (1, 200), generator=torch.Generator().manual_seed(0))
    batch = Batch(ids, torch.ones_like(ids), 1, 1000)
    kept = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.update({tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()}) or tensor,
        lambda tensor: tensor,
    ):
        logps, _ = score(shared, batch, TEMPERATURE)
    weights = {parameter.untyped_storage().data_ptr() for parameter in shared.parameters()}
    activations = sum(size for pointer, size in kept.items() if pointer not in weights)
    monkeypatch.setattr(forward, "MEMORY", activations)
    assert logps.requires_grad and token_limit(shared) == pytest.approx(batch.distinct, rel=0.3)


@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_other_forwards_stay_what_they_are(family):
    """Bit for bit: a padded batch, and generation."""
    plain, shared = models(family)
    ids, mask, _ = padded([[1, 2, 3], [4, 5]], [[6, 7], [8]])
    assert torch.equal(plain(input_ids=ids, attention_mask=mask).logits, shared(input_ids=ids, attention_mask=mask).logits)
    options = {"attention_mask": mask, "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(plain.generate(ids, **options), shared.generate(ids, **options))


def test_gradient_checkpointing_of_the_model_keeps_the_gradients():
    plain, shared = models("qwen3")
    shared = copy.deepcopy(shared).train()
    shared.gradient_checkpointing_enable()
    ids, mask, columns = padded([[1, 2, 3]] * 3, [[4, 5, 6, 7], [4, 5, 9], [4, 5, 6, 7]])
    ours = gradients(shared, *score(shared, Batch(ids, mask, columns, 100), TEMPERATURE, entropy_gradient=True))
    same(ours, gradients(plain, *reference(plain, ids, mask, columns)))


def test_the_adapter_can_be_switched_off():
    """The reference policy of a LoRA run is the same model without its adapter."""
    plain, shared = models("lora")
    ids, mask, columns = padded([[1, 2]] * 2, [[3, 4], [3, 5]])
    with shared.disable_adapter(), plain.disable_adapter(), torch.no_grad():
        found, expected = score(shared, Batch(ids, mask, columns, 100), TEMPERATURE)[0], reference(plain, ids, mask, columns)[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert (found - score(shared, Batch(ids, mask, columns, 100), TEMPERATURE)[0]).abs().max() > 1e-3


@pytest.mark.parametrize(
    "model, reason",
    [
        (MistralForCausalLM(MistralConfig(**SHAPE)), "MistralForCausalLM is none of llama, qwen2, qwen3"),
        (
            Qwen2ForCausalLM(Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=8, max_window_layers=1)),
            "some of its layers attend to a sliding window",
        ),
        (Qwen3ForCausalLM._from_config(Qwen3Config(**SHAPE), attn_implementation="eager"), "implementation is eager, not sdpa"),
    ],
)
def test_other_models_are_refused_with_a_reason(model, reason):
    assert reason in unsupported(model)
    with pytest.raises(ValueError, match=r"prefixes cannot be shared: .*Set train\.prefix_sharing: false"):
        share_prefixes(model)


def test_what_transformers_must_keep_doing():
    """A 4D mask goes through to the attention function untouched, with our keyword beside it, in every layer."""
    seen = []
    _, shared = models("llama")
    for module in shared.model.layers:
        module.self_attn.register_forward_pre_hook(lambda m, args, kwargs: seen.append(kwargs), with_kwargs=True)
    batch = Batch(*padded([[1]], [[2, 3]]), 100)
    score(shared, batch, TEMPERATURE)
    assert [kwargs["attention_mask"].shape for kwargs in seen] == [(1, 1, 1, 1)] * 2
    assert all(kwargs["prefix"] is batch.parts[0].attention for kwargs in seen)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("flex", [False, True])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_on_a_gpu(family, flex):
    plain, shared = models(family)
    ids, mask, columns = padded([[1, 2, 3]] * 3, [[4, 5, 6, 7], [4, 5, 9], [4, 5, 6, 7]])
    expected = reference(plain, ids, mask, columns)
    found = score(copy.deepcopy(shared).cuda(), Batch(ids.cuda(), mask.cuda(), columns, 100, flex), TEMPERATURE)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)
