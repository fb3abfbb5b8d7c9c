"""TreeRL (C.5, "Values"): golden values by hand in both variants, the rule for vanishing differences, truncation, identities."""

import math

import numpy as np
import pytest
from estimating import advantages, firsts
from helpers import hang, make_tree, one_step_tree, trees
from hypothesis import given, settings

exact = settings(derandomize=True, deadline=None, max_examples=40)


def forked():
    """q -> a -> (b -> c: right | d: wrong), q -> e: wrong, q -> f: wrong. Centred rewards: 1, -1/3, -1/3, -1/3."""
    tree = make_tree()
    hang(tree, tree.root, "a|b|c$", 1.0)
    hang(tree, tree.root, "e$", 0.0)
    hang(tree, tree.nodes[1], "d$", 0.0)
    hang(tree, tree.root, "f$", 0.0)
    return tree


def test_golden_values_of_the_paper():
    """V(a) = 1/3, V(b) = V(c) = 1, V(d) = V(e) = V(f) = -1/3; c is one segment with b, for nothing forks between them."""
    a, b, c = 2 / 3 / math.sqrt(2), 1 + 2 / 3, 1 + 2 / 3
    first, e, second, f = advantages(forked(), "treerl")
    assert first == pytest.approx([a, a, b, b, c, c])
    assert second == pytest.approx([a, a, -1 / 3 - 2 / 3, -1 / 3 - 2 / 3])
    assert firsts([e, f]) == pytest.approx([-2 / 3] * 2)


def test_golden_values_of_the_released_code():
    """V'(a) = (2/3) / (sqrt 2 * 2)."""
    v = (2 / 3) / (math.sqrt(2) * 2)
    first, e, second, f = advantages(forked(), "treerl", variant="code")
    assert first == pytest.approx([2 * v, 2 * v, *[1 + (1 - v)] * 4])
    assert second == pytest.approx([2 * v, 2 * v, *[-1 / 3 + (-1 / 3 - v)] * 2])
    assert firsts([e, f]) == pytest.approx([-2 / 3] * 2)


def test_the_code_replaces_a_vanishing_difference_by_the_one_before():
    """R~ of x and y as 1 : 2 sqrt 2 - 1 makes V'(x) = V'(a), at a fork: the local part of x is then that of a."""
    tree, ratio = make_tree(), 2 * math.sqrt(2) - 1
    hang(tree, tree.root, "a|x$", 0.5 + 0.1)
    hang(tree, tree.nodes[1], "y$", 0.5 + 0.1 * ratio)
    hang(tree, tree.root, "z$", 0.5 - 0.1 * (1 + ratio))
    x = 1.5 * 0.1  # N / (N - 1) = 1.5
    first, _, z = advantages(tree, "treerl", variant="code")
    assert first == pytest.approx([2 * x] * 4, abs=1e-7)
    assert z == pytest.approx([-2 * 1.5 * 0.1 * (1 + ratio)] * 2)
    a = 1.5 * 0.1 * (1 + ratio) / 2
    assert advantages(tree, "treerl")[0] == pytest.approx([2 * a / math.sqrt(2)] * 2 + [x + (x - a)] * 2), "the paper's has no such rule"


def test_leave_one_out_needs_no_std():
    """R = 1, 0, 0, 0: R~ = 1, -1/3 x3, and both parts of a leaf below the root are R~."""
    for variant in ("paper", "code"):
        assert firsts(advantages(one_step_tree([1, 0, 0, 0], [0.5] * 4), "treerl", variant=variant)) == pytest.approx([2, *[-2 / 3] * 3])


def test_unscorable_leaves_are_no_leaves():
    tree = forked()
    hang(tree, tree.nodes[1], "u$", None)
    hang(tree, tree.nodes[2], "v$", None)  # below b: no fork of scored leaves
    *rest, below_a, below_b = advantages(tree, "treerl")
    assert all(one == pytest.approx(two) for one, two in zip(rest, advantages(forked(), "treerl"), strict=True))
    assert not below_a.any() and not below_b.any()


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_truncated_responses_get_minus_1_on_all_tokens_if_asked(variant):
    tree = forked()
    hang(tree, tree.nodes[1], "g", 0.0)  # no EOS
    hang(tree, tree.root, "h", None)
    plain, penalised = advantages(tree, "treerl", variant=variant), advantages(tree, "treerl", variant=variant, truncated_penalty=True)
    assert penalised[4].tolist() == [-1.0] * 3 and penalised[5].tolist() == [0.0]
    assert all((one == two).all() for one, two in zip(plain[:4], penalised[:4], strict=True)) and plain[4][0] > -1


def reference(tree, variant):
    """The formulas again, by brute force: segments as sets of leaves."""
    leaves = [t for t in tree.trajectories if not math.isnan(t.reward)]
    centred = {t: t.reward - np.mean([o.reward for o in leaves if o is not t]) for t in leaves} if len(leaves) > 1 else {}
    if len({t.reward for t in leaves}) < 2:
        centred = dict.fromkeys(leaves, 0.0)

    def under(node):
        return [t for t in leaves if node in t.leaf.path]

    def value(node):
        mean = np.mean([centred[t] for t in under(node)])
        return 0.0 if node is tree.root else mean if variant == "paper" else mean / math.sqrt(len(under(node)))

    def local(node):
        if node is tree.root:
            return 0.0
        before = node.parent
        if before is not tree.root and under(before) == under(node):
            return local(before)
        difference = value(node) - value(before)
        return local(before) if variant == "code" and abs(difference) < 1e-8 else difference

    def advantage(node):
        total = value(node) + local(node)
        return total / math.sqrt(len(under(node))) if variant == "paper" else total

    return [[0.0 if t not in centred else advantage(node) for node in t.nodes] for t in tree.trajectories]


@exact
@given(trees())
def test_agrees_with_the_formulas_by_brute_force(tree):
    for variant in ("paper", "code"):
        for ours, theirs in zip(advantages(tree, "treerl", variant=variant), reference(tree, variant), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-9)


@exact
@given(trees(independent=True))
def test_the_root_has_value_0(tree):
    """With the leaves' R~ as half the value of a leaf that nobody shares, their sum is 0 unless steps are shared."""
    first_steps = [t.leaf.path[1] for t in tree.trajectories if not math.isnan(t.reward)]
    arrays = [array for array, t in zip(advantages(tree, "treerl"), tree.trajectories, strict=True) if not math.isnan(t.reward)]
    if len(set(first_steps)) == len(first_steps) and all(len(array) for array in arrays):
        assert sum(array[0] / 2 for array in arrays) == pytest.approx(0, abs=1e-9)
        assert all((array == array[0]).all() for array in arrays), "without forks a trajectory is one segment"


def test_more_leaves_weigh_less():
    """A first step that three right trajectories share gets 1/sqrt 3 of what its lone twin would."""
    tree = make_tree()
    for end in "bcd":
        hang(tree, tree.root, f"a|{end}$", 1.0)
    hang(tree, tree.root, "e$", 0.0)
    first, *_, last = advantages(tree, "treerl")
    assert first == pytest.approx([2 / 3 / math.sqrt(3)] * 2 + [1 / 3] * 2) and last == pytest.approx([-2.0] * 2)
