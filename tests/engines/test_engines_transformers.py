import numpy as np
import pytest
import torch

from ibtpo import IbtpoError
from ibtpo.config.models import Engine, Sampling
from ibtpo.engines import EngineError, Request, make_engine
from ibtpo.engines.transformers import SeededSampler, TransformersEngine

EOS = 256


def requests(count=12):
    return [Request(str(i), tuple((i * 7 + j) % 250 for j in range(1 + 5 * i)), 1 + (i * 11) % 40, seed=i) for i in range(count)]


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


def test_draws_follow_the_warped_distribution():
    rows, sampling = 20_000, Sampling(temperature=0.7, top_p=0.9, top_k=4, max_tokens=1)
    logits = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.2, -1.0])
    sampler = SeededSampler([Request(str(seed), (0,), 1, seed) for seed in range(rows)], sampling, width=1)
    scores = sampler(torch.zeros(rows, 1, dtype=torch.long), logits.expand(rows, -1))
    share = np.bincount(scores.argmax(dim=1).numpy(), minlength=6) / rows
    kept = np.exp(logits.numpy() / 0.7) * (np.arange(6) < 4)
    kept /= kept.sum()
    kept *= np.cumsum(kept) - kept < 0.9  # top-p keeps the token that crosses the threshold
    expected = kept / kept.sum()
    assert np.count_nonzero(expected) == 3
    np.testing.assert_array_less(np.abs(share - expected), 5 * np.sqrt(expected * (1 - expected) / rows) + 1e-12)
    assert torch.allclose(sampler.logprobs[0], torch.log_softmax(logits, -1)[scores.argmax(dim=1)])


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
    assert engine.figures() == {
        "requests": 12,
        "prompt_tokens": sum(len(request.prompt_ids) for request in requests()),
        "generated_tokens": sum(len(answer.ids) for answer in done.values()),
    }
    assert engine.step() == []


def test_make_engine_refuses(policy_dir, sampling, tmp_path):
    assert issubclass(EngineError, IbtpoError), "the command line tells it in one line"
    with pytest.raises(EngineError, match="known: vllm, transformers"):
        make_engine("sglang", policy_dir, sampling, Engine())
    with pytest.raises(EngineError, match="holds no model"):
        make_engine("transformers", tmp_path, sampling, Engine())
