"""TreePO's sampling: C.6. Budget, boundaries, finishing rules and the paths that start anew."""

from collections import Counter
from importlib import import_module

import numpy as np
import pytest
from helpers import EOS, encode, grow, plant
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.methods import Sampler
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter

W = 4


def spec(size=12, initial=4, fan_out=2, segment=W, depth=99, min_room=1) -> Sampler:
    return Sampler(name="treepo", group_size=size, initial=initial, fan_out=fan_out, segment=segment, depth=depth, min_room=min_room)


def run(sampler: Sampler, lengths: list[int], max_tokens=64, seed=0):
    """Path number i is i-th in the tree and `lengths[i]` tokens long (EOS included, up to the room), each of its own letter.

    Returns the tree and, round by round, (number of the path whose boundary it is, tokens of the prefix) of each new path.
    """
    tree = plant(sampler, max_tokens)
    letters = "abcdefghijklmnopqrstuvwxyz"
    numbers = iter(range(99))

    def source(node, room):
        number = next(numbers)
        length = max(1, lengths[number] - node.prefix_length)
        ids = (*encode(letters[number] * (length - 1)), EOS)[:room]
        return ids, [-0.5] * len(ids), EOS in ids, 0.0

    rounds = grow(tree, SAMPLERS["treepo"](tree, sampler, np.random.default_rng(seed)), source)

    def owner(node):
        return next((i for i, t in enumerate(tree.trajectories) if node in t.leaf.path), None) if node.ids else None

    return tree, [[(owner(b.node), b.node.prefix_length) for b in branches for _ in range(b.n)] for branches in rounds]


def test_the_papers_comparison_doubles_four_paths_to_eight_to_twelve():
    """(4, d 2, width 12) and long responses: 4 -> 8 -> total min(12, 16) = 12 over 8 paths: one way each, the last 1 + 4."""
    tree, rounds = run(spec(), [40] * 12)
    assert rounds[0] == [(None, 0)] * 4
    assert rounds[1] == [(0, W), (1, W), (2, W), (3, W)]
    assert rounds[2] == [(7, 2 * W)] * 4 and len(rounds) == 3, "the remainder goes to the last path, the fork of the fourth"
    assert len(tree.trajectories) == 12 and all(len(node.ids) <= W for node in tree.nodes)


def test_new_paths_stand_beside_the_one_they_left():
    """Three active paths and 8 ways: 2, 2, 4. The next round's last path is the third new one of path 2, so it gets the remainder."""
    _, rounds = run(spec(size=9, initial=3, fan_out=3), [40, 40, 40, 40, 40, 40, 40, 40, 40])
    assert rounds == [[(None, 0)] * 3, [(0, W), (0, W), (1, W), (1, W), (2, W), (2, W)]]
    _, rounds = run(spec(size=10, initial=3), [40] * 10)  # 3 -> 6 (d n = 6) -> min(10, 12) = 10: ways 1 x 5 and 5
    assert rounds == [[(None, 0)] * 3, [(0, W), (1, W), (2, W)], [(5, 2 * W)] * 4]


def test_finished_paths_take_width_and_lend_their_ways_for_one_round():
    """Two of four end in the first segment: free = 12 - 2, total = min(10, 2 * 2 + 2 * 2) = 8 over 2 paths: 4 ways each."""
    _, rounds = run(spec(), [3, 40, 4, 40] + [40] * 8)
    assert rounds[1] == [(1, W)] * 3 + [(3, W)] * 3
    # then free = 10, total = min(10, 0 + 2 * 8) = 10 over 8: one each and 3 for the last
    assert rounds[2] == [(9, 2 * W)] * 2 and len(rounds) == 3


def test_a_path_that_ends_exactly_at_a_boundary_has_finished():
    _, rounds = run(spec(size=5, initial=2), [W, W + 1, 9, 9, 9])
    assert rounds[1] == [(1, W)] * 3, "total = min(5 - 1, 2 + 2) = 4"


