"""The trie: D.2 rows 3, 7, 16-19, T16, T22 and bad input."""

import math

import numpy as np
import pytest
from helpers import END, EOS, encode, hang, letter, make_tree, trees
from hypothesis import given, settings

from ibtpo.tree import density, ib_score
from ibtpo.tree.statistics import effective, leaf_depths, repeat_share, root_share, scored_rewards

exact = settings(derandomize=True, deadline=None, max_examples=150)


def draws(node):
    return [child.draws for child in node.children.values()]


def test_a_trajectory_becomes_a_path():
    tree = make_tree()
    t = hang(tree, tree.root, "a|bc|d$", 1.0, (0.9, 0.8, 0.7))
    first, second, third = tree.nodes[1:]
    assert [node.ids for node in tree.nodes] == [(), encode("a|"), encode("bc|"), encode("d$")]
    assert [node.terminal for node in tree.nodes] == [False, False, False, True]
    assert [node.depth for node in tree.nodes] == [0, 1, 2, 3]
    assert [node.prefix_length for node in tree.nodes] == [0, 2, 5, 7]
    assert [node.pi for node in tree.nodes[1:]] == pytest.approx([0.9, 0.8, 0.7])
    assert t.nodes == (first, first, second, second, second, third, third) and t.leaf is third
    assert t.ids == encode("a|bc|d$") and t.new_tokens == 7 and t.branch is tree.root and t.uid == "q" and t.finished
    assert tree.prefix_ids(second) == encode("a|bc|") and tree.room(second) == tree.max_tokens - 5


def test_row_7_draws_count_only_what_was_generated():
    tree = make_tree()
    hang(tree, tree.root, "a|b|c$", 1.0)
    a, b, _ = tree.nodes[1:]
    hang(tree, a, "b|d$", 0.0)  # a draw at a that gives b again, and a draw at b
    hang(tree, b, "d$", 0.0)  # a draw at b only
    assert a.draws == 1 and draws(tree.root) == [1]
    assert b.draws == 2 and draws(b) == [1, 2]
    assert [node.count for node in (tree.root, a, b)] == [3, 3, 3]
    assert [child.count for child in b.children.values()] == [1, 2]


def test_row_18_same_ids_are_one_node_with_the_pi_of_its_first_draw():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0, 0.9)
    again = hang(tree, tree.root, "a|c$", 0.0, 0.2)
    a = tree.nodes[1]
    assert len(tree.root.children) == 1 and a.draws == 2 and a.pi == pytest.approx(0.9)
    assert np.exp(again.logprobs) == pytest.approx([0.2] * 4), "a trajectory keeps the log-probs it was sampled with"
    branch = hang(tree, a, "d$", 0.0, 0.3)
    assert np.exp(branch.logprobs) == pytest.approx([0.9, 0.9, 0.3, 0.3]), "a shared prefix has those of its nodes"


def test_row_19_duplicates_count_with_multiplicity():
    tree = make_tree()
    first = hang(tree, tree.root, "a|b$", 1.0)
    second = hang(tree, tree.root, "a|b$", 1.0)
    hang(tree, tree.root, "c$", 0.0)
    assert first.leaf is second.leaf and first.leaf.count == 2 and len(tree.trajectories) == 3
    assert density(tree.root) == pytest.approx(2 / 3) and leaf_depths(tree) == [2, 2, 1]
    assert tree.generated_tokens == 4 + 4 + 2


@pytest.mark.parametrize("order", [("a|", "a|b$"), ("a|b$", "a|")])
def test_a_truncated_leaf_never_merges_with_an_inner_node(order):
    tree = make_tree()
    for text in order:
        hang(tree, tree.root, text, 0.0)
    inner, leaf = sorted(tree.root.children.values(), key=lambda node: node.terminal)
    assert inner.ids == leaf.ids == encode("a|") and leaf.terminal and not inner.terminal
    assert not leaf.children and inner in tree.candidates(1) and leaf not in tree.candidates(1)


