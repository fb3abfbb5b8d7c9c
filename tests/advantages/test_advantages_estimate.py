"""`estimate`: order, weights of shared steps (D.2 row 20), whitening (C.6), signals, speed."""

import math
import time

import numpy as np
import pytest
from estimating import advantages, firsts, random_signals, spec
from helpers import END, EOS, hang, make_tree, one_step_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.advantages import ADVANTAGES, NEEDS_SIGNALS, estimate

exact = settings(derandomize=True, deadline=None, max_examples=40)


def shared():
    """a is passed by three trajectories (one of them unscorable), b by one."""
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    hang(tree, tree.root, "a|c$", 0.0)
    hang(tree, tree.root, "a|d$", None)
    hang(tree, tree.root, "e$", 0.0)
    return tree


def test_all_trajectories_of_all_trees_in_order():
    one, two, three = one_step_tree([1, 0], [0.5] * 2), make_tree(), one_step_tree([0, 0, 1], [0.5] * 3)
    rows = estimate([one, two, three], spec("grpo"))
    alone = [*ADVANTAGES["grpo"](one, spec("grpo")), *ADVANTAGES["grpo"](three, spec("grpo"))]
    assert len(rows) == 5 and all((row == other).all() for row, other in zip(rows, alone, strict=True))
    assert estimate([], spec("grpo")) == estimate([], spec("grpo", whiten=True)) == estimate([two], spec("grpo", whiten=True)) == []


@pytest.mark.parametrize(("kind", "of_two"), [("trajectory", 1.0), ("once", 1 / 2), ("sqrt", 1 / math.sqrt(2))])
def test_row_20_weights_of_a_shared_step(kind, of_two):
    """n(s) = 2 scored trajectories share step a (two tokens: the letter and the delimiter); everything else is passed once."""
    plain = ADVANTAGES["ibtpo"](shared(), spec("ibtpo"))
    first, second, unscorable, last = estimate([shared()], spec("ibtpo", node_weight=kind))
    assert first == pytest.approx(plain[0] * [of_two, of_two, 1, 1]) and second == pytest.approx(plain[1] * [of_two, of_two, 1, 1])
    assert (unscorable == 0).all() and last == pytest.approx(plain[3]) and first[0] != 0


@exact
@given(trees(), st.sampled_from(["ibtpo", "treerl"]))
def test_row_20_once_means_that_a_step_weighs_once_in_sum(tree, name):
    """Over the trajectories through it, whose values of one step are equal."""
    plain, once = advantages(tree, name), advantages(tree, name, node_weight="once")
    total, value = {}, {}
    for t, before, after in zip(tree.trajectories, plain, once, strict=True):
        for node, one, other in zip(t.nodes, before, after, strict=True):
            if not math.isnan(t.reward):
                total[node] = total.get(node, 0.0) + other / len(node.ids)
                value[node] = one
    for node in total:
        assert total[node] == pytest.approx(value[node], abs=1e-9)


def test_whitening_by_hand():
    """Values .75 x2, -.25 x2 (three times): mean 0, variance 3/16 over eight tokens."""
    values = firsts(advantages(one_step_tree([1, 0, 0, 0], [0.5] * 4), "treepo", whiten=True))
    assert values == pytest.approx([math.sqrt(3), *[-1 / math.sqrt(3)] * 3])


def test_whitening_is_over_tokens_of_the_whole_batch():
    """Tree one: (.5, -.5) on two tokens each; tree two: (.5, -.5) on four and two. Mean .1, variance .24 over ten tokens."""
    one, two = one_step_tree([1, 0], [0.5] * 2), make_tree()
    hang(two, two.root, "aaa$", 1.0)
    hang(two, two.root, "b$", 0.0)
    values = firsts(estimate([one, two], spec("treepo", whiten=True)))
    assert values == pytest.approx([0.4 / math.sqrt(0.24), -0.6 / math.sqrt(0.24)] * 2)


