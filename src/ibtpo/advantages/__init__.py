"""Advantage estimators, by name: `fn(tree, spec) -> list[np.ndarray]`, one value a token, one array a trajectory."""

from ibtpo.advantages.grpo import grpo
from ibtpo.advantages.ibtpo import ibtpo

ADVANTAGES = {"grpo": grpo, "ibtpo": ibtpo}

__all__ = ["ADVANTAGES"]