def test_an_unfinished_step_that_starts_another_one_is_a_leaf_of_its_own():
    tree = make_tree()
    hang(tree, tree.root, "ab|c$", 1.0)
    hang(tree, tree.root, "ab", 0.0)
    assert [node.ids for node in tree.root.children.values()] == [encode("ab|"), encode("ab")]


def test_eos_at_once():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    joined = hang(tree, tree.root, "a|$", 1.0)  # row 16: EOS joins the step
    below = hang(tree, tree.nodes[1], "$", 0.0)  # drawn at a closed step: a child of its own
    assert joined.leaf.parent is tree.root and joined.leaf.ids == encode("a|$")
    assert below.leaf.parent is tree.nodes[1] and below.leaf.ids == (EOS,) and below.ids == encode("a|$")
    assert draws(tree.nodes[1]) == [1, 1]


def test_an_empty_completion_is_a_terminal_child_without_ids():
    tree = make_tree()
    at_root = tree.add(tree.root, [], [], False, 0.0, "error")
    hang(tree, tree.root, "a|b$", 1.0)
    below = tree.add(tree.nodes[2], [], [], False, 0.0)
    assert at_root.ids == () and at_root.nodes == () and at_root.status == "error" and at_root.leaf.pi == 1
    assert below.ids == encode("a|") and below.leaf.terminal and below.leaf.parent is tree.nodes[2] and below.new_tokens == 0
    assert [t.reward for t in tree.trajectories] == [0, 1, 0] and tree.root.count == 3
    assert all(math.isfinite(ib_score(node, 5.0)) for node in tree.nodes if node.children)
    assert tree.candidates(1) == [tree.root, tree.nodes[2]]


def test_t16_prefix_and_continuation_are_the_sampled_ids():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    node = tree.nodes[1]
    continuation = (1, letter("b"), EOS)  # "\n" after ".\n\n": other ids than the text's canonical ones
    t = tree.add(node, continuation, [-0.1] * 3, True, 0.0)
    assert t.ids == tree.prefix_ids(node) + continuation and len(t.ids) == len(t.logprobs) == len(t.nodes)
    assert t.leaf.ids == continuation


def test_t22_long_steps_stay_in_log_space():
    tree = make_tree(max_tokens=1500)
    hang(tree, tree.root, "a" * 1500, 1.0, math.exp(-0.7))
    assert tree.nodes[1].pi == pytest.approx(0.4965853038, abs=1e-10)
    assert ib_score(tree.root, 5.0) == pytest.approx(1 - 0.4965853038, abs=1e-10)


def test_pi_of_an_impossible_token_is_zero():
    tree = make_tree()
    tree.add(tree.root, encode("a$"), [-math.inf, 0.0], True, 1.0)
    assert tree.nodes[1].pi == 0 and ib_score(tree.root, 5.0) == 1


def test_candidates_and_room():
    tree = make_tree(max_tokens=10)
    hang(tree, tree.root, "aa|bb|cc|d", 0.0)  # exactly the room
    assert [tree.room(node) for node in tree.nodes] == [10, 7, 4, 1, 0]
    assert tree.candidates(1) == tree.nodes[:4]
    assert tree.candidates(4) == tree.nodes[:3]
    assert tree.candidates(99) == [tree.root], "the root always"


@pytest.mark.parametrize("reward", [None, math.nan])
def test_an_unscorable_trajectory_is_left_out(reward):
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    t = hang(tree, tree.root, "a|c$", reward)
    assert math.isnan(t.reward) and tree.root.count == 1 and density(tree.nodes[1]) == 1 and tree.nodes[1].draws == 2
    assert scored_rewards(tree) == [1.0] and not effective(tree)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((encode("aaaaa"), [-0.1] * 5, False, 0.0), "5 tokens but room for 4; request at most"),
        ((encode("aa"), [-0.1], False, 0.0), "2 tokens but 1 log-probs"),
        ((encode("a"), [math.nan], False, 0.0), "log-prob is NaN"),
        ((encode("ab"), [-0.1, 900.0], False, 0.0), "log-prob is NaN or positive"),
        ((encode("a"), [-0.1], False, 1.5), r"reward 1.5 is outside \[0, 1\]"),
        ((encode("a"), [-0.1], False, -1), "outside"),
    ],
)
def test_bad_continuations_are_refused_and_change_nothing(arguments, message):
    tree = make_tree(max_tokens=6)
    hang(tree, tree.root, "a|b$", 1.0)
    before = [(node.index, node.count, node.wins, node.draws, len(node.children)) for node in tree.nodes]
    with pytest.raises(ValueError, match=message):
        tree.add(tree.nodes[1], *arguments)
    assert [(node.index, node.count, node.wins, node.draws, len(node.children)) for node in tree.nodes] == before
    assert len(tree.trajectories) == 1


