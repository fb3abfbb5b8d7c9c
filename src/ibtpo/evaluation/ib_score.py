"""Offline IB-Score of a policy: how good is branching at its step nodes?

Paper: IB-TPO, IB-Score J(n) and Cov(eta1, eta2) of Figures 2, 3 and 5; protocol of D.2 rows 29 and 30 [OURS where marked there]:
seed trajectories per problem; at each non-terminal step node fresh rollouts; children = their first steps, p^(child) = the rollout's
reward, p^(n) = their mean. So a node is scored as the root of a tree of its own, and every policy is measured by the same estimator
(independent sampling, literal scoring), whatever sampler it was trained with. mean r = 1 there, hence J = (1 - mean pi) + beta Cov(r, pi).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibtpo.evaluation.sample import independent
from ibtpo.rollout.problems import Problem, Prompter
from ibtpo.rollout.scheduler import run
from ibtpo.tree import Node, covariance, density, ib_score, mean_etas


@dataclass(frozen=True)
class Probe:
    """Means over step nodes; `root_*` over the problems themselves. `dead` = share of step nodes whose rollouts all failed."""

    ib_score: float
    covariance: float
    root_ib_score: float
    root_covariance: float
    dead: float
    nodes: int

    @classmethod
    def of(cls, measured: list[list[dict]]) -> Probe:
        """The means of what `measure` found, over all problems; NaN where there is no node."""
        rows = [row for part in measured for row in part]
        steps, roots = ([row for row in rows if row["at_root"] == at_root] for at_root in (False, True))
        return cls(
            ib_score=_mean(steps, "ib_score"),
            covariance=_mean(steps, "covariance"),
            root_ib_score=_mean(roots, "ib_score"),
            root_covariance=_mean(roots, "covariance"),
            dead=_mean(steps, "dead"),
            nodes=len(steps),
        )


def measure(
    problems: list[Problem],
    prompter: Prompter,
    engine,
    mode: str,
    seed: int,
    beta: float,
    seeds: int = 4,
    draws: int = 5,
    min_room: int = 1,
    bar=None,
) -> list[list[dict]]:
    """Grows `seeds` trajectories a problem and `draws` rollouts at each of their distinct non-terminal step nodes, and at the problem.

    Returns the rows of each problem, one per node: uid, node (its index among those of the problem), depth (steps before it), at_root,
    and the scores of `scored`. min_room: tokens that must be left below a step node. bar: a tqdm-like bar, whose total grows by the
    rollouts as they become known.
    """
    first = [prompter.task(problem, independent(seeds), seed) for problem in problems]
    run(first, engine, mode, seed, progress=bar)
    nodes = [[(node, task.tree) for node in task.tree.candidates(min_room)] for task in first]
    second = [
        [prompter.task(problem, independent(draws), seed, f"{problem.uid}/{node.index}", tree.prefix_ids(node)) for node, tree in part]
        for problem, part in zip(problems, nodes, strict=True)
    ]
    tasks = [task for part in second for task in part]
    if bar is not None:
        bar.total += draws * len(tasks)
    run(tasks, engine, mode, seed, progress=bar)
    return [
        [
            {
                "uid": problem.uid,
                "node": node.index,
                "depth": node.depth,
                "at_root": node is tree.root,
                **scored(task.tree.root, beta),
            }
            for (node, tree), task in zip(part, grown, strict=True)
        ]
        for problem, part, grown in zip(problems, nodes, second, strict=True)
    ]


def scored(node: Node, beta: float) -> dict:
    """draws (B), ib_score, covariance (with 1/B), mean_pi, density (p of the node) and dead (all rollouts failed) of a node."""
    return {
        "draws": sum(child.draws for child in node.children.values()),
        "ib_score": ib_score(node, beta),
        "covariance": covariance(node, beta),
        "mean_pi": mean_etas(node, beta)[1],
        "density": density(node),
        "dead": density(node) == 0,
    }


def _mean(rows: list[dict], column: str) -> float:
    return float(np.mean([row[column] for row in rows])) if rows else np.nan
