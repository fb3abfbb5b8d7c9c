"""vLLM against a plain forward pass of the same weights. One engine for the module: its start takes most of the time."""

import importlib.util
import os
import random
import shutil

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from ibtpo.config.models import Engine
from ibtpo.engines import EngineError, Request, make_engine
from ibtpo.rollout.scheduler import run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
EOS, BLOCK = 256, 32


def requests(count=24, prompt=40, max_tokens=30):
    return [
        Request(str(i), tuple((i * 7 + j * j) % 250 for j in range(prompt + i % 9)), max_tokens + i % 7, seed=1000 + i)
        for i in range(count)
    ]


def ids(done):
    return {i: answer.ids for i, answer in done.items()}


@pytest.fixture(scope="module")
def start(policy_dir, sampling):
    def make(model_dir=policy_dir, kv_cache_gib=0.01, block_size=BLOCK, overcommit=1.0, **options):
        settings = Engine(max_sequences=64, kv_cache_gib=kv_cache_gib, block_size=block_size, overcommit=overcommit)
        return make_engine("vllm", model_dir, sampling, settings, **options)

    return make


@pytest.fixture(scope="module")
def engine(start):
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state(), torch.set_num_threads
    preload = os.environ.get("LD_PRELOAD")
    made = start()
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state(), torch.set_num_threads
    made.start_kept_globals = before[:2] == after[:2] and torch.equal(before[2], after[2]) and before[3] is after[3]
    assert os.environ.get("LD_PRELOAD") == preload
    yield made
    made.close()


def test_leaves_the_process_as_it_was(engine, finish):
    assert engine.start_kept_globals
    before = torch.get_rng_state()
    finish(engine, requests(4))
    assert torch.equal(before, torch.get_rng_state())


def test_logprobs_are_the_raw_models(engine, build, finish, error):
    done = finish(engine, requests())
    assert max(error(build(0), request, done[request.id]) for request in requests()) < 1e-4


def test_limits_and_eos(engine, finish):
    asked = [Request(str(i), (i % 250, 3), 1 + i % 40, seed=i) for i in range(120)]
    done = finish(engine, asked)
    for request in asked:
        answer = done[request.id]
        assert 1 <= len(answer.ids) <= request.max_tokens and EOS not in answer.ids[:-1]
        assert answer.finished == (answer.ids[-1] == EOS)
        assert answer.finished or len(answer.ids) == request.max_tokens
    assert {answer.finished for answer in done.values()} == {True, False}


def test_new_weights_and_no_stale_prefix(engine, build, finish, error):
    """The trap: KV blocks of the old weights still in the prefix cache."""
    finish(engine, requests())
    hits = engine.figures()["prefix_hits"]
    old = finish(engine, requests())
    assert engine.figures()["prefix_hits"] - hits >= 24 * BLOCK, "the test needs prompts that are cached"
    engine.load_weights(build(1).state_dict())
    new = finish(engine, requests())
    assert ids(new) != ids(old)
    assert max(error(build(1), request, new[request.id]) for request in requests()) < 1e-4
    engine.load_weights(build(0).state_dict())
    assert ids(finish(engine, requests())) == ids(old)


def test_refused_weights(engine, build):
    state = build(0).state_dict()
    with pytest.raises(EngineError, match="unknown"):
        engine.load_weights({f"base_model.model.{name}": value for name, value in state.items()} | state)
    with pytest.raises(EngineError, match="missing"):
        engine.load_weights({name: value for name, value in state.items() if "mlp" not in name})
    engine.submit(requests(1)[0])
    with pytest.raises(EngineError, match="pending"):
        engine.load_weights(state)
    while engine.pending:
        engine.step()


def test_result_does_not_depend_on_the_batch(engine, finish):
    """Ids are equal, log-probs up to rounding: alone, among others, in another order, with a cold and a warm prefix cache."""
    together = finish(engine, requests())
    others = [Request(f"other{i}", tuple(range(i, i + 33)), 50, seed=i) for i in range(30)]
    mixed = finish(engine, others + requests()[::-1])
    alone = {}
    for request in requests():
        alone |= finish(engine, [request])
    for i, answer in together.items():
        for other in (mixed[i], alone[i]):
            assert other.ids == answer.ids
            np.testing.assert_allclose(other.logprobs, answer.logprobs, atol=1e-4)


def test_seeds_differ(engine, finish):
    done = finish(engine, [Request(str(seed), (1, 2, 3), 20, seed) for seed in range(8)])
    assert len({answer.ids for answer in done.values()}) == 8


def test_more_prompt_tokens_than_one_step_takes(engine, build, finish, error):
    """A seeded request whose prefill is cut in two makes vLLM 0.32 fail on a CPU: 60 prompts of 150 tokens exceed any step."""
    asked = requests(60, prompt=150, max_tokens=2)
    done = finish(engine, asked)
    assert max(error(build(0), request, done[request.id]) for request in asked) < 1e-4


