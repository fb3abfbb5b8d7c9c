"""EPTree: C.5. Which token is forked when, on scripted chains."""

import numpy as np
import pytest
from helpers import END, encode, plant, random_source, scripted
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.methods import Sampler
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter


def spec(initial=2, iterations=3, nodes=1, branches=1, scope="forest", min_room=1) -> Sampler:
    trees = initial if scope == "tree" else 1
    size = initial + (iterations - 1) * nodes * branches * trees
    keys = {"initial": initial, "iterations": iterations, "nodes": nodes, "branches": branches, "scope": scope, "min_room": min_room}
    return Sampler(name="eptree", group_size=size, **keys)


def run(sampler: Sampler, *script, max_tokens=64):
    """The tree and, round by round, the prefix of each continuation."""
    tree, rounds = plant(sampler, max_tokens), []
    generator = SAMPLERS["eptree"](tree, sampler, None)
    source = scripted(script)
    for branches in generator:
        rounds.append([tree.prefix_ids(branch.node) for branch in branches for _ in range(branch.n)])
        for node, answer in [(b.node, source(b.node, tree.room(b.node))) for b in branches for _ in range(b.n)]:
            tree.add(node, *answer)
    return tree, rounds


A = ("abc|de$", (0.9, 0.3, 0.8, 0.9, 0.9, 0.2, 0.9))  # most surprising: e, then b
B = ("fgh$", (0.9, 0.4, 0.5, 0.9))


def test_forest_takes_the_most_surprising_token_of_all_chains_each_once():
    certain = ("xy$", 0.95)
    tree, rounds = run(spec(iterations=5), A, B, certain, certain, certain, certain)
    assert rounds == [[(), ()], [encode("abc|d")], [encode("a")], [encode("f")], [encode("fg")]], "the token itself is left out"
    assert [t.ids for t in tree.trajectories[2:4]] == [encode("abc|dxy$"), encode("axy$")]
    assert [node.ids for node in tree.expansions] == [encode("d"), encode("a"), encode("f"), encode("g")]


def test_the_fork_splits_the_step_it_lies_in():
    tree, _ = run(spec(iterations=2), A, B, ("x|y$", 0.9))
    first = tree.trajectories[0]
    assert [node.ids for node in first.leaf.path[1:]] == [encode("abc|"), encode("d"), encode("e$")]
    assert first.leaf.pi == pytest.approx(np.sqrt(0.2 * 0.9)) and first.leaf.parent.pi == pytest.approx(0.9)
    assert [node.ids for node in tree.trajectories[2].leaf.path[2:]] == [encode("d"), encode("x|"), encode("y$")]
    assert first.leaf.parent.count == 2 and first.leaf.count == 1


def test_a_fork_at_the_first_token_of_a_step_makes_no_node():
    tree, rounds = run(spec(iterations=2), ("ab|cd$", (0.9, 0.9, 0.9, 0.1, 0.9, 0.9)), ("e$", 0.9), ("x$", 0.9))
    assert rounds[1] == [encode("ab|")] and not any(node.cut for node in tree.nodes) and tree.expansions == [tree.nodes[1]]


def test_new_chains_join_the_pool_without_their_first_token():
    branch = ("xyz$", (0.01, 0.1, 0.9, 0.9))  # x repeats the fork, y is the most surprising of all
    _, rounds = run(spec(iterations=4), A, B, branch, ("x$", 0.9), ("x$", 0.9))
    assert rounds[1:] == [[encode("abc|d")], [encode("abc|dx")], [encode("a")]]


def test_the_first_token_of_an_initial_chain_may_be_forked_at_the_root():
    tree, rounds = run(spec(iterations=2), ("ab$", (0.01, 0.9, 0.9)), ("c$", 0.9), ("d$", 0.9))
    assert rounds[1] == [()] and tree.expansions == [tree.root]


def test_n_tokens_with_t_continuations_each():
    _, rounds = run(spec(iterations=2, nodes=2, branches=3), A, B, *[("x$", 0.9)] * 6)
    assert rounds[1] == [encode("abc|d")] * 3 + [encode("a")] * 3


def test_two_forks_in_one_step_in_one_round():
    """Each order of the two offsets; the second split moves neither the first fork nor a node that is handed out already."""
    for probabilities in ((0.9, 0.2, 0.9, 0.1, 0.9), (0.9, 0.1, 0.9, 0.2, 0.9)):
        tree, rounds = run(spec(iterations=2, nodes=2), ("abcd$", probabilities), ("e$", 0.9), ("x$", 0.9), ("y$", 0.9))
        assert sorted(rounds[1]) == sorted([encode("a"), encode("abc")])
        assert [n.ids for n in tree.trajectories[0].leaf.path[1:]] == [encode("a"), encode("bc"), encode("d$")]
        assert {t.ids for t in tree.trajectories[2:]} in ({encode("ax$"), encode("abcy$")}, {encode("abcx$"), encode("ay$")})


