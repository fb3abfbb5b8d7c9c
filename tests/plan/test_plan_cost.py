"""The model of costs by hand: tokens of the paper's Table 3, hours from tokens, and which jobs run a policy."""

from __future__ import annotations

import pytest

from ibtpo.config import load
from ibtpo.operations.cost import Work, benchmark_problems, tree_tokens, work


@pytest.fixture(scope="module")
def paper():
    return load("qwen3-8b")


@pytest.mark.parametrize("sampler, tokens", [("independent12", 12_035), ("random12", 7_579), ("eptree12", 7_784), ("ibtree12", 7_592)])
def test_tokens_of_a_tree_are_those_of_table_3(paper, sampler, tokens):
    assert tree_tokens(paper, sampler) == pytest.approx(tokens)


def test_a_smaller_group_has_its_share_of_the_tokens(paper):
    assert tree_tokens(paper, "independent8") == pytest.approx(12_035 * 8 / 12)


def test_problems_of_the_benchmarks_are_counted_as_their_publishers_do(paper):
    assert benchmark_problems(paper) == 500 + 30 + 30 + 46 + 45 + 198 + 541
    assert benchmark_problems(load("erpo-qwen2.5-1.5b")) == 40 + 40 + 30 + 30
    assert benchmark_problems(load("tiny")) == 4 * 64


def test_hours_by_hand(paper):
    config = paper.model_copy(update={"plan": paper.plan.model_copy(update={"parameters": 10.0, "start_minutes": 6.0})})
    sampled = Work(sampled=2_000 * 3600)  # 20,000 / 10 tokens a second: one hour
    assert sampled.hours(config) == pytest.approx(1 + 0.1)
    trained = Work(trained=93.6e12 / 10e9 / 6 * 3600, operations=6)  # 30% of 312 TFLOP/s; 6 operations a parameter and token
    assert trained.hours(config) == pytest.approx(1 + 0.1)
    assert Work(sampled=2_000 * 3600, devices=8).hours(config) == pytest.approx(1 / 8 + 0.1)


def test_training_of_a_method_by_hand(paper):
    found = work(paper, "train", {"method": "ibtpo"})
    problems, response, train = 136 * 128, 12_035 / 12, paper.train
    probe = 8 * train.probe_seeds * response * (1 + 12 * train.probe_draws / 2)
    assert found.sampled == pytest.approx(problems * 7_592 + (136 // 8 + 2) * (128 * 8 * response + probe))
    assert found.trained == pytest.approx(problems * (7_592 + 200))  # shared prefixes are computed once
    assert (found.operations, found.devices) == (4 * 2 + 4, 8)  # old, new, reference, again for the backward, and the backward itself
    plain = paper.model_copy(update={"train": train.model_copy(update={"prefix_sharing": False, "gradient_checkpointing": False})})
    assert work(plain, "train", {"method": "ibtpo"}).trained == pytest.approx(problems * 12 * (response + 200))
    assert work(plain, "train", {"method": "ibtpo"}).operations == 3 * 2 + 4


def test_other_commands(paper):
    response = 12_035 / 12
    assert work(paper, "evalscope", {}).sampled == pytest.approx(1390 * 32 * response)
    assert work(paper, "compare", {"strategy": "eptree12"}).sampled == pytest.approx(1024 * 7_784)
    assert work(paper, "offline", {}).sampled == pytest.approx(128 * 4 * response * (1 + 12 * 5 / 2))
    repeats = paper.measurements["table8"].repeats  # lengths of 2K, 4K and 8K count by their length
    both = tree_tokens(paper, "independent8") + tree_tokens(paper, "ibtree12")
    assert work(paper, "measure", {"name": "table8"}).sampled == pytest.approx(repeats * 128 * both * (1 + 2 + 4))
    assert work(paper, "policy", {}).sampled == 0
    assert all(work(paper, command, {}) is None for command in ("table", "figure", "verdicts", "metrics", "corpus", "judge"))


def test_a_larger_model_costs_more_in_proportion(paper):
    small, large = load("qwen3-1.7b"), load("qwen3-14b")
    hours = [work(c, "train", {"method": "grpo"}).hours(c) - c.plan.start_minutes / 60 for c in (small, large)]
    assert hours[1] / hours[0] == pytest.approx(14.8 / 1.7)
