"""Problem streams and demonstrators: different problems, true arithmetic, right answers."""

import json
import re
from itertools import islice
from random import Random

import pytest

from ibtpo.config.models import World
from ibtpo.verifiers import verify
from ibtpo.world import DELIMITER, FAMILIES, problems
from ibtpo.world.build import stream

WORLD = World()
COUNTDOWN = {"min_numbers": 6, "max_numbers": 6, "min_value": 1, "max_value": 9, "min_target": 1, "max_target": 20, "operators": ("+", "-")}
COUNTDOWN["shuffle"] = False
TASKS = {**WORLD.in_domain, **WORLD.out_of_domain, "countdown": COUNTDOWN}
EQUATION = re.compile(r"(-?\d+)([-+*])(\d+)[=~](-?\d+)\.?")


def draw(task, number=150, seed=3):
    return list(islice(stream(task, TASKS[task], seed, WORLD.max_steps), number))


@pytest.mark.parametrize("task", TASKS)
def test_worked_solutions_are_right(task):
    checked = 0
    for problem in draw(task):
        assert len(problem.steps) <= WORLD.max_steps
        assert verify(problem.family, problem.metadata, DELIMITER.join(problem.steps)).reward == 1.0
        assert not any(DELIMITER in step for step in problem.steps)
        equations = [EQUATION.fullmatch(step) for step in problem.steps[:-1] if "=" in step]
        assert all(equations)
        checked += len(equations)
        for match in equations:
            left, operator, right, result = match.groups()
            assert {"+": int(left) + int(right), "-": int(left) - int(right), "*": int(left) * int(right)}[operator] == int(result)
    assert checked > 150


def test_the_harder_task_has_six_steps():
    assert {len(problem.steps) for problem in draw("chain-sum-8")} == {8}


@pytest.mark.parametrize("task", TASKS)
def test_a_stream_repeats_no_problem_and_depends_on_its_seed(task):
    first, again, other = draw(task), draw(task), draw(task, seed=4)
    assert first == again
    assert len({problem.prompt for problem in first}) == len(first)
    assert {problem.prompt for problem in first} != {problem.prompt for problem in other}


def test_the_same_numbers_in_another_order_are_the_same_problem():
    entry = {"metadata": {"numbers": [1, 2, 3], "target": 6}}
    assert FAMILIES["countdown"].key(entry) == FAMILIES["countdown"].key({"metadata": {"numbers": [3, 1, 2], "target": 6}})
    assert FAMILIES["gcd"].key({"metadata": {"numbers": [4, 6]}}) == FAMILIES["gcd"].key({"metadata": {"numbers": [6, 4]}})


def test_every_family_is_drawn_here():
    assert {options.get("family", task) for task, options in TASKS.items()} == set(FAMILIES)


def test_a_family_that_runs_out_says_so():
    with pytest.raises(ValueError, match="'gcd' has only about 3 different problems; widen"):
        list(problems(FAMILIES["gcd"], {"min_value": 1, "max_value": 2}, 0, 9))


@pytest.mark.parametrize("options", [{"largest": 9}, {"max_value": 0}])
def test_bad_options_name_family_and_remedy(options):
    with pytest.raises(ValueError, match=r"family 'gcd' with options.*see reasoning-gym's gcd"):
        next(problems(FAMILIES["gcd"], options, 0, 9))


def test_metadata_is_all_that_scoring_needs():
    for task in TASKS:
        problem = draw(task, number=1)[0]
        assert json.loads(problem.metadata)["answer"] == problem.answer


@pytest.mark.parametrize("task", ["chain-sum-8", "leg-counting"])
def test_careless_solutions_are_rough_at_one_rate_off_by_one_at_another_and_go_on_from_there(task):
    rng, rough, off, sums = Random(0), 0, 0, 0
    for problem in draw(task):
        *lines, box = FAMILIES[problem.family].careless(json.loads(problem.metadata), 0.6, 0.3, rng)
        total = None
        for line in lines:
            left, operator, right, result = EQUATION.fullmatch(line).groups()
            if operator == "*":
                assert int(left) * int(right) == int(result)
                continue
            assert total in (None, left)
            error, total = int(result) - int(left) - int(operator + right), result
            assert error in ((-1, 0, 1) if "~" in line else (0,))
            rough, off, sums = rough + ("~" in line), off + abs(error), sums + 1
        assert box == f"\\boxed{{{total}}}"
        assert verify(problem.family, problem.metadata, box).reward == (total == problem.answer)
    assert rough / sums == pytest.approx(0.6, abs=0.05)
    assert off / rough == pytest.approx(0.3, abs=0.05)
