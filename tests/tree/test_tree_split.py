"""Splitting a node at a fork inside its step: D.2 row 25."""

import math

import numpy as np
import pytest
from helpers import END, EOS, continuations, encode, hang, letter, make_tree, trees
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.tree import density, ib_score, ratio
from ibtpo.tree.statistics import leaf_depths

exact = settings(derandomize=True, deadline=None, max_examples=150)


def nodes(tree):
    return [[node.ids for node in trajectory.leaf.path[1:]] for trajectory in tree.trajectories]


def test_the_upper_half_takes_the_place_and_the_lower_half_keeps_the_rest():
    tree = make_tree()
    probabilities = [0.9, 0.1, 0.5, 0.2, 0.3]
    first = tree.add(tree.root, encode("abc|d"), np.log(probabilities), False, 1.0)
    hang(tree, tree.root, "x|y$", 0.0)
    node, leaf = first.leaf.parent, first.leaf
    upper = tree.split(node, 2)
    assert upper.ids == encode("ab") and node.ids == encode("c|") and upper.cut and not node.cut and not upper.terminal
    assert node.parent is upper and upper.parent is tree.root and list(upper.children.values()) == [node]
    assert next(iter(tree.root.children.values())) is upper, "in its place"
    assert upper.pi == pytest.approx(math.sqrt(0.09)) and node.pi == pytest.approx(math.sqrt(0.1))
    assert (upper.draws, upper.count, upper.wins) == (node.draws, node.count, node.wins) == (1, 1, 1.0)
    assert [n.depth for n in (upper, node, leaf)] == [1, 2, 3] and [n.prefix_length for n in (upper, node, leaf)] == [2, 4, 5]
    assert first.nodes == (upper, upper, node, node, leaf) and first.leaf is leaf and np.exp(first.logprobs) == pytest.approx(probabilities)
    assert tree.prefix_ids(upper) == encode("ab") and tree.nodes[upper.index] is upper and upper.index == len(tree.nodes) - 1


def test_a_continuation_from_inside_a_step_first_redraws_its_rest():
    tree = make_tree()
    hang(tree, tree.root, "abc|d$", 1.0)
    upper = tree.split(tree.nodes[1], 1)
    other = hang(tree, upper, "x|y$", 0.0)
    again = hang(tree, upper, "bc|e$", 0.0)
    assert nodes(tree) == [[encode(t) for t in path] for path in (("a", "bc|", "d$"), ("a", "x|", "y$"), ("a", "bc|", "e$"))]
    assert other.ids == encode("ax|y$") and other.branch is upper and other.new_tokens == 4 and again.leaf.parent is tree.nodes[1]
    assert upper.draws == 1 and [child.draws for child in upper.children.values()] == [2, 1], "row 7"
    assert density(upper) == pytest.approx(1 / 3) and density(tree.nodes[1]) == 0.5 and tree.generated_tokens == 6 + 4 + 5
    assert leaf_depths(tree) == [2, 2, 2], "steps, not nodes"


def test_the_rest_of_a_step_ends_where_the_whole_step_would():
    tree = make_tree()
    hang(tree, tree.root, "ab|c$", 0.0)
    upper = tree.split(tree.nodes[1], 2)
    hang(tree, upper, "|d$", 0.0)
    assert nodes(tree)[1] == [encode("ab"), (END,), encode("d$")], "by itself the delimiter would be leading white space"


def test_siblings_that_begin_alike_pass_through_the_upper_half():
    tree = make_tree()
    for text, reward in (("abc|x$", 1.0), ("ad|x$", 0.0), ("abe|y$", 0.0), ("abe|z$", 1.0)):
        hang(tree, tree.root, text, reward)
    upper = tree.split(tree.trajectories[2].leaf.parent, 2)
    assert [child.ids for child in tree.root.children.values()] == [encode("ab"), encode("ad|")]
    assert [child.ids for child in upper.children.values()] == [encode("c|"), encode("e|")]
    assert (upper.draws, upper.count, upper.wins) == (3, 3, 2.0) and [c.draws for c in upper.children.values()] == [1, 2]
    later = hang(tree, tree.root, "abf|g$", 0.0)
    assert later.leaf.path[1] is upper and upper.draws == 4 and later.leaf.parent.ids == encode("f|")
    higher = tree.split(upper, 1)
    assert [child.ids for child in higher.children.values()] == [encode("b"), encode("d|")] and higher.draws == 5
    assert later.leaf.path[1:3] == [higher, upper] and hang(tree, tree.root, "abe|y$", 0.0).leaf is tree.trajectories[2].leaf


def test_without_need_no_node_is_made():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    leaf = hang(tree, tree.root, "a|$", 1.0).leaf
    closed = tree.nodes[1]
    before = list(tree.nodes)
    assert tree.split(closed, 0) is tree.root
    assert tree.split(leaf, 2) is closed and leaf.parent is tree.root, "row 16: EOS joined the step, so the leaf stays beside it"
    assert tree.nodes == before
    upper = tree.split(closed, 1)
    assert tree.split(closed, 0) is upper and leaf.parent is upper and leaf.ids == (END, EOS)


