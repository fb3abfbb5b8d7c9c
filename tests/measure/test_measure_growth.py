"""The cost of a tree outside of the engine: what is grown for it, what is counted, and the power that is read off."""

import pytest

from ibtpo.measure import growth
from ibtpo.measure.growth import STEP, cost_per_tree, exponent


@pytest.fixture
def grown(monkeypatch):
    """The tasks of the last call, their trees grown."""
    found, run = [], growth.run

    def watched(tasks, *rest):
        found[:] = tasks
        return run(tasks, *rest)

    monkeypatch.setattr(growth, "run", watched)
    return found


@pytest.mark.parametrize(("depth", "group", "trees"), [(1, 4, 1), (3, 12, 2), (16, 24, 3)])
def test_trees_are_as_deep_and_as_many_as_asked_for(grown, depth, group, trees):
    assert cost_per_tree(depth, group, trees) > 0
    assert len(grown) == trees
    for task in grown:
        assert len(task.tree.trajectories) == group
        assert {(len(t.ids), t.leaf.depth) for t in task.tree.trajectories} == {(depth * STEP, depth)}
        assert all(len(node.ids) == STEP for node in task.tree.nodes[1:])
    assert {t.reward for task in grown for t in task.tree.trajectories} <= {0.0, 1.0}


def test_time_inside_of_the_engine_is_not_counted(monkeypatch):
    """A clock that runs only while the script answers."""
    clock, answers = [0.0], growth._answers

    def slow(depth):
        def answer(request):
            clock[0] += 1
            return answers(depth)(request)

        return answer

    monkeypatch.setattr(growth, "_answers", slow)
    monkeypatch.setattr(growth.time, "process_time", lambda: clock[0])
    assert cost_per_tree(depth=2, group=6, trees=3) == 0
    assert clock[0] == 18


def test_the_power_of_a_growth():
    sizes = [1, 2, 4, 8]
    assert exponent(sizes, [3.0] * 4) == pytest.approx(0)
    assert exponent(sizes, [5 * size for size in sizes]) == pytest.approx(1)
    assert exponent(sizes, [0.1 * size**2 for size in sizes]) == pytest.approx(2)