def test_a_leaf_or_a_foreign_node_cannot_be_continued():
    tree, other = make_tree(), make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    with pytest.raises(ValueError, match="a leaf cannot be continued"):
        hang(tree, tree.nodes[2], "c$", 0.0)
    for foreign in (other.root, hang(other, other.root, "a|b|c|d$", 1.0).leaf):
        with pytest.raises(ValueError, match="another tree"):
            hang(tree, foreign, "c$", 0.0)


@exact
@given(trees() | trees(splits=True))
def test_every_tree_is_consistent(tree):
    assert [node.index for node in tree.nodes] == list(range(len(tree.nodes)))
    assert tree.generated_tokens == sum(len(t.ids) - t.branch.prefix_length for t in tree.trajectories)
    for t in tree.trajectories:
        assert len(t.ids) == len(t.logprobs) == len(t.nodes) <= tree.max_tokens
        assert t.ids == tree.prefix_ids(t.leaf) and t.branch in t.leaf.path and t.leaf.terminal
        assert [node for node in t.leaf.path for _ in node.ids] == list(t.nodes)
    for node in tree.nodes:
        through = [t for t in tree.trajectories if node in t.leaf.path]
        scored = [t.reward for t in through if not math.isnan(t.reward)]
        assert through and node.count == len(scored) and node.wins == pytest.approx(sum(scored)), "T^(s)"
        assert node.terminal != bool(node.children), "inner nodes have children, leaves none"
        below = [t for t in through if node.terminal or t.leaf is not node]
        generated = [t for t in below if node.parent and t.branch in node.parent.path]
        assert node.draws == len(generated), "row 7"
        assert node.parent is None or node.pi == pytest.approx(math.exp(np.mean(node.logprobs)) if node.ids else 1)


@exact
@given(trees() | trees(splits=True))
def test_conservation_of_reward_density(tree):
    """sum_c count(c) p(c) = count(n) p(n)."""
    for node in tree.nodes:
        if node.children:
            below = list(node.children.values())
            assert sum(child.count for child in below) == node.count
            assert sum(child.count * density(child) for child in below) == pytest.approx(node.count * density(node))


def test_statistics():
    tree = make_tree()
    assert math.isnan(root_share(tree)) and math.isnan(repeat_share(tree)) and leaf_depths(tree) == [] and not effective(tree)
    hang(tree, tree.root, "a|b|c$", 0.7)
    hang(tree, tree.root, "d$", 0.7)
    assert leaf_depths(tree) == [3, 1] and not effective(tree)
    hang(tree, tree.nodes[1], "d$", 0.0)
    assert leaf_depths(tree) == [3, 1, 2] and effective(tree) and tree.generated_tokens == 6 + 2 + 2
    root, a, b = tree.nodes[:3]
    tree.expansions += [root, a, b, a]
    assert root_share(tree) == 1 / 4 and repeat_share(tree) == 1 / 4
    tree.expansions += [a, root]
    assert root_share(tree) == 2 / 6 and repeat_share(tree) == 3 / 6


def test_equal_rewards_whose_std_rounds_up_are_not_effective():
    tree = make_tree()
    for _ in range(11):
        hang(tree, tree.root, "a$", float(np.float32(0.7)))
    assert np.std(np.float32([0.7] * 11)) > 0 and not effective(tree)


def test_the_end_piece_is_a_merged_delimiter():
    assert make_tree().segmenter.split([letter("a"), END, letter("b")]) == [(letter("a"), END), (letter("b"),)]