def test_a_leaf_can_be_split_and_the_truncated_one_of_the_same_ids_cannot_be_continued():
    tree = make_tree(max_tokens=8)
    hang(tree, tree.root, "ab$", 1.0)
    cut_off = hang(tree, tree.root, "ab", 0.0)
    upper = tree.split(tree.trajectories[0].leaf, 2)
    assert not upper.terminal and tree.trajectories[0].leaf.terminal and tree.trajectories[0].leaf.ids == (EOS,)
    assert cut_off.leaf.parent is tree.root and (upper.draws, upper.count) == (1, 1)
    assert upper in tree.candidates(1) and cut_off.leaf not in tree.candidates(1)


def test_bad_splits_are_refused():
    tree, other = make_tree(), make_tree()
    hang(tree, tree.root, "ab$", 1.0)
    for offset in (-1, 3, 4):
        with pytest.raises(ValueError, match=f"node 1: cannot split before token {offset} of 3"):
            tree.split(tree.nodes[1], offset)
    with pytest.raises(ValueError, match="cannot split before token 0 of 0"):
        tree.split(tree.root, 0)
    with pytest.raises(ValueError, match="another tree"):
        other.split(tree.nodes[1], 1)


@exact
@given(trees(rewards=(0.0, 1.0, math.nan)), st.data())
def test_a_split_leaves_everything_else_as_it_was(tree, data):
    """Conservation: trajectories, statistics and scores of all old nodes but the halves; r multiplies along them."""
    node = data.draw(st.sampled_from([n for n in tree.nodes if n.ids] or [tree.root]))
    if node is tree.root:
        return
    offset = data.draw(st.integers(1, len(node.ids))) % len(node.ids)
    old = list(tree.nodes)
    paths = [(t.ids, t.logprobs, t.leaf, t.branch, t.new_tokens) for t in tree.trajectories]
    kept = {n: (n.index, n.draws, n.count, n.wins, n.prefix_length, n.terminal) for n in old}
    family = {child for child in node.parent.children.values() if child.ids[:offset] == node.ids[:offset]}
    scored = [n for n in old if n.children and n is not node.parent]
    scores = [(ib_score(n, 5.0), density(n)) for n in scored]
    total, gain, mass = density(node), ratio(node), math.fsum(node.logprobs)
    upper = tree.split(node, offset)
    assert paths == [(t.ids, t.logprobs, t.leaf, t.branch, t.new_tokens) for t in tree.trajectories]
    assert kept == {n: (n.index, n.draws, n.count, n.wins, n.prefix_length, n.terminal) for n in old} and tree.nodes[: len(old)] == old
    assert [(ib_score(n, 5.0), density(n)) for n in scored] == scores
    if len(tree.nodes) == len(old):
        assert upper in old
        return
    assert set(upper.children.values()) == {child for child in family if child.parent is upper} and node.parent is upper
    assert density(node) == total and ratio(node) * ratio(upper) == pytest.approx(gain, abs=1e-6)
    assert math.fsum((*upper.logprobs, *node.logprobs)) == pytest.approx(mass) or upper.draws > node.draws


@exact
@given(trees(splits=True, rewards=(0.0, 1.0)))
def test_no_child_goes_on_from_a_split_sibling(tree):
    """The trie stays whole: every trajectory that goes on from a split node's prefix passes through the node."""
    for node in tree.nodes:
        for child in node.children.values():
            alike = [o for o in node.children.values() if o is not child and o.ids[: len(child.ids)] == child.ids]
            assert not child.cut or all(len(o.ids) == len(child.ids) and o.terminal for o in alike)


@exact
@given(st.data())
def test_the_order_of_splits_and_rollouts_does_not_matter(data):
    """Splitting first and adding then, or the other way round: the same nodes with the same statistics."""
    early, late = make_tree(16), make_tree(16)
    first = data.draw(continuations(16, rewards=(0.0, 1.0)))
    later = data.draw(st.lists(continuations(16, rewards=(0.0, 1.0)), max_size=5))
    leaves = [tree.add(tree.root, *first).leaf.path[1] for tree in (early, late)]
    length = len(leaves[0].ids)
    offset = data.draw(st.integers(0, max(0, length - 1)))
    if length:
        early.split(leaves[0], offset)
    for continuation in later:
        for tree in (early, late):
            tree.add(tree.root, *continuation)
    if length and not (leaves[1].terminal and any(leaves[1].ids[:offset] == n.ids for n in late.nodes)):
        late.split(leaves[1], offset)

        def content(tree):
            return {(*tree.prefix_ids(n), n.terminal): (n.draws, n.count, n.wins, round(n.pi, 9), n.ids, n.depth) for n in tree.nodes}

        assert content(early) == content(late)


def test_letters_of_the_examples_are_single_tokens():
    assert encode("ab|") == (letter("a"), letter("b"), END)
