"""What a run reports: one row per rollout batch in metrics.jsonl, one observation a row in the tidy artifact."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.io import read_jsonl, write_parquet, write_text
from ibtpo.tree import ReasoningTree, covariance, ib_score, ratio
from ibtpo.tree import statistics as stats

Gather = Callable[[np.ndarray], np.ndarray]

TOTALS = {"train/tokens": np.sum, "train/depth_max": np.max}  # of a rollout batch; all others are means


def rollout_metrics(trees: list[ReasoningTree], beta: float, gather: Gather = lambda values: values) -> dict[str, float]:
    """Statistics of one rollout batch (algorithms: D.2 rows 30 and 34; Figures 5 and 6 of the paper).

    gather: joins values (n,) with those of the batch's trees in other processes.
    """
    values = {name: gather(np.asarray(values, dtype=float)) for name, values in _values(trees, beta).items()}
    return {name: float(TOTALS[name](of_all, initial=0.0)) if name in TOTALS else _mean(of_all) for name, of_all in values.items()}


def _values(trees: list[ReasoningTree], beta: float) -> dict[str, list]:
    """What each metric is the mean (or total) of.

    IB-Score over nodes with children, Cov(eta1, eta2) over nodes with >= 2 draws, ratio over all nodes but the roots, all scored as their
    sampler scores them (tree.scoring).
    """
    nodes = [(node, tree.scoring) for tree in trees for node in tree.nodes]
    inner = [(node, scoring) for node, scoring in nodes if node.children]
    branched = [(node, scoring) for node, scoring in inner if sum(child.draws for child in node.children.values()) > 1]
    rewards = [t.reward for tree in trees for t in tree.trajectories]
    depths = [depth for tree in trees for depth in stats.leaf_depths(tree)]
    return {
        "train/reward": rewards,
        "train/eff_rate": [stats.effective(tree) for tree in trees],
        "train/tokens": [tree.generated_tokens for tree in trees],
        "train/response_length": [len(t.ids) for tree in trees for t in tree.trajectories],
        "train/truncated": [not t.finished for tree in trees for t in tree.trajectories],
        "train/unscorable": [math.isnan(reward) for reward in rewards],
        "train/depth_mean": depths,
        "train/depth_max": depths,
        "train/root_repicked": [stats.root_share(tree) for tree in trees],
        "train/node_repicked": [stats.repeat_share(tree) for tree in trees],
        "train/ib_score": [ib_score(node, beta, scoring) for node, scoring in inner],
        "train/covariance": [covariance(node, beta, scoring) for node, scoring in branched],
        "train/ratio": [ratio(node, scoring) for node, scoring in nodes if node.parent is not None],
    }


def _mean(values: np.ndarray) -> float:
    """Mean without NaN; NaN if nothing is left."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else math.nan


def json_ready(row: dict) -> dict:
    """NaN becomes None: JSON has no NaN."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def rewind(path: Path, iteration: int) -> None:
    """Drops the rows after `iteration`, so a resumed run does not count an iteration twice."""
    if path.exists():
        kept = [row for row in read_jsonl(path) if row["step"] <= iteration]
        write_text("".join(json.dumps(row) + "\n" for row in kept), path)


def tidy(run_dir: str | Path, method: str, seed: int, out: str | Path) -> None:
    """metrics.jsonl -> Parquet with columns method, seed, step, metric, value. Step = rollout batches done."""
    rows = read_jsonl(Path(run_dir) / "metrics.jsonl")
    frame = pd.DataFrame(
        [
            (method, seed, row["step"], metric, float(value))
            for row in rows
            for metric, value in row.items()
            if metric != "step" and value is not None
        ],
        columns=["method", "seed", "step", "metric", "value"],
    )
    if frame.empty:
        raise IbtpoError(f"{run_dir}/metrics.jsonl holds no metrics; train the run first")
    write_parquet(frame.sort_values(["step", "metric"], kind="stable"), out)
