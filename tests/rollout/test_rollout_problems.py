"""From a problem to a task: the tree that its sampler asks for, room and reward of the whole response, and the control rewards."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

from ibtpo import IbtpoError
from ibtpo.config.methods import Sampler
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.tree import BlockSegmenter, NoisySegmenter, Scoring
from ibtpo.world.tokenizer import train_tokenizer

PROBLEM = Problem("p", "gcd", "gcd 4,6", json.dumps({"answer": "2", "numbers": [4, 6]}))
SAMPLER = Sampler(name="independent", group_size=2)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["6-4=2.\n\n\\boxed{2}"] * 4, 262)


@pytest.fixture(scope="module")
def prompter(tokenizer):
    return Prompter(tokenizer, max_tokens=40)


def ids(tokenizer, text):
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def test_a_task_starts_at_the_problem(prompter):
    task = prompter.task(PROBLEM, SAMPLER, seed=0)
    assert task.uid == task.tree.uid == "p" and task.prompt_ids == prompter.encode(PROBLEM)
    assert task.tree.room(task.tree.root) == 40
    assert [branch.n for branch in next(task.sampler)] == [2]


def test_a_task_behind_a_prefix_counts_and_scores_the_whole_response(prompter):
    prefix = ids(prompter.tokenizer, "6-4=2.\n\n\\boxed{")
    rest = ids(prompter.tokenizer, "2}")
    task = prompter.task(PROBLEM, SAMPLER, seed=0, uid="p/1", prefix=prefix)
    assert task.uid == task.tree.uid == "p/1" and task.prompt_ids == prompter.encode(PROBLEM) + prefix
    assert task.tree.room(task.tree.root) == 40 - len(prefix)
    assert task.score(rest).reward == 1 and prompter.task(PROBLEM, SAMPLER, seed=0).score(rest).reward == 0


def test_the_tree_is_the_samplers(prompter):
    shape = {"group_size": 12, "initial": 4, "iterations": 9, "nodes": 1, "branches": 1}
    tree = prompter.task(PROBLEM, Sampler(name="ibtree", density="hierarchical", ratio_power=2, **shape), seed=0).tree
    assert tree.scoring == Scoring("hierarchical", 2) and tree.segmenter is prompter.segmenter
    tree = prompter.task(PROBLEM, Sampler(name="treepo", group_size=12, initial=4, segment=8, depth=5), seed=0).tree
    assert isinstance(tree.segmenter, BlockSegmenter) and tree.segmenter.size == 8
    noisy = Sampler(name="ibtree", delimiter_noise=0.1, **shape)
    segmenters = [prompter.task(PROBLEM, noisy, seed, uid).tree.segmenter for seed, uid in [(0, None), (0, None), (1, None), (0, "p/1")]]
    assert all(isinstance(segmenter, NoisySegmenter) for segmenter in segmenters)
    keys = [segmenter.key for segmenter in segmenters]
    assert keys[0] == keys[1] and len({*keys}) == 3, "coins of seed and problem"


@pytest.mark.parametrize(
    ("text", "boxed", "right"),
    [
        ("6-4=2.\n\n\\boxed{2}", 1, 1),
        ("6-4=2.\n\n\\boxed{3}", 1, 0),
        ("\\boxed{two}", 1, 0),
        ("\\boxed{4}\\boxed{}", 0, 0),
        ("\\boxed{ }", 0, 0),
        ("\\boxed{2", 0, 0),
        ("2", 0, 0),
        ("", 0, 0),
    ],
)
def test_format_rewards_any_boxed_answer(tokenizer, prompter, text, boxed, right):
    formal = Prompter(tokenizer, 40, reward="format")
    verdict = formal.task(PROBLEM, SAMPLER, seed=0).score(ids(tokenizer, text))
    assert verdict == (boxed, "ok" if boxed else "parse_failed")
    assert prompter.task(PROBLEM, SAMPLER, seed=0).score(ids(tokenizer, text)).reward == right
    behind = formal.task(PROBLEM, SAMPLER, seed=0, uid="p/1", prefix=ids(tokenizer, text)[:2])
    assert behind.score(ids(tokenizer, text)[2:]) == verdict, "of the whole response"


def test_the_random_reward_is_a_fair_coin_of_seed_problem_and_response(tokenizer):
    coin = Prompter(tokenizer, 40, reward="random", seed=3)
    score = coin.task(PROBLEM, SAMPLER, seed=0).score
    responses = [(a, b) for a in range(64) for b in range(64)]
    flips = [score(response).reward for response in responses]
    assert set(flips) == {0.0, 1.0} and abs(sum(flips) - 2048) < 5 * 32, "5 standard deviations of 4096 fair flips"
    assert abs(sum(a == b for a, b in pairwise(flips)) - 2047.5) < 5 * 32, "neighbours are independent"
    assert flips == [coin.task(PROBLEM, SAMPLER, seed=9, uid="p/1").score(response).reward for response in responses], "not of the run"
    behind = coin.task(PROBLEM, SAMPLER, seed=0, prefix=(1,)).score
    assert flips[64:128] == [behind((b,)).reward for b in range(64)], "of the whole response"
    others = (
        Prompter(tokenizer, 40, reward="random", seed=4).task(PROBLEM, SAMPLER, seed=0).score,
        coin.task(replace(PROBLEM, uid="q"), SAMPLER, seed=0).score,
    )
    for other in others:
        assert abs(sum(other(r).reward == flip for r, flip in zip(responses, flips, strict=True)) - 2048) < 5 * 32
    assert score((1, 2)).status == "ok"


def test_an_unknown_reward_is_refused(tokenizer):
    with pytest.raises(ValueError, match="reward 'coin'; known: verifier, random, format"):
        Prompter(tokenizer, 40, reward="coin")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "math"}, "b is of the family 'math', which no verifier knows; known: maths, "),
        ({"metadata": "{}"}, 'b has no gold answer; metadata of maths problems are a JSON text such as {"answer": "42"}'),
        ({"metadata": "42"}, "b has no gold answer"),
        ({"metadata": '{"answer": null}'}, "b has no gold answer"),
    ],
)
def test_a_problem_that_nobody_could_judge_is_refused_before_anything_starts(tmp_path, change, message):
    good = {"family": "maths", "prompt": "1 + 1?", "metadata": '{"answer": "2"}'}
    path = tmp_path / "train.parquet"
    pd.DataFrame([{"uid": "a", **good}]).to_parquet(path)
    assert [problem.uid for problem in load_problems(path)] == ["a"]
    pd.DataFrame([{"uid": "a", **good}, {"uid": "b", **good, **change}]).to_parquet(path)
    with pytest.raises(IbtpoError, match=re.escape(message)):
        load_problems(path)