def test_tree_scope_takes_the_best_of_each_chain_and_may_repeat_it():
    certain = ("x$", 0.95)
    _, rounds = run(spec(scope="tree"), A, B, *[certain] * 4)
    assert rounds == [[(), ()], [encode("abc|d"), encode("f")], [encode("abc|d"), encode("f")]]
    surprising = ("xy$", (0.9, 0.01, 0.9))
    _, rounds = run(spec(scope="tree"), A, B, certain, surprising, certain, certain)
    assert rounds[2] == [encode("abc|d"), encode("fx")], "a branch belongs to the pool of the chain it left"


def test_the_native_script_has_thirty_leaves():
    sampler = spec(initial=6, iterations=2, nodes=2, branches=2, scope="tree")
    _, rounds = run(sampler, *[A] * 6, *[("x$", 0.9)] * 24)
    assert sampler.group_size == 30 and rounds[1] == ([encode("abc|d")] * 2 + [encode("a")] * 2) * 6


def test_tokens_without_room_are_masked_but_never_the_root():
    _, rounds = run(spec(iterations=3, min_room=6), A, B, ("x$", 0.9), ("x$", 0.9), max_tokens=8)
    assert rounds[1:] == [[encode("a")], [encode("f")]], "e, the most surprising, has 3 of 8 tokens left"
    _, rounds = run(spec(iterations=2, min_room=99), A, B, ("x$", 0.9), max_tokens=8)
    assert rounds[1] == [()]


def test_ties_go_to_the_earlier_chain_then_to_the_earlier_token():
    _, rounds = run(spec(iterations=4), ("ab$", 0.5), ("cd$", 0.5), *[("x$", 0.9)] * 3)
    assert rounds[1:] == [[()], [encode("a")], [encode("ab")]]


def test_with_too_few_tokens_they_are_gone_through_again_and_with_none_the_root_is_taken():
    _, rounds = run(spec(iterations=2, nodes=5), ("a$", (0.2, 0.5)), ("$", 0.9), *[("x$", 0.9)] * 5)
    assert rounds[1] == [(), encode("a"), (), (), encode("a")], "three tokens: a, its EOS, the other EOS"
    _, rounds = run(spec(iterations=3), ("", 0.5), ("", 0.5), ("", 0.5), ("", 0.5))
    assert rounds[1:] == [[()], [()]]


WORDS = [b"", b"a ", b" Answer", b"the conclusion.\n\n", b"answ", b"er"]


@pytest.mark.parametrize(("ids", "position"), [((1, 2, 1, 1, 0), 1), ((1, 3, 1, 1, 0), 1), ((1, 4, 5, 1, 0), 4), ((2, 1, 1, 1, 0), 0)])
def test_tokens_after_conclusion_or_answer_are_masked(ids, position):
    """Later tokens surprise more; the word itself may be forked; a word in two tokens does not count (released code)."""
    sampler = spec(initial=2, iterations=2)
    tree = make_tree("u", sampler, Segmenter(WORDS, 0), 16)
    generator = SAMPLERS["eptree"](tree, sampler, None)
    next(generator)
    tree.add(tree.root, ids, np.log([0.9, 0.5, 0.4, 0.3, 0.2]), True, 1.0)
    tree.add(tree.root, (0,), [-0.01], True, 0.0)
    (branch,) = next(generator)
    assert tree.prefix_ids(branch.node) == ids[:position]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(2, 4), st.integers(2, 5), st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from(["forest", "tree"]),
    st.integers(0, 999),
)
def test_forks_of_a_forest_are_the_best_tokens_not_yet_taken(shape, scope, seed):
    """Against a list of all tokens of all chains, kept apart from the tree."""
    sampler, rng = spec(*shape, scope=scope, min_room=3), np.random.default_rng(seed)
    tree, chains, taken = plant(sampler, 24), [], set()
    source = random_source(rng, tokens=[*encode("abc"), END])
    owner_of = {}
    for number, branches in enumerate(SAMPLERS["eptree"](tree, sampler, None)):
        prefixes = [tree.prefix_ids(branch.node) for branch in branches]
        picked = []
        if number:
            for owner in range(shape[0] if scope == "tree" else 1):
                mine = [t for t in chains if t not in taken and owner_of[t[1]] == owner]
                best = sorted(mine)[: sampler.nodes]
                picked += [(owner, best[k % len(best)] if best else None) for k in range(sampler.nodes)]
                taken |= set(best) if scope == "forest" else set()
            assert prefixes == [tree.trajectories[t[1]].ids[: t[2]] if t else () for _, t in picked]
        for index, branch in enumerate(branches):
            for copy in range(branch.n):
                trajectory = tree.add(branch.node, *source(branch.node, tree.room(branch.node)))
                name, start = len(tree.trajectories) - 1, len(trajectory.ids) - trajectory.new_tokens
                owner_of[name] = (picked[index][0] if number else copy) if scope == "tree" else 0
                own = range(start + bool(number), len(trajectory.ids))
                chains += [(trajectory.logprobs[i], name, i) for i in own if i == 0 or 24 - i >= 3]
    assert len(tree.trajectories) == sampler.group_size
