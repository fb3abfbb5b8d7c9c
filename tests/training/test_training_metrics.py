"""The metrics of a rollout batch, by hand."""

from __future__ import annotations

import math

import pytest
from helpers import EOS, VOCABULARY, hang

from ibtpo.training.metrics import rollout_metrics
from ibtpo.tree import ReasoningTree, Scoring, Segmenter


def empty(**scoring) -> ReasoningTree:
    return ReasoningTree("q", Segmenter(VOCABULARY, EOS), 64, Scoring(**scoring))


@pytest.mark.parametrize("power, score", [(1, 1.25), (2, 3.75)])
def test_the_ib_score_is_that_of_the_trees_own_scoring(power, score):
    """J = 1 + 5/2 [(r1 - 1.2) 0.5 + (r2 - 1.2) 0.25] with r = 2, 0, or 4, 0 squared; Cov from the same values."""
    tree = empty(ratio_power=power)
    hang(tree, tree.root, "a$", 1.0, 0.5)
    hang(tree, tree.root, "b$", 0.0, 0.25)
    found = rollout_metrics([tree], beta=5.0)
    assert found["train/ib_score"] == pytest.approx(score)
    assert found["train/covariance"] == pytest.approx(2**power / 2 * 0.125)
    assert (found["train/ratio"], found["train/reward"], found["train/eff_rate"]) == pytest.approx((1.0, 0.5, 1.0))


@pytest.mark.parametrize("density, ratio", [("literal", (3 / 4 + 2 + 0 + 3 / 2) / 4), ("hierarchical", (2 / 3 + 2 + 0 + 4 / 3) / 4)])
def test_the_ratio_is_that_of_the_trees_own_density(density, ratio):
    """p(root) is 2/3 of three responses, or the mean 3/4 of the two draws at it."""
    tree = empty(density=density)
    hang(tree, tree.root, "a|c$", 1.0)
    hang(tree, tree.nodes[1], "d$", 0.0)
    hang(tree, tree.root, "b$", 1.0)
    found = rollout_metrics([tree], beta=5.0)
    assert found["train/ratio"] == pytest.approx(ratio)
    assert found["train/tokens"] == 8 and found["train/response_length"] == pytest.approx((4 + 4 + 2) / 3)
    assert (found["train/depth_mean"], found["train/depth_max"]) == pytest.approx((5 / 3, 2))


def test_unscorable_and_truncated_responses_are_shares_and_leave_the_reward_alone():
    tree = empty()
    hang(tree, tree.root, "a$", 1.0)
    hang(tree, tree.root, "b", None)
    found = rollout_metrics([tree, empty()], beta=5.0)
    assert (found["train/reward"], found["train/unscorable"], found["train/truncated"]) == (1.0, 0.5, 0.5)
    assert math.isnan(found["train/root_repicked"])
