"""The page of trees: every tree of the forest artifacts, round by round, for the viewer in static/trees.js."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ibtpo.config.paths import BASE
from ibtpo.site.forests import mean
from ibtpo.site.inputs import Inputs

DIGITS = 4  # after the point: more than a picture shows, and less than half the page's size
STATE = ("round", "count", "density", "ratio", "ib_score", "rank", "asked")  # of a node before a round, in this order in the page's data
WHY = {
    "independent": "Every trajectory starts at the problem; no node is ever picked.",
    "random": "Picked at random, each node that may be expanded with the same chance. The scores below played no part.",
    "fixed-width": "Every path forks at the end of each step, level by level. The scores below played no part.",
    "eptree": "Forked before the most surprising token (largest -log p) not forked at yet. The scores below played no part.",
    "treepo": "Every active path forks at the end of a segment while the width allows it. The scores below played no part.",
    "ibtree": "The highest IB-Score is picked; ties go to the shallower node, then to the older one.",
}


def trees(inputs: Inputs) -> dict[str, Any]:
    """Context of the page: `data`, and `pairs`, the number of (policy, sampler) pairs."""
    names = list(inputs.paths.forests)
    return {"pairs": len(names), "data": viewer(inputs, {name: inputs.frame(name) for name in names})}


def viewer(inputs: Inputs, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """What the viewer reads: `problems` by uid, `forests` with the trees in `frames`, and `state`, what a state's places mean."""
    problems = {
        row.uid: {"prompt": row.prompt, "answer": row.answer, "family": row.family}
        for frame in frames.values()
        for row in frame.drop_duplicates("uid").itertuples()
    }
    forests = []
    for name, frame in frames.items():
        policy, sampler = inputs.paths.forests[name]
        spec = inputs.config.samplers[sampler]
        forests.append(
            {
                "name": name,
                "policy": policy,
                "title": policy_title(inputs, policy),
                "sampler": sampler,
                "strategy": spec.name,
                "beta": spec.beta,
                "why": WHY.get(spec.name, "The scores below are those of IBTree; this sampler may pick by others."),
                "trees": {uid: tree_of(rows) for uid, rows in frame.groupby("uid", sort=False)},
            }
        )
    return {"problems": problems, "state": list(STATE), "forests": forests}


def policy_title(inputs: Inputs, policy: str) -> str:
    method, _ = inputs.paths.policies[policy]
    return "base policy" if policy == BASE else inputs.config.methods[method].title


def tree_of(rows: pd.DataFrame) -> dict[str, Any]:
    """A tree for the viewer: nodes in creation order, trajectories in order, `rounds`, the number of rounds."""
    ends = sorted(({"leaf": row.node, **end} for row in rows.itertuples() for end in row.trajectories), key=lambda end: end["number"])
    for end in ends:
        end["grpo_advantage"] = _short(end["grpo_advantage"])
    return {
        "rounds": 1 + max((end["round"] for end in ends), default=0),
        "nodes": [_node(row) for row in rows.itertuples()],
        "trajectories": ends,
    }


def _node(row: Any) -> dict[str, Any]:
    return {
        "parent": row.parent,
        "round": row.round,
        "text": row.text,
        "terminal": row.terminal,
        "cut": row.cut,
        "depth": row.depth,
        "tokens": len(row.ids),
        "pi": _short(row.pi),
        "draws": row.draws,
        "surprise": _short(-row.logprobs[0] if len(row.logprobs) else None),
        "entropy": _short(mean(list(row.entropies))),
        "count": row.count,
        "density": _short(row.density),
        "ratio": _short(row.ratio),
        "ib_score": _short(row.ib_score),
        "global": _short(row.global_advantage),
        "local": _short(row.local_advantage),
        "history": [[_short(state[key]) for key in STATE] for state in row.history],
    }


def _short(value: Any) -> Any:
    """A number for the page; None for one that is missing."""
    return None if value is None or value != value else round(value, DIGITS)
