import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo import IbtpoError
from ibtpo.config.models import Engine
from ibtpo.engines import EngineError, Request, make_engine
from ibtpo.engines.transformers import TransformersEngine
from ibtpo.rollout.scheduler import run

EOS = 256
TOKEN_BYTES = 2 * 2 * 32 * 4  # layers x (K, V) x head size x float32


def requests(count=12):
    return [Request(str(i), tuple((i * 7 + j) % 250 for j in range(1 + 5 * i)), 1 + (i * 11) % 40, seed=i) for i in range(count)]


def ids(done):
    return {name: answer.ids for name, answer in done.items()}


@pytest.fixture
def engine(policy_dir, sampling):
    return make_engine("transformers", policy_dir, sampling, Engine(max_sequences=5))


def test_logprobs_are_the_raw_models(engine, build, finish, error):
    done = finish(engine, requests())
    assert max(error(build(0), request, done[request.id]) for request in requests()) < 1e-4


def test_limits_and_eos(engine, finish):
    asked = [Request(str(i), (i % 250, 3), 1 + i % 40, seed=i) for i in range(120)]
    done = finish(engine, asked)
    for request in asked:
        answer = done[request.id]
        assert 1 <= len(answer.ids) <= request.max_tokens and len(answer.logprobs) == len(answer.ids)
        assert EOS not in answer.ids[:-1]
        assert answer.finished == (answer.ids[-1] == EOS)
        assert answer.finished or len(answer.ids) == request.max_tokens
    assert {answer.finished for answer in done.values()} == {True, False}


def test_result_does_not_depend_on_the_batch(policy_dir, sampling, finish):
    small, large = (make_engine("transformers", policy_dir, sampling, Engine(max_sequences=size)) for size in (1, 64))
    alone, together = finish(small, requests()), finish(large, requests()[::-1])
    assert {i: answer.ids for i, answer in alone.items()} == {i: answer.ids for i, answer in together.items()}
    for i, answer in alone.items():
        np.testing.assert_allclose(answer.logprobs, together[i].logprobs, atol=1e-4)


def test_seeds_differ(engine, finish):
    prompt = (1, 2, 3)
    done = finish(engine, [Request(str(seed), prompt, 20, seed) for seed in range(8)])
    assert len({answer.ids for answer in done.values()}) == 8


def test_live_model_and_its_weights(build, sampling, finish, error):
    live = build(0).train()
    engine = TransformersEngine(live, EOS, sampling, Engine())
    before = finish(engine, requests())
    assert live.training, "the model must come back in the mode it was in"
    engine.load_weights(build(1).state_dict())
    after = finish(engine, requests())
    assert {i: answer.ids for i, answer in before.items()} != {i: answer.ids for i, answer in after.items()}
    assert max(error(build(1), request, after[request.id]) for request in requests()) < 1e-4


def test_defaults_of_the_model_do_not_leak_in(build, sampling, finish, error):
    """Instruct models come with a repetition penalty, a sampler and several EOS ids in their generation config."""
    live = build(0)
    plain = finish(TransformersEngine(live, EOS, sampling, Engine()), requests())
    live.generation_config.update(repetition_penalty=1.5, do_sample=True, top_k=3, temperature=0.1, eos_token_id=list(range(0, 250, 2)))
    kept = live.generation_config.to_dict()
    defaults = finish(TransformersEngine(live, EOS, sampling, Engine()), requests())
    assert live.generation_config.to_dict() == kept
    assert defaults == plain
    assert max(error(live, request, defaults[request.id]) for request in requests()) < 1e-4


def test_refused_weights(engine, build):
    state = build(0).state_dict()
    with pytest.raises(EngineError, match=r"unknown.*adapters merged"):
        engine.load_weights(state | {"base_model.model.x": torch.zeros(1)})
    with pytest.raises(EngineError, match=r"missing \['model.norm.weight'\]"):
        engine.load_weights({name: value for name, value in state.items() if name != "model.norm.weight"})
    engine.load_weights({name: value for name, value in state.items() if name != "lm_head.weight"})  # tied
    engine.submit(requests()[0])
    with pytest.raises(EngineError, match=r"1 request\(s\) are pending"):
        engine.load_weights(state)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("a", (1,) * 200, 57, 0), "prompt of 200 tokens \\+ max_tokens 57 = 257 exceeds the model length 256"),
        (Request("a", (), 5, 0), "at least one token"),
        (Request("a", (1,), 0, 0), "max_tokens >= 1"),
    ],
)
def test_refused_requests(engine, request_, message):
    with pytest.raises(EngineError, match=message):
        engine.submit(request_)
    assert engine.pending == 0


