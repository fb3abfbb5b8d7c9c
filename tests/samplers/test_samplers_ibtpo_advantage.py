"""IB-TPO's advantage on the trees of other samplers and under other scorings: D.2 rows 8 and 25, D.1 remark i."""

import numpy as np
import pytest
from helpers import grow, hang, make_tree, one_step_tree, plant, scripted

from ibtpo.advantages.ibtpo import ibtpo
from ibtpo.config.methods import Advantage, Sampler
from ibtpo.samplers import SAMPLERS
from ibtpo.tree import ReasoningTree, Scoring

LOCAL = Advantage(name="ibtpo", beta=5.0, local_weight=1.0, std_epsilon=0.0)


def values(tree: ReasoningTree, number: int) -> list[float]:
    return ibtpo(tree, LOCAL)[number].tolist()


def test_row_25_the_halves_of_a_forked_step_have_their_own_values():
    """EPTree: abc| (right) forked after "ab"; its new way x| is wrong, and so is the other chain: rewards 1, 0, 0."""
    sampler = Sampler(name="eptree", group_size=3, initial=2, iterations=2, nodes=1, branches=1, min_room=1)
    tree = plant(sampler)
    source = scripted([("abc|d$", (0.9, 0.8, 0.1, 0.5, 0.9, 0.9)), ("e$", 0.6), ("x|y$", 0.7)])

    def first_is_right(node, room):
        ids, logprobs, finished, _ = source(node, room)
        return ids, logprobs, finished, float(0.1 in np.exp(logprobs).round(9))

    grow(tree, SAMPLERS["eptree"](tree, sampler, None), first_is_right)
    std = np.sqrt(1 / 3)
    # p(q) = 1/3; ab: p = 1/2, r = 1.5, pi = sqrt(.72); c|: p = 1, r = 2, pi = sqrt(.05); d$: p = 1, r = 1, pi = .9
    expected = [(1 / 2, 1.5, np.sqrt(0.72))] * 2 + [(1, 2, np.sqrt(0.05))] * 2 + [(1, 1, 0.9)] * 2
    assert values(tree, 0) == pytest.approx([(p - 1 / 3) / std + (r - 1.2) * pi for p, r, pi in expected], abs=1e-6)
    expected = [(1 / 2, 1.5, np.sqrt(0.72))] * 2 + [(0, 0, 0.7)] * 2 + [(0, 1, 0.7)] * 2
    assert values(tree, 2) == pytest.approx([(p - 1 / 3) / std + (r - 1.2) * pi for p, r, pi in expected], abs=1e-6)


def test_r_squared_and_hierarchical_densities():
    squared = one_step_tree([1.0, 0.0, 0.0, 0.0], (0.9, 0.8, 0.7, 0.6))
    squared.scoring = Scoring(ratio_power=2)
    assert values(squared, 0)[0] == pytest.approx(0.75 / 0.5 + (16 - 1.2) * 0.9, abs=1e-5)
    assert values(squared, 1)[0] == pytest.approx(-0.25 / 0.5 - 1.2 * 0.8, abs=1e-5)

    for scoring, root, first in [(Scoring(), 1 / 2, 1 / 3), (Scoring("hierarchical"), (1 / 3 + 1) / 2, 1 / 3)]:
        tree = make_tree(scoring=scoring)
        hang(tree, tree.root, "a|b$", 1.0, (0.9, 0.5))
        hang(tree, tree.root, "c$", 1.0, 0.6)
        for _ in range(2):
            hang(tree, tree.nodes[1], "d$", 0.0, 0.5)
        std = np.std([1, 1, 0, 0], ddof=1)
        assert values(tree, 0)[0] == pytest.approx((first - root) / std + (first / root - 1.2) * 0.9, abs=1e-6)
        assert values(tree, 1)[0] == pytest.approx((1 - root) / std + (1 / root - 1.2) * 0.6, abs=1e-6)
