"""Sampling strategies, by name.

A sampler is a generator function `fn(tree, spec, rng)`, spec = config.Sampler, rng = numpy Generator, tree = make_tree(uid, spec, ...). It
yields the branches of a round and is resumed when all their continuations hang in the tree.
"""

from ibtpo.samplers.branch import Branch
from ibtpo.samplers.eptree import eptree
from ibtpo.samplers.fixed_width import fixed_width
from ibtpo.samplers.ibtree import ibtree
from ibtpo.samplers.independent import independent
from ibtpo.samplers.planting import make_tree
from ibtpo.samplers.random_tree import random_tree
from ibtpo.samplers.treepo import treepo

SAMPLERS = {
    "independent": independent,
    "random": random_tree,
    "fixed-width": fixed_width,
    "eptree": eptree,
    "treepo": treepo,
    "ibtree": ibtree,
}

__all__ = ["SAMPLERS", "Branch", "make_tree"]
