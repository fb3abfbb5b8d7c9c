"""What holds for every estimator: one finite value a token, fairness to the order, T19 (unscorable and equal rewards), empty responses."""

import math
from typing import get_args

import numpy as np
import pytest
from estimating import advantages, again, spec
from helpers import grow, hang, make_tree, one_step_tree, random_source, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.advantages import ADVANTAGES, NEEDS_SIGNALS
from ibtpo.config import load
from ibtpo.config.methods import Advantage
from ibtpo.samplers import SAMPLERS
from ibtpo.samplers import make_tree as plant

exact = settings(derandomize=True, deadline=None, max_examples=40)
VARIANTS = [  # every estimator, and every choice that it offers
    ("grpo", {}),
    ("grpo", {"node_weight": "sqrt", "whiten": True}),
    ("ibtpo", {}),
    ("ibtpo", {"node_weight": "once", "mask_equal_groups": True}),
    ("treerl", {}),
    ("treerl", {"variant": "code", "truncated_penalty": True}),
    ("treepo", {"whiten": True}),
    ("treepo", {"aggregation": "size", "drop_equal_subgroups": True}),
    ("erpo", {}),
    ("erpo", {"buckets": 1, "progress_floor": 0.0}),
]
POLICY_FREE = [(name, values | ({"local_weight": 0.0} if name == "ibtpo" else {})) for name, values in VARIANTS]  # of rewards alone


def test_the_registry_holds_what_the_configuration_knows():
    assert set(ADVANTAGES) == set(get_args(Advantage.model_fields["name"].annotation)) == {name for name, _ in VARIANTS}
    assert set(ADVANTAGES) > NEEDS_SIGNALS


@exact
@given(trees(), st.sampled_from(VARIANTS))
def test_one_finite_float64_per_token_and_0_where_unscorable(tree, variant):
    name, values = variant
    arrays = advantages(tree, name, **values)
    assert [array.shape for array in arrays] == [(len(t.ids),) for t in tree.trajectories]
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays)
    assert all((array == 0).all() for array, t in zip(arrays, tree.trajectories, strict=True) if math.isnan(t.reward))


@exact
@given(trees(), st.sampled_from(VARIANTS))
def test_the_tree_is_not_touched_and_the_answer_repeats(tree, variant):
    name, values = variant
    before = [(node.index, node.draws, node.count, node.wins, node.pi) for node in tree.nodes]
    first, second = advantages(tree, name, **values), advantages(tree, name, **values)
    assert before == [(node.index, node.draws, node.count, node.wins, node.pi) for node in tree.nodes]
    assert all((one == two).all() for one, two in zip(first, second, strict=True))


@exact
@given(trees(independent=True), st.sampled_from(POLICY_FREE), st.randoms(use_true_random=False))
def test_permuted_trajectories_get_permuted_advantages(tree, variant, random):
    name, values = variant
    order = list(range(len(tree.trajectories)))
    random.shuffle(order)
    straight = advantages(again(tree.trajectories), name, **values)
    permuted = advantages(again([tree.trajectories[i] for i in order]), name, **values)
    for place, i in enumerate(order):
        assert permuted[place] == pytest.approx(straight[i], abs=1e-7)


@exact
@given(trees(independent=True), st.sampled_from(POLICY_FREE))
def test_t19_an_unscorable_trajectory_changes_nothing_for_the_others(tree, variant):
    name, values = variant
    scored = [t for t in tree.trajectories if not math.isnan(t.reward)]
    everything, without = advantages(again(tree.trajectories), name, **values), advantages(again(scored), name, **values)
    kept = [array for array, t in zip(everything, tree.trajectories, strict=True) if not math.isnan(t.reward)]
    for one, two in zip(kept, without, strict=True):
        assert one == pytest.approx(two, abs=1e-7)


@pytest.mark.parametrize(("name", "values"), POLICY_FREE)
@pytest.mark.parametrize(
    "rewards", [[0.0] * 4, [1.0] * 4, [float(np.float32(0.7))] * 11, [float(np.float32(0.1))] * 7, [0.7] * 11, [None] * 3]
)
def test_t19_equal_rewards_give_exactly_zero(name, values, rewards):
    tree = make_tree()
    for number, reward in enumerate(rewards):
        hang(tree, tree.root, "aab"[number % 3] + "|" + "xyzuvwrstop"[number] + "$", reward)
    for epsilon in (1e-4, 0.0):
        assert all((array == 0).all() for array in advantages(tree, name, std_epsilon=epsilon, **values))


@pytest.mark.parametrize(("name", "values"), POLICY_FREE)
def test_a_single_trajectory_and_a_tree_without_any(name, values):
    assert all((array == 0).all() for array in advantages(one_step_tree([1.0], [0.5]), name, **values))
    assert advantages(make_tree(), name, **values) == []


@pytest.mark.parametrize(("name", "values"), POLICY_FREE)
def test_empty_responses_count_in_the_group_but_have_no_tokens(name, values):
    tree = make_tree()
    tree.add(tree.root, [], [], False, 0.0)
    hang(tree, tree.root, "a|b$", 1.0)
    hang(tree, tree.root, "c|d$", 0.0)
    empty, right, wrong = advantages(tree, name, **values)
    assert empty.shape == (0,)
    if name != "erpo":  # which has mean 0 over tokens, so the empty one has no part in it
        group = advantages(one_step_tree([0.0, 1.0, 0.0], [0.5] * 3), name, **{**values, "whiten": False})
        assert values.get("whiten") or [right[0], wrong[0]] == pytest.approx([group[1][0], group[2][0]])
    assert (right > 0).all() and (wrong < 0).all()
    only = make_tree()
    for reward in (0.0, 1.0):
        only.add(only.root, [], [], False, reward)
    assert [array.shape for array in advantages(only, name, **values)] == [(0,), (0,)]


@pytest.mark.parametrize(("name", "values"), POLICY_FREE)
def test_right_answers_are_pushed_up_and_wrong_ones_down(name, values):
    """Independent trajectories without a shared step: the sign is the verdict's in every estimator."""
    arrays = advantages(one_step_tree([1.0, 0.0, 0.0, 1.0, 0.0], [0.5] * 5), name, **values | {"eta": 0.0})
    assert [np.sign(array).tolist() for array in arrays] == [[sign] * 2 for sign in (1, -1, -1, 1, -1)]


SHAPES = {name: shape.model_copy(update={"min_room": 8}) for name, shape in load("tiny").samplers.items()}


@pytest.mark.parametrize("sampler", sorted(SHAPES))
def test_every_estimator_works_on_the_trees_of_every_sampler(sampler):
    shape, rng = SHAPES[sampler], np.random.default_rng(1)
    if shape.segment:
        shape = shape.model_copy(update={"segment": 8})
    tree = plant("q", shape, make_tree().segmenter, 64)
    grow(tree, SAMPLERS[shape.name](tree, shape, rng), random_source(rng, end=0.04))
    for name, values in VARIANTS:
        arrays = advantages(tree, name, **values)
        assert [array.shape for array in arrays] == [(len(t.ids),) for t in tree.trajectories] and len(arrays) == shape.group_size
        assert all(np.isfinite(array).all() for array in arrays) and any(array.any() for array in arrays)


@pytest.mark.parametrize("values", [{"whiten": True}, {"node_weight": "once"}, {"node_weight": "sqrt"}])
def test_erpo_normalises_by_itself(values):
    with pytest.raises(ValueError, match="leave whiten and node_weight at their defaults"):
        spec("erpo", **values)
