"""From a problem to a task: a tree behind a part of a response keeps the room and the reward of the whole response."""

import json

import pytest

from ibtpo.config.models import Sampler
from ibtpo.rollout.problems import Problem, Prompter
from ibtpo.world.tokenizer import train_tokenizer

PROBLEM = Problem("p", "gcd", "gcd 4,6", json.dumps({"answer": "2", "numbers": [4, 6]}))
SAMPLER = Sampler(name="independent", group_size=2)


@pytest.fixture(scope="module")
def prompter():
    return Prompter(train_tokenizer(["6-4=2.\n\n\\boxed{2}"] * 4, 262), max_tokens=40)


def test_a_task_starts_at_the_problem(prompter):
    task = prompter.task(PROBLEM, SAMPLER, seed=0)
    assert task.uid == task.tree.uid == "p" and task.prompt_ids == prompter.encode(PROBLEM)
    assert task.tree.room(task.tree.root) == 40
    assert [branch.n for branch in next(task.sampler)] == [2]


def test_a_task_behind_a_prefix_counts_and_scores_the_whole_response(prompter):
    prefix = tuple(prompter.tokenizer.encode("6-4=2.\n\n\\boxed{", add_special_tokens=False))
    rest = tuple(prompter.tokenizer.encode("2}", add_special_tokens=False))
    task = prompter.task(PROBLEM, SAMPLER, seed=0, uid="p/1", prefix=prefix)
    assert task.uid == task.tree.uid == "p/1" and task.prompt_ids == prompter.encode(PROBLEM) + prefix
    assert task.tree.room(task.tree.root) == 40 - len(prefix)
    assert task.score(rest).reward == 1 and prompter.task(PROBLEM, SAMPLER, seed=0).score(rest).reward == 0
