"""Presets of the paper's scale: the numbers that the papers state, and that what is not stated is marked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ibtpo.config import load

QWEN = ("qwen3-1.7b", "qwen3-8b", "qwen3-14b", "qwen3-8b-4k", "qwen3-8b-8k")
IBTPO = (*QWEN, "llama3.1-8b-code")
ERPO = ("erpo-qwen2.5-1.5b", "erpo-qwen2.5-3b", "erpo-qwen2.5-7b")
LENGTHS = {"qwen3-8b-4k": 4096, "qwen3-8b-8k": 8192}


@pytest.mark.parametrize("name", IBTPO)
def test_the_set_up_of_ib_tpo(name):
    config = load(name)
    sampling, train = config.sampling, config.train
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.7, 0.95, 20)
    assert sampling.max_tokens == LENGTHS.get(name, 2048)
    assert (train.problems_per_iteration, train.learning_rate, train.lora_rank, train.schedule) == (128, 1e-6, 0, "constant")
    assert train.iterations == 17_400 // 128 + 1  # one epoch of the paper's problems
    assert train.minibatches >= 2  # with one, clip-higher would be GRPO
    tree = config.samplers["ibtree12"]
    assert (tree.initial, tree.iterations, tree.nodes, tree.branches, tree.group_size, tree.beta) == (4, 9, 1, 1, 12, 5.0)
    assert tree.min_room == 64 and config.samplers["independent8"].group_size == 8
    ibtpo, grpo = config.methods["ibtpo"], config.methods["grpo"]
    assert (ibtpo.advantage.local_weight, ibtpo.advantage.beta) == (0.1, 5.0)
    assert {config.methods[method].regulariser.kl for method in ("grpo", "ibtpo", "treerl", "treepo", "entropy")} == {0.001}
    assert (grpo.regulariser.clip, grpo.regulariser.clip_high) == (0.2, None), "eps_h is eps"
    assert config.methods["clip-higher"].regulariser.clip_high == 0.26
    assert config.methods["entropy"].regulariser.entropy == 0.001
    treepo = config.samplers["treepo12"]
    assert (treepo.segment, treepo.fan_out, treepo.initial, treepo.group_size) == (256, 2, 4, 12)
    assert config.problems.system == "Please reason step by step, and put your final answer within \\boxed{}."
    assert (config.engine.kind, config.evaluate.runner, config.evaluate.samples) == ("vllm", "evalscope", 32)


@pytest.mark.parametrize("name", QWEN)
def test_data_and_benchmarks_of_ib_tpo(name):
    config = load(name)
    assert config.problems.train == {"dapo_math_17k": 0} and config.problems.benchmark == 0
    assert config.evaluate.benchmarks == ("math500", "aime24", "aime25", "amc23_46", "amc24", "gpqa_diamond", "ifeval")
    assert config.policy.card == {"qwen3-1.7b": "qwen3-1.7b-base", "qwen3-14b": "qwen3-14b-base"}.get(name, "qwen3-8b-base")


def test_the_main_setting_has_all_tables_and_the_comparison_of_1024_problems():
    config = load("qwen3-8b")
    assert config.comparison.problems == 1024
    assert {f"table{number}" for number in range(1, 9)} <= set(config.outputs)


def test_code_is_trained_on_verifiable_coding_problems_alone():
    config = load("llama3.1-8b-code")
    assert config.problems.train == {"verifiable_coding": 0} and set(config.problems.validation) == {"verifiable_coding"}
    assert config.policy.card == "llama-3.1-8b-instruct" and config.evaluate.benchmarks[0] == "livecodebench"


@pytest.mark.parametrize("name", ERPO)
def test_the_set_up_of_erpo(name):
    config = load(name)
    sampling, train, evaluate = config.sampling, config.train, config.evaluate
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (1.0, 0.95, 2048)
    assert config.problems.train == {"math_levels_3_5": 0} and config.policy.card == name.removeprefix("erpo-")
    assert (train.lora_rank, train.learning_rate, train.weight_decay, train.schedule) == (32, 5e-6, 0.001, "cosine")
    sequences = train.problems_per_iteration * config.samplers["independent8"].group_size
    assert (sequences, sequences // train.micro_batch, train.minibatches) == (16, 8, 1)
    assert train.iterations == 8441 // train.problems_per_iteration
    assert train.warmup_steps == train.iterations // 10
    erpo = config.methods["erpo"]
    assert (erpo.advantage.progress_weight, erpo.advantage.gate, erpo.advantage.eta) == (0.1, 5.0, 0.2)
    assert (erpo.loss, erpo.regulariser.kl, config.methods["erpo"].sampler) == ("dapo", 0.001, "independent8")
    assert (evaluate.samples, evaluate.benchmarks) == (16, ("amc23", "minerva", "aime24", "aime25"))
    assert max(evaluate.pass_at) == 16


@pytest.mark.parametrize("name", ("qwen3-8b", "erpo-qwen2.5-1.5b"))
def test_what_no_paper_states_is_marked(name):
    """Each of these keys is a choice of ours and says so on its line."""
    lines = Path(f"config/{name}.yaml").read_text().splitlines()
    keys = ["seeds", "validation", "dtype", "validate_every", "validation_samples", "checkpoint_every", "resources"]
    for key in [*keys, *(["gradient_checkpointing", "forest", "tables"] if name in IBTPO else [])]:
        section = next(line for line in lines if re.match(rf" *{key}:", line))
        above = [line for line in lines[: lines.index(section)] if line and not line.startswith(" ")][-1]
        assert "[OURS]" in section or "[OURS]" in above, section


@pytest.mark.parametrize("name", (*IBTPO, *ERPO))
def test_a_tree_is_never_split_and_the_gpus_are_asked_for(name):
    config = load(name)
    learning = config.resources.train
    assert learning.gpus == config.train.processes
    assert config.train.problems_per_iteration % (config.train.minibatches * config.train.processes) == 0
    for method in {method for table in config.tables.values() for method in table}:
        group = config.samplers[config.methods[method].sampler].group_size
        sequences = config.train.problems_per_iteration // config.train.minibatches // config.train.processes * group
        assert sequences % config.train.micro_batch == 0


def test_null_leaves_out_a_set_of_the_extended_preset():
    config = load("qwen3-8b", {"problems": {"train": {"dapo_math_17k": None, "math_levels_3_5": 2048}}})
    assert config.problems.train == {"math_levels_3_5": 2048}


GPU = {"qwen3-14b": 141}  # GB of one; of the others 80


@pytest.mark.parametrize("name", (*IBTPO, *ERPO))
def test_engine_and_training_fit_and_leave_room_for_activations(name):
    """The arithmetic of docs/multi-gpu.md, in GB; on the host, policy and reference of each process while they are loaded."""
    config = load(name)
    billions, train = config.plan.parameters, config.train
    trained = 4 if train.lora_rank else (16 + 4) / (train.processes if train.parallel == "fsdp" else 1)  # bytes a parameter
    held = (2 + trained) * billions + config.engine.kv_cache_gib * 2**30 / 1e9
    assert held < 0.8 * GPU.get(name, 80)
    assert 2 * 4 * billions * train.processes * 1000 <= config.resources.train.memory_mb
