"""Reward density, IB-Score and its parts: pure functions of a node, O(children) each.

IB-TPO (arXiv 2605.28109), "The method in seven formulas" 2 and 3, with B_n the draws made at node n:
    p(a*|s)  mean reward of the trajectories through s (D.2 row 8)
    r(c)     p(a*|c) / p(a*|n)
    eta1(c)  r(c) - (1 + 1/beta), information gain;  eta2(c) = pi(c), confidence
    J(n)     1 + (beta/B_n) sum_b eta1(c_b) eta2(c_b) = 1 + beta [ Cov(eta1, eta2) + mean(eta1) mean(eta2) ]
Choices [OURS]: 0/0 = 1 (row 1); a child drawn twice counts twice (row 7); Cov with 1/B_n (row 30).
Ablations [OURS], both chosen by a `Scoring`: hierarchical densities (row 8), p(n) = (1/B_n) sum_b p(c_b) with the mean reward at a
leaf, so that mean r = 1; and r squared in eta1 (D.1, remark i), which the alpha = 2 Tsallis entropy of the posterior would need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ibtpo.tree.tree import Node

RATIO_EPSILON = 1e-8  # D.2 row 1: 0/0 -> 1, "no information"


@dataclass(frozen=True, slots=True)
class Scoring:
    """How nodes are scored: density of D.2 row 8 ("literal" or "hierarchical"), ratio_power: 1, or 2 for r squared in eta1."""

    density: Literal["literal", "hierarchical"] = "literal"
    ratio_power: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        if self.density not in ("literal", "hierarchical") or self.ratio_power not in (1, 2):
            raise ValueError(f"{self}: density is 'literal' or 'hierarchical' and ratio_power 1 or 2")


LITERAL = Scoring()  # the paper's


def density(node: Node, scoring: Scoring = LITERAL) -> float:
    """p(a*|s) in [0, 1]. A node without a scored trajectory takes its parent's (r = 1, no information), an unscored tree 0."""
    while not node.count and node.parent is not None:
        node = node.parent
    if scoring.density == "hierarchical":
        return mean_of_children(node)
    return node.wins / node.count if node.count else 0.0


def mean_of_children(node: Node) -> float:
    """Hierarchical p(a*|s): the mean of the children's, each as often as it was drawn; unscored ones are left out. Cached at the nodes."""
    missing = [node]
    while node.mean_of_children is None:  # children first, without recursion: a tree may be deeper than Python's stack
        last = missing[-1]
        scored = [child for child in last.children.values() if child.count]
        unknown = [child for child in scored if child.mean_of_children is None]
        missing += unknown
        if not unknown:
            missing.pop()
            mean = sum(child.draws * child.mean_of_children for child in scored) / sum(child.draws for child in scored) if scored else None
            last.mean_of_children = (last.wins / last.count if last.count else 0.0) if mean is None else mean
    return node.mean_of_children


def ratio(node: Node, scoring: Scoring = LITERAL) -> float:
    """r(s) = p(a*|s) / p(a*|s_p), >= 0; exactly 1 where both are 0. Raises ValueError at the root, which has no parent."""
    if node.parent is None:
        raise ValueError("the root has no parent, so no reward-density ratio")
    return _ratio(density(node, scoring), density(node.parent, scoring))


def information_gain(node: Node, beta: float, scoring: Scoring = LITERAL) -> float:
    """eta1(s) = r(s)^power - (1 + 1/beta), of a node below the root."""
    return _gain(ratio(node, scoring), beta, scoring)


def ib_score(node: Node, beta: float, scoring: Scoring = LITERAL) -> float:
    """J(n), the worth of branching at n (formula 3). Raises ValueError at a node without draws."""
    return 1 + beta * sum(weight * gain * confidence for weight, gain, confidence in _draws(node, beta, scoring))


def covariance(node: Node, beta: float, scoring: Scoring = LITERAL) -> float:
    """Cov(eta1, eta2) over the draws at n, with 1/B_n. Raises ValueError at a node without draws."""
    mean_gain, mean_confidence = mean_etas(node, beta, scoring)
    return sum(weight * (gain - mean_gain) * (confidence - mean_confidence) for weight, gain, confidence in _draws(node, beta, scoring))


def mean_etas(node: Node, beta: float, scoring: Scoring = LITERAL) -> tuple[float, float]:
    """(mean eta1, mean eta2) over the draws at n. Raises ValueError at a node without draws."""
    draws = _draws(node, beta, scoring)
    return sum(weight * gain for weight, gain, _ in draws), sum(weight * confidence for weight, _, confidence in draws)


def _draws(node: Node, beta: float, scoring: Scoring) -> list[tuple[float, float, float]]:
    """(share of the draws, eta1, eta2) of each child."""
    children = node.children.values()
    total = sum([child.draws for child in children])
    if not total:
        raise ValueError(f"node {node.index} has no draws, so no IB-Score; only a non-leaf of a grown tree has one")
    above = density(node, scoring)
    return [(child.draws / total, _gain(_ratio(density(child, scoring), above), beta, scoring), child.pi) for child in children]


def _ratio(below: float, above: float) -> float:
    return (below + RATIO_EPSILON) / (above + RATIO_EPSILON)


def _gain(ratio: float, beta: float, scoring: Scoring) -> float:
    return ratio**scoring.ratio_power - (1 + 1 / beta)