def test_paths_that_ended_start_anew_when_none_is_active():
    """All four end in the first segment: from the root only, d at a time, over the paths in random order."""
    tree, rounds = run(spec(), [2, 3, 2, 4] + [3] * 8)
    assert rounds == [[(None, 0)] * 4, [(None, 0)] * 8] and tree.expansions == [tree.root] * 8


def test_ended_paths_start_anew_from_their_own_boundaries():
    """1 path of 9 tokens -> 2 -> 4, which all end in the third segment; 8 are missing: d = 2 from a boundary of each of the four."""
    prefixes = Counter()
    for seed in range(40):
        tree, rounds = run(spec(initial=1), [9] * 12, seed=seed)
        assert rounds[:3] == [[(None, 0)], [(0, W)], [(0, 2 * W), (1, 2 * W)]] and len(rounds) == 4
        starts = tree.expansions[3:]
        assert len(starts) == 8 and all(starts[i] is starts[i + 1] for i in (0, 2, 4, 6))
        prefixes.update(prefix for _, prefix in rounds[3])
    assert set(prefixes) == {0, W, 2 * W} and min(prefixes.values()) > 40


def test_new_starts_are_uniform_over_boundaries_and_go_round_the_paths():
    """Two ended paths, of 9 tokens (boundaries 0, 4, 8) and of 5 (0, 4); 3000 seeds, within 5 standard deviations."""
    anew = import_module("ibtpo.samplers.treepo")._anew
    sampler = spec(initial=2)
    tree = plant(sampler)
    paths = [tree.add(tree.root, encode(text), [-0.5] * len(text), True, 0.0) for text in ("a" * 8 + "$", "b" * 4 + "$")]
    starts, a, b = Counter(), paths[0].leaf.path[1:-1], paths[1].leaf.path[1:-1]
    for seed in range(3000):
        nodes = anew(tree, paths, 7, sampler, np.random.default_rng(seed))
        assert len(nodes) == 7 and all(nodes[i] is nodes[i + 1] for i in (0, 2, 4)), "d = 2 each, the last one what is missing"
        assert sum(node in a for node in (nodes[0], nodes[2])) < 2 and sum(node in b for node in (nodes[0], nodes[2])) < 2, "each once"
        starts.update((nodes[0], nodes[2]))
    for node, share in ((tree.root, 1 / 3 + 1 / 2), (a[0], 1 / 3), (a[1], 1 / 3), (b[0], 1 / 2)):
        assert abs(starts.pop(node) - 3000 * share) < 5 * np.sqrt(3000 * 0.25)
    assert not starts


def test_a_boundary_without_room_neither_forks_nor_starts_anew():
    sampler = spec(size=6, initial=2, min_room=61)
    for seed in range(20):
        tree = plant(sampler, 64)
        assert first_forks(tree, sampler, ["a" * 8 + "$", "b" * 8 + "$"], seed) == [tree.root] * 4, "60 tokens are left after a segment"


def first_forks(tree, sampler, texts, seed):
    """Grows the initial paths only, each from its text, and returns the nodes of the next round."""
    generator = SAMPLERS["treepo"](tree, sampler, np.random.default_rng(seed))
    next(generator)
    for text in texts:
        tree.add(tree.root, encode(text), [-0.5] * len(encode(text)), text.endswith("$"), 0.0)
    return [branch.node for branch in next(generator) for _ in range(branch.n)]


def test_truncated_paths_are_not_started_from():
    """2 -> 4 -> 8 paths, all cut at the limit of three segments: 4 are missing."""
    for seed in range(20):
        _, rounds = run(spec(initial=2), [40] * 12, max_tokens=3 * W, seed=seed)
        assert [len(nodes) for nodes in rounds] == [2, 2, 4, 4] and rounds[3] == [(None, 0)] * 4


