"""Reward density, IB-Score and its parts: pure functions of a node, O(children) each.

IB-TPO (arXiv 2605.28109), "The method in seven formulas" 2 and 3, with B_n the draws made at node n:
    p(a*|s)  mean reward of the trajectories through s (D.2 row 8)
    r(c)     p(a*|c) / p(a*|n)
    eta1(c)  r(c) - (1 + 1/beta), information gain;  eta2(c) = pi(c), confidence
    J(n)     1 + (beta/B_n) sum_b eta1(c_b) eta2(c_b) = 1 + beta [ Cov(eta1, eta2) + mean(eta1) mean(eta2) ]
Choices [OURS]: 0/0 = 1 (row 1); a child drawn twice counts twice (row 7); Cov with 1/B_n (row 30).
"""

from __future__ import annotations

from ibtpo.tree.tree import Node

RATIO_EPSILON = 1e-8  # D.2 row 1: 0/0 -> 1, "no information"


def density(node: Node) -> float:
    """p(a*|s) in [0, 1]. A node without a scored trajectory takes its parent's (r = 1, no information), an unscored tree 0."""
    while not node.count and node.parent is not None:
        node = node.parent
    return node.wins / node.count if node.count else 0.0


def ratio(node: Node) -> float:
    """r(s) = p(a*|s) / p(a*|s_p), >= 0; exactly 1 where both are 0. Raises ValueError at the root, which has no parent."""
    if node.parent is None:
        raise ValueError("the root has no parent, so no reward-density ratio")
    return (density(node) + RATIO_EPSILON) / (density(node.parent) + RATIO_EPSILON)


def information_gain(node: Node, beta: float) -> float:
    """eta1(s) = r(s) - (1 + 1/beta), of a node below the root."""
    return ratio(node) - (1 + 1 / beta)


def ib_score(node: Node, beta: float) -> float:
    """J(n), the worth of branching at n (formula 3). Raises ValueError at a node without draws."""
    return 1 + beta * sum(weight * gain * confidence for weight, gain, confidence in _draws(node, beta))


def covariance(node: Node, beta: float) -> float:
    """Cov(eta1, eta2) over the draws at n, with 1/B_n. Raises ValueError at a node without draws."""
    mean_gain, mean_confidence = mean_etas(node, beta)
    return sum(weight * (gain - mean_gain) * (confidence - mean_confidence) for weight, gain, confidence in _draws(node, beta))


def mean_etas(node: Node, beta: float) -> tuple[float, float]:
    """(mean eta1, mean eta2) over the draws at n. Raises ValueError at a node without draws."""
    draws = _draws(node, beta)
    return sum(weight * gain for weight, gain, _ in draws), sum(weight * confidence for weight, _, confidence in draws)


def _draws(node: Node, beta: float) -> list[tuple[float, float, float]]:
    """(share of the draws, eta1, eta2) of each child."""
    total = sum(child.draws for child in node.children.values())
    if not total:
        raise ValueError(f"node {node.index} has no draws, so no IB-Score; only a non-leaf of a grown tree has one")
    return [(child.draws / total, information_gain(child, beta), child.pi) for child in node.children.values()]
