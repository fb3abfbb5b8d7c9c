"""Reasoning trees: plain data and pure functions."""

from ibtpo.tree.scores import covariance, density, ib_score, information_gain, mean_etas, ratio
from ibtpo.tree.segment import Segmenter
from ibtpo.tree.tree import Node, ReasoningTree, Trajectory

__all__ = [
    "Node",
    "ReasoningTree",
    "Segmenter",
    "Trajectory",
    "covariance",
    "density",
    "ib_score",
    "information_gain",
    "mean_etas",
    "ratio",
]
