"""Sampling strategies, by name.

A sampler is a generator function `fn(tree, spec, rng)`, spec = config.Sampler, rng = numpy Generator. It yields the branches of a round
and is resumed when all their continuations hang in the tree.
"""

from ibtpo.samplers.branch import Branch
from ibtpo.samplers.ibtree import ibtree
from ibtpo.samplers.independent import independent
from ibtpo.samplers.random_tree import random_tree

SAMPLERS = {"independent": independent, "random": random_tree, "ibtree": ibtree}

__all__ = ["SAMPLERS", "Branch"]
