"""Fixed width: C.9. Level by level, and the same distribution and tokens as stopping at each step."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from helpers import encode, grow, make_tree, scripted

from ibtpo.config.methods import Sampler
from ibtpo.samplers import SAMPLERS
from ibtpo.tree import ReasoningTree


def spec(size=12, fan_out=2, min_room=1) -> Sampler:
    return Sampler(name="fixed-width", group_size=size, fan_out=fan_out, min_room=min_room)


def run(sampler: Sampler, *texts: str, max_tokens=64) -> tuple[ReasoningTree, list[list[str]]]:
    """The tree and, round by round, the text of the prefix of each continuation."""
    tree = make_tree(max_tokens)
    rounds = grow(tree, SAMPLERS["fixed-width"](tree, sampler, None), scripted([(text, 0.5) for text in texts]))
    return tree, [[branch.node for branch in branches for _ in range(branch.n)] for branches in rounds]


def prefixes(tree, rounds):
    return [[tree.prefix_ids(node) for node in nodes] for nodes in rounds]


def test_every_step_forks_two_ways_until_the_width_is_reached():
    tree, rounds = run(spec(6), "a|b|c$", "d|e|f$", "g|h$", "i|j$", "k$", "l$")
    # two from the root; both first steps fork; of the four second steps two more ways are left, for the two earliest paths
    assert prefixes(tree, rounds) == [[(), ()], [encode("a|"), encode("d|")], [encode("a|b|"), encode("d|e|")]]
    assert tree.expansions == [node for nodes in rounds[1:] for node in nodes]
    assert [t.ids for t in tree.trajectories[2:4]] == [encode("a|g|h$"), encode("d|i|j$")]


def test_three_ways_one_each_before_two():
    tree, rounds = run(spec(7, fan_out=3), "a|x$", "b|x$", "c|x$", "d$", "e$", "f$", "g$")
    assert prefixes(tree, rounds) == [[()] * 3, [encode("a|"), encode("b|"), encode("c|"), encode("a|")]]


def test_a_step_drawn_twice_forks_twice():
    tree, rounds = run(spec(4), "a|x$", "a|y$", "z$", "z$")
    assert prefixes(tree, rounds) == [[()] * 2, [encode("a|")] * 2] and len(tree.root.children) == 1


def test_levels_that_cannot_fork_are_passed_over():
    tree, rounds = run(spec(4, min_room=4), "a$", "b|c$", "d$", "e$", max_tokens=5)
    assert prefixes(tree, rounds) == [[()] * 2, [()] * 2], "no room below b|, no deeper step: the rest start at the root"
    tree, rounds = run(spec(3), "a$", "b|c|d$", "e$")
    assert prefixes(tree, rounds) == [[()] * 2, [encode("b|")]], "the path that ended does not fork"
    tree, rounds = run(spec(5), "a$", "b|c|d$", "e$", "f$", "g$")
    assert prefixes(tree, rounds) == [[()] * 2, [encode("b|")], [encode("b|c|")], [()]], "no level 3: one from the root"


def test_a_width_below_the_fan_out():
    tree, rounds = run(spec(2, fan_out=5), "a|b$", "c$")
    assert prefixes(tree, rounds) == [[()] * 2] and len(tree.trajectories) == 2


# A policy with two steps, each "a|" with probability 2/3 or "b|" with 1/3, the second depending on the first; then EOS.
CHANCE = {(): Fraction(2, 3), ("a|",): Fraction(1, 4), ("b|",): Fraction(3, 5)}


def weight(first: str, second: str) -> Fraction:
    one, two = CHANCE[()], CHANCE[first,]
    return (one if first == "a|" else 1 - one) * (two if second == "a|" else 1 - two)


def test_the_distribution_is_that_of_stopping_at_each_step():
    """Exact, by enumeration: 2 paths fork once each into 4 (G = 4); the joint law of the four leaves, as a multiset."""

    def tail(first, second):
        return CHANCE[first,] if second == "a|" else 1 - CHANCE[first,]

    stopping, ours = Counter(), Counter()
    steps = ["a|", "b|"]
    for one, two in product(steps, repeat=2):  # stop after the first step, then two draws of the second below each
        for seconds in product(steps, repeat=4):
            leaves = tuple(zip((one, one, two, two), seconds, strict=True))
            first = [CHANCE[()] if step == "a|" else 1 - CHANCE[()] for step in (one, two)]
            stopping[tuple(sorted(leaves))] += first[0] * first[1] * np.prod([tail(*leaf) for leaf in leaves])
    for whole in product(product(steps, repeat=2), repeat=2):  # two whole rollouts, then one continuation at the end of each first step
        for more in product(steps, repeat=2):
            tree, rounds = run(spec(4), *("".join(path) + "$" for path in whole), *(step + "$" for step in more))
            starts = [tree.prefix_ids(node) for node in rounds[1]]
            assert starts == [encode(path[0]) for path in whole]
            leaves = [*whole, *((path[0], step) for path, step in zip(whole, more, strict=True))]
            ours[tuple(sorted(leaves))] += np.prod([weight(*path) for path in whole]) * np.prod([tail(*leaf) for leaf in leaves[2:]])
            assert tree.generated_tokens == sum(map(len, (encode(a + b + "$") for a, b in whole))) + 2 * len(encode("a|$"))
    assert ours == stopping and sum(ours.values()) == 1


@pytest.mark.parametrize("size", [2, 3, 5, 8, 12])
def test_full_binary_tree_counts(size):
    """Long responses: 2, 4, 8 ... paths level by level, so a round doubles the paths until G."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefgh"), 1)[0] + "|" for _ in range(10)) for _ in range(size)]
    _, rounds = run(spec(size), *texts)
    widths = np.cumsum([len(nodes) for nodes in rounds]).tolist()
    assert widths == [min(size, 2 ** (level + 1)) for level in range(len(widths))]