def test_a_path_that_repeats_itself_in_its_last_segment_is_not_started_from():
    sampler = spec(size=4, initial=1, segment=12)
    for seed in range(20):
        tree = make_tree("u", sampler, Segmenter(TOKENS, 0), 64)
        generator = SAMPLERS["treepo"](tree, sampler, np.random.default_rng(seed))
        next(generator)
        tree.add(tree.root, [2] * 6 + [1] * 6 + [1] * 11 + [0], [-0.5] * 24, True, 0.0)
        (fork,) = next(generator)
        assert fork.node is tree.nodes[1]
        tree.add(fork.node, [2] * 11 + [0], [-0.5] * 12, True, 0.0)
        assert [branch.node for branch in next(generator)] == [tree.root] * 2


TOKENS = [b"", b"abcdefgh", b"ijklmnop"]


def test_the_depth_limit_ends_the_forks_but_not_the_text():
    tree, rounds = run(spec(size=8, initial=2, depth=2), [40] * 8)
    assert rounds == [[(None, 0)] * 2, [(0, W), (1, W)], [(None, 0)] * 4], "4 paths of 2 segments, then the root: none ended by EOS"
    assert [len(t.ids) for t in tree.trajectories] == [40] * 8


@pytest.mark.parametrize(
    ("tokens", "forks"),
    [
        ([1] * 11, False),  # 88 characters: 57 substrings, each of 8 kinds at least 7 times, one 8 times
        ([1] * 10, True),  # 80 characters: 49 substrings, one kind 7 times, the others 6
        ([1, 2] * 7, True),  # period 16: 112 characters, 81 substrings, at most 6 times
        ([1, 2] * 9, False),  # 144 characters, 113 substrings, one kind 8 times
    ],
)
def test_a_segment_that_repeats_itself_is_left_alone(tokens, forks):
    """32 characters 8 times, overlapping as in the released code; only within the segment."""
    sampler = spec(size=3, initial=1, segment=len(tokens))
    tree = make_tree("u", sampler, Segmenter(TOKENS, 0), 64)
    generator = SAMPLERS["treepo"](tree, sampler, np.random.default_rng(0))
    next(generator)
    tree.add(tree.root, [*tokens, 2, 1, 0], [-0.5] * (len(tokens) + 3), True, 0.0)
    branch = next(generator)[0]
    assert (branch.node is not tree.root) == forks, "it stops, and is no path that ended by EOS"
    assert tree.trajectories[0].ids == (*tokens, 2, 1, 0)


def test_too_wide_a_root_is_cut_to_the_width():
    tree, rounds = run(spec(size=3, initial=7), [40] * 3)
    assert rounds == [[(None, 0)] * 3] and len(tree.trajectories) == 3


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(2, 16), st.integers(1, 6), st.integers(2, 4), st.integers(1, 12), st.lists(st.integers(1, 40), min_size=16, max_size=16))
def test_the_budget_rule_by_a_second_account(size, initial, fan_out, depth, lengths):
    """The widths of all rounds, from the lengths alone: paths are numbers here, and the tree plays no part."""
    sampler = spec(size=size, initial=initial, fan_out=fan_out, depth=depth)
    _, rounds = run(sampler, lengths, max_tokens=64)
    expected, count = [min(initial, size)], min(initial, size)
    active, done = list(range(count)), 0
    length = lengths[:count]
    for block in range(1, depth + 1):
        stopped = [p for p in active if length[p] <= block * W or block == depth]
        active = [p for p in active if p not in stopped]
        done += len(stopped)
        if not active:
            break
        total = max(min(max(size - done, 0), fan_out * len(stopped) + fan_out * len(active)), len(active))
        share, rest = divmod(total, len(active))
        following, new = [], 0
        for place, path in enumerate(active):
            ways = share + (rest if place == len(active) - 1 else 0)
            following.append(path)
            for _ in range(ways - 1):
                length.append(max(lengths[count], block * W + 1))
                following.append(count)
                count, new = count + 1, new + 1
        expected += [new] if new else []
        active = following
    expected += [size - count] if count < size else []
    assert [len(nodes) for nodes in rounds] == expected and sum(expected) == size