def test_refused_duplicate(engine):
    engine.submit(requests()[0])
    with pytest.raises(EngineError, match="already pending"):
        engine.submit(requests()[0])


def test_longest_request_fits(engine, finish):
    (answer,) = finish(engine, [Request("a", (1,) * 200, 56, 0)]).values()
    assert answer.finished or len(answer.ids) == 56


def test_figures(engine, finish):
    done = finish(engine, requests())
    prompts = sum(len(request.prompt_ids) for request in requests())
    figures = engine.figures()
    peak = figures.pop("kv_blocks_peak")
    assert figures == {
        "requests": 12,
        "prompt_tokens": prompts,
        "generated_tokens": sum(len(answer.ids) for answer in done.values()),
        "prefix_queries": prompts,
        "prefix_hits": 0,
        "kv_blocks_total": 2**28 // TOKEN_BYTES,  # half of 0.5 GiB
        "block_size": 1,
    }
    lengths = sorted(len(request.prompt_ids) + len(done[request.id].ids) - 1 for request in requests())
    assert lengths[-1] <= peak <= sum(lengths[-5:])
    assert engine.step() == []


def test_peak_of_the_cache(engine, build, finish):
    """5 rows at once, each of 9 prompt tokens and 4 that are generated, the last of which is never stored."""
    long = (request_ for seed in range(100) for request_ in [Request(str(seed), (seed,) * 9, 4, seed)])
    asked = [request_ for request_ in long if len(finish(engine, [request_])[request_.id].ids) == 4][:10]
    engine.load_weights(build(0).state_dict())
    assert engine.figures()["kv_blocks_peak"] == 0
    finish(engine, asked)
    assert engine.figures()["kv_blocks_peak"] == 5 * 12


def test_other_samples_and_branches_start_from_stored_prefixes(engine, finish, build, error):
    """Every beginning of what was computed is found: the prompt of a sibling, and any part of a finished response."""
    prompt = tuple(range(20, 41))
    first = finish(engine, [Request("a", prompt, 30, 0), Request("b", prompt, 30, 1), Request("c", (7,), 5, 2)])
    assert engine.figures()["prefix_hits"] == 20, "the prompt of b, up to its last token, is that of a"
    branches = [Request(f"{name}{cut}", prompt + first[name].ids[:cut], 10, cut) for name in "ab" for cut in range(1, len(first[name].ids))]
    before = engine.figures()
    done = finish(engine, branches)
    after = engine.figures()
    assert after["prefix_hits"] - before["prefix_hits"] == sum(len(request.prompt_ids) - 1 for request in branches)
    assert after["prefix_queries"] - before["prefix_queries"] == sum(len(request.prompt_ids) for request in branches)
    assert max(error(build(0), request, done[request.id]) for request in branches) < 1e-4
    cold = finish(TransformersEngine(build(0), EOS, engine._sampling, Engine()), branches)
    assert ids(cold) == ids(done)
    engine.load_weights(build(1).state_dict())
    new = finish(engine, branches)
    assert max(error(build(1), request, new[request.id]) for request in branches) < 1e-4, "keys and values of the old weights"


def test_a_live_model_that_was_trained_meanwhile(build, sampling, finish, error):
    live = build(0)
    engine = TransformersEngine(live, EOS, sampling, Engine())
    finish(engine, requests())
    with torch.no_grad():
        for old, new in zip(live.parameters(), build(1).parameters(), strict=True):
            old.copy_(new)
    done = finish(engine, requests())
    assert max(error(build(1), request, done[request.id]) for request in requests()) < 1e-4
    assert all(parameter.grad is None and parameter.requires_grad for parameter in live.parameters())