@exact
@given(st.lists(trees(), max_size=3), st.sampled_from(["grpo", "ibtpo", "treepo"]), st.sampled_from(["trajectory", "once", "sqrt"]))
def test_whitened_tokens_have_mean_0_and_variance_1_or_are_all_0(batch, name, weight):
    plain, white = estimate(batch, spec(name, node_weight=weight)), estimate(batch, spec(name, node_weight=weight, whiten=True))
    scored = [not math.isnan(t.reward) for tree in batch for t in tree.trajectories]
    tokens = np.concatenate([np.zeros(0), *(row for row, ok in zip(white, scored, strict=True) if ok)])
    before = np.concatenate([np.zeros(0), *(row for row, ok in zip(plain, scored, strict=True) if ok)])
    if tokens.any():
        assert tokens.mean() == pytest.approx(0, abs=1e-9) and tokens.var() == pytest.approx(1)
        assert tokens == pytest.approx((before - before.mean()) / before.std()), "the order of the tokens is kept"
    else:
        assert np.ptp(before) <= 1e-12 if before.size else True
    assert all((row == 0).all() for row, ok in zip(white, scored, strict=True) if not ok)


@pytest.mark.parametrize("rewards", [[0.0] * 4, [1.0] * 4, [0.7] * 11])
def test_whitening_of_nothing_but_equal_groups_gives_exact_zeros(rewards):
    batch = [one_step_tree(rewards, [0.5] * len(rewards)) for _ in range(3)]
    assert all((row == 0).all() for name in ("grpo", "treepo", "treerl") for row in estimate(batch, spec(name, whiten=True)))


def test_whitening_of_what_varies_by_rounding_alone_gives_exact_zeros():
    """One response with tokens a tree, against an empty one: all tokens have .1 up to the last bits, which must not become +-1."""
    batch = []
    for right, wrong in [(0.2, 0.0), (0.3, 0.1), (0.1 + 0.2, 0.1)]:
        tree = make_tree()
        tree.add(tree.root, [], [], False, wrong)
        hang(tree, tree.root, "a$", right)
        batch.append(tree)
    plain = {float(value) for row in estimate(batch, spec("treepo")) for value in row}
    assert len(plain) > 1 and list(plain) == pytest.approx([0.1] * len(plain), abs=1e-15)
    assert all((row == 0).all() for row in estimate(batch, spec("treepo", whiten=True)))


def test_missing_or_misfit_signals_are_named():
    tree = one_step_tree([1, 0], [0.5] * 2)
    with pytest.raises(ValueError, match="erpo needs signals"):
        estimate([tree], spec("erpo"))
    with pytest.raises(ValueError, match="signals of 2 trees for 1 trees"):
        estimate([tree], spec("erpo"), [random_signals(tree)] * 2)
    with pytest.raises(ValueError, match=r"tree 'q': signals.logprobs does not fit"):
        estimate([tree], spec("erpo"), [random_signals(make_tree())])


@pytest.mark.parametrize("name", sorted(set(ADVANTAGES) - NEEDS_SIGNALS))
def test_signals_that_nobody_needs_change_nothing(name):
    tree = shared()
    for one, two in zip(estimate([tree], spec(name)), estimate([tree], spec(name), [random_signals(tree)]), strict=True):
        assert (one == two).all()


def test_a_batch_of_64_trees_takes_milliseconds():
    """64 x 12 x 46 tokens: weights and whitening cost 3 ms and an estimator 2 to 25 ms of an idle core; the limit is ten times that."""
    batch = []
    for number in range(64):
        tree, rng = make_tree(uid=str(number)), np.random.default_rng(number)
        for i in range(12):
            node = tree.root if i < 4 else tree.nodes[rng.choice([n.index for n in tree.candidates(8)])]
            ids = [END if place % 6 == 5 else int(rng.integers(10, 36)) for place in range(node.prefix_length, 45)] + [EOS]
            tree.add(node, ids, [-0.5] * len(ids), True, float(rng.integers(2)))
        batch.append(tree)
    assert sum(len(t.ids) for tree in batch for t in tree.trajectories) == 64 * 12 * 46
    signals = [random_signals(tree) for tree in batch]
    for name in ADVANTAGES:
        values = {} if name == "erpo" else {"node_weight": "sqrt", "whiten": True}
        taken = []
        for _ in range(3):
            started = time.process_time()
            estimate(batch, spec(name, **values), signals if name in NEEDS_SIGNALS else None)
            taken.append(time.process_time() - started)
        assert min(taken) < 0.3, name
