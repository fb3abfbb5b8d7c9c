"""Independent sampling: G rollouts from the root (Table 3, "independent"; the sampler of GRPO)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibtpo.samplers.branch import Branch
from ibtpo.tree import ReasoningTree


def independent(tree: ReasoningTree, spec, rng: np.random.Generator) -> Iterator[list[Branch]]:
    """One round of spec.group_size rollouts; `rng` is not used."""
    yield [Branch(tree.root, spec.group_size)]
