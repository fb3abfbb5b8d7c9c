"""What a sampler asks for."""

from __future__ import annotations

from dataclasses import dataclass

from ibtpo.tree import Node


@dataclass(frozen=True, slots=True)
class Branch:
    """`n` continuations of `node`, each with at most tree.room(node) tokens."""

    node: Node
    n: int
