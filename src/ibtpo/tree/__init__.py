"""Reasoning trees: plain data and pure functions."""

from ibtpo.tree.noise import NoisySegmenter
from ibtpo.tree.scores import LITERAL, Scoring, covariance, density, ib_score, information_gain, mean_etas, ratio
from ibtpo.tree.segment import BlockSegmenter, Segmenter
from ibtpo.tree.tree import Node, ReasoningTree, Trajectory

__all__ = [
    "LITERAL",
    "BlockSegmenter",
    "Node",
    "NoisySegmenter",
    "ReasoningTree",
    "Scoring",
    "Segmenter",
    "Trajectory",
    "covariance",
    "density",
    "ib_score",
    "information_gain",
    "mean_etas",
    "ratio",
]