def test_refused_requests(engine):
    with pytest.raises(EngineError, match="exceeds the model length 256"):
        engine.submit(Request("a", (1,) * 200, 57, 0))
    with pytest.raises(EngineError, match="at least one token"):
        engine.submit(Request("a", (), 5, 0))
    assert engine.pending == 0


def test_trees_in_both_modes(engine, plant):
    """Exactly G leaves, every token counted once, and the same trees whether they waited for each other or not."""

    def grow(mode):
        tasks = plant()
        trees = [task.tree for task in tasks]
        before = engine.figures()["generated_tokens"]
        figures = run(tasks, engine, mode, seed=3)
        generated = engine.figures()["generated_tokens"] - before
        assert generated == figures.tokens == sum(tree.generated_tokens for tree in trees)
        assert figures.requests == 32 and all(len(tree.trajectories) == 8 for tree in trees)
        return [[(t.ids, t.reward, t.status, t.branch.index) for t in tree.trajectories] for tree in trees]

    asynchronous = grow("asynchronous")
    assert any(branch for tree in asynchronous for *_, branch in tree), "no tree branched below its root"
    assert asynchronous == grow("lockstep")


@pytest.mark.parametrize("overcommit", [1, 12])
def test_small_cache(engine, start, finish, overcommit):
    """A second engine in this process; its cache holds 16 blocks. Requests wait for room; with overcommit some are thrown out and computed
    again. The result is the same."""
    block_bytes = 2 * 2 * BLOCK * 32 * 4  # layers x (K, V) x tokens x head size x float32
    small = start(kv_cache_gib=16 * block_bytes / 2**30, overcommit=overcommit)
    assert set(small.figures()) == {
        *("requests", "prompt_tokens", "generated_tokens"),
        *("prefix_queries", "prefix_hits", "preemptions", "kv_blocks_total", "kv_blocks_peak", "block_size"),
    }
    assert small.figures()["kv_blocks_peak"] == small.figures()["prefix_queries"] == 0
    asked = requests(12, prompt=20, max_tokens=100)
    done = finish(small, asked)
    figures = small.figures()
    assert ids(done) == ids(finish(engine, asked))
    assert figures["kv_blocks_total"] == 15 and figures["block_size"] == BLOCK
    assert (figures["preemptions"] > 0) == (figures["kv_blocks_peak"] == 15) == (overcommit > 1)
    assert figures["prompt_tokens"] == sum(len(request.prompt_ids) for request in asked) <= figures["prefix_queries"]
    assert figures["prefix_hits"] % BLOCK == 0
    with pytest.raises(EngineError, match=r"may need 16 KV blocks of 32 tokens, more than the 15 that engine\.kv_cache_gib gives"):
        small._accept(Request("long", (1,) * 400, 100, 0))
    small.close()
    assert ids(done) == ids(finish(engine, asked)), "closing one engine must leave the other one whole"


def test_defaults_of_the_model_do_not_leak_in(engine, start, policy_dir, finish, tmp_path):
    """Instruct models come with a repetition penalty, a sampler and several EOS ids in their generation config."""
    shutil.copytree(policy_dir, tmp_path, dirs_exist_ok=True)
    defaults = {"repetition_penalty": 1.5, "do_sample": True, "top_k": 3, "temperature": 0.1, "eos_token_id": list(range(0, 256, 2))}
    GenerationConfig(**defaults).save_pretrained(tmp_path)
    other = start(tmp_path)
    assert finish(other, requests()) == finish(engine, requests())
    other.close()


def test_peak_of_kv_blocks(start, build, finish):
    """Contract with vLLM's block pool: 5 requests of 40 + 8 tokens need two blocks each, all at once, and give them back."""
    fresh = start()
    asked = [Request(str(i), tuple((17 * i + j) % 250 for j in range(40)), 8, seed=i) for i in range(5)]
    for _ in range(2):
        finish(fresh, asked)
        assert fresh.figures()["kv_blocks_peak"] == 10
    assert fresh.figures()["prefix_hits"] == 5 * BLOCK
    fresh.load_weights(build(1).state_dict())
    assert fresh.figures()["kv_blocks_peak"] == 0
    fresh.close()


def test_start_is_refused(start, policy_dir, build, tmp_path):
    with pytest.raises(EngineError, match=r"block_size is 16.*multiple of 32"):
        start(block_size=16)
    with pytest.raises(EngineError, match=r"did not start with .*max_model_len=4096"):
        start(max_model_len=4096)
    with pytest.raises(EngineError, match="processed log-probabilities"):
        start(logprobs_mode="processed_logprobs")
    shutil.copytree(policy_dir, tmp_path, dirs_exist_ok=True)
    build(0, head_dim=16).save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=r"cannot run this model: .*head_dim=16"):
        start(tmp_path)
