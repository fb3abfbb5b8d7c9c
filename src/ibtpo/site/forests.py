"""Artifacts of whole trees (`forest-<policy>-<sampler>`, one row per node) as other tidy tables: of trajectories, and of picks."""

from __future__ import annotations

from itertools import chain
from statistics import fmean

import pandas as pd

KEYS = ["method", "seed", "sampler", "uid"]  # of a tree
TRAJECTORIES = [*KEYS, "number", "round", "branch", "leaf", "reward", "status", "finished", "grpo_advantage", "nodes", "ids", "entropy"]
PICKS = [*KEYS, "round", "node", "depth", "asked", "rank", "candidates", "count", "density", "ratio", "ib_score"]


def trajectories(forest: pd.DataFrame) -> pd.DataFrame:
    """One row per trajectory, in order: TRAJECTORIES. nodes: its path, the root first. ids: its tokens. entropy: mean of theirs (nats),
    NaN without tokens; a token that trajectories share has the entropy that was measured in the first of them.
    """
    found = []
    for key, tree in forest.groupby(KEYS, sort=False):
        nodes = tree.set_index("node")
        for leaf, ends in nodes["trajectories"].items():
            path = path_of(nodes["parent"], leaf)
            steps = nodes.loc[path]
            known = {
                "leaf": leaf,
                "nodes": path,
                "ids": [int(token) for token in chain.from_iterable(steps["ids"])],
                "entropy": mean(list(chain.from_iterable(steps["entropies"]))),
            }
            found += [dict(zip(KEYS, key, strict=True)) | known | end for end in ends]
    return pd.DataFrame(found, columns=TRAJECTORIES).sort_values([*KEYS, "number"], ignore_index=True).astype({"reward": float})


def picks(forest: pd.DataFrame) -> pd.DataFrame:
    """One row per node that a sampler picked in a round after the first: PICKS, as the node was when it was picked. rank and candidates:
    its place by IB-Score among the nodes that could be picked, and how many they were.
    """
    found = []
    for key, tree in forest.groupby(KEYS, sort=False):
        states = [{"node": row.node, "depth": row.depth, **state} for row in tree.itertuples() for state in row.history]
        ranked = pd.Series([state["round"] for state in states if state["rank"]], dtype=int).value_counts()
        known = dict(zip(KEYS, key, strict=True))
        found += [known | state | {"candidates": int(ranked.get(state["round"], 0))} for state in states if state["asked"]]
    return pd.DataFrame(found, columns=PICKS).sort_values([*KEYS, "round", "rank", "node"], ignore_index=True).astype({"rank": "Int64"})


def path_of(parents: pd.Series, node: int) -> list[int]:
    """The nodes from the root to `node`, both included; parents: of each node, by its number, -1 at the root."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(int(parents[path[-1]]))
    return path[::-1]


def mean(values: list[float]) -> float:
    return fmean(values) if values else float("nan")