@settings(derandomize=True, deadline=None, max_examples=14)
@given(seed=st.integers(0, 2**31), rows=st.integers(1, 7), tokens=st.sampled_from([90, 150, 400, 10_000]))
def test_requests_join_and_leave_between_steps(policy_dir, sampling, alone, seed, rows, tokens):
    """Whenever a request comes, and however little room there is, it gets what it gets alone."""
    rng = random.Random(seed)
    engine = make_engine("transformers", policy_dir, sampling, Engine(max_sequences=rows, kv_cache_gib=2 * tokens * TOKEN_BYTES / 2**30))
    coming, done = rng.sample(requests(), 12), {}
    while coming or engine.pending:
        for _ in range(rng.randint(0, 4)):
            if coming:
                engine.submit(coming.pop())
        before = engine.pending
        answers = engine.step()
        assert (len(answers) > 0) == (before > 0) and engine.pending == before - len(answers)
        done |= {answer.id: answer for answer in answers}
    assert ids(done) == ids(alone)
    assert engine.figures()["kv_blocks_peak"] <= engine.figures()["kv_blocks_total"] == tokens
    for name, answer in done.items():
        np.testing.assert_allclose(answer.logprobs, alone[name].logprobs, atol=1e-4)


@pytest.fixture(scope="module")
def alone(policy_dir, sampling, finish):
    engine = make_engine("transformers", policy_dir, sampling, Engine(max_sequences=1))
    return {name: answer for request in requests() for name, answer in finish(engine, [request]).items()}


def test_trees_in_both_modes(policy_dir, sampling, plant):
    """The same trees whether they waited for each other or not; branches need no prefill."""

    def grow(mode):
        engine = make_engine("transformers", policy_dir, sampling, Engine(max_sequences=7))
        tasks = plant()
        trees = [task.tree for task in tasks]
        figures = run(tasks, engine, mode, seed=3)
        assert figures.requests == 32 and figures.tokens == engine.figures()["generated_tokens"]
        prompts = engine.figures()["prefix_queries"]
        assert engine.figures()["prefix_hits"] == prompts - 32 - 4 * 29, "the four prompts, and the last token of each request"
        return [[(t.ids, t.reward, t.status, t.branch.index) for t in tree.trajectories] for tree in trees]

    asynchronous = grow("asynchronous")
    assert any(branch for tree in asynchronous for *_, branch in tree), "no tree branched below its root"
    assert asynchronous == grow("lockstep")


def test_twice_the_same(policy_dir, sampling, finish):
    first, second = (finish(make_engine("transformers", policy_dir, sampling, Engine(max_sequences=5)), requests()) for _ in range(2))
    assert first == second


def test_short_requests_do_not_wait_for_long_ones(engine):
    engine.submit(Request("long", (1, 2), 60, seed=3))
    engine.submit(Request("short", (1, 2), 1, seed=4))
    assert [answer.id for answer in engine.step()] == ["short"] and engine.pending == 1


def test_what_can_never_fit_is_refused(policy_dir, sampling):
    engine = make_engine("transformers", policy_dir, sampling, Engine(kv_cache_gib=2 * 50 * TOKEN_BYTES / 2**30))
    engine.submit(Request("a", (1,) * 20, 30, 0))
    with pytest.raises(EngineError, match=r"51 tokens take .* GiB, more than half of engine.kv_cache_gib = .*: raise it"):
        engine.submit(Request("b", (1,) * 20, 31, 0))
    assert engine.pending == 1


def test_logprobs_at_the_temperature(policy_dir, build, sampling, finish, error):
    engine = make_engine("transformers", policy_dir, sampling, Engine(), pi="temperature")
    raw = make_engine("transformers", policy_dir, sampling, Engine(), pi="raw")
    done, plain = finish(engine, requests()), finish(raw, requests())
    assert ids(done) == ids(plain)
    tempered = build(0)
    tempered.lm_head.forward = lambda states: torch.nn.functional.linear(states, tempered.lm_head.weight) / sampling.temperature
    assert max(error(tempered, request, done[request.id]) for request in requests()) < 1e-4
    assert max(error(tempered, request, plain[request.id]) for request in requests()) > 0.1


def test_make_engine_refuses(policy_dir, sampling, tmp_path):
    assert issubclass(EngineError, IbtpoError), "the command line tells it in one line"
    with pytest.raises(EngineError, match="known: vllm, transformers"):
        make_engine("sglang", policy_dir, sampling, Engine())
    with pytest.raises(EngineError, match="holds no model"):
        make_engine("transformers", tmp_path, sampling, Engine())
    with pytest.raises(EngineError, match=r"pi is 'tempered'; known: raw, temperature"):
        make_engine("transformers", policy_dir, sampling, Engine(), pi="tempered")
    with pytest.raises(EngineError, match=r"vLLM returns log-probs of the raw model only.*engine.kind: transformers"):
        make_engine("vllm", policy_dir, sampling, Engine(), pi="temperature")
