"""Offline IB-Score of a policy: how good is branching at its step nodes?

Paper: IB-TPO, IB-Score J(n) and Cov(eta1, eta2) of Figures 2, 3 and 5; protocol of D.2 row 29 [OURS where marked there]:
seed trajectories per problem; at each non-terminal step node fresh rollouts; children = their first steps, p^(child) = the rollout's
reward, p^(n) = their mean. So a node is scored as the root of a tree of its own, and every policy is measured by the same estimator,
whatever sampler it was trained with. mean r = 1 there, hence J = (1 - mean pi) + beta Cov(r, pi).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibtpo.evaluation.sample import independent
from ibtpo.rollout.problems import Problem, Prompter
from ibtpo.rollout.scheduler import run
from ibtpo.tree import covariance, density, ib_score


@dataclass(frozen=True)
class Probe:
    """Means over step nodes; `root_*` over the problems themselves. `dead` = share of step nodes whose rollouts all failed."""

    ib_score: float
    covariance: float
    root_ib_score: float
    root_covariance: float
    dead: float
    nodes: int


def probe(
    problems: list[Problem],
    prompter: Prompter,
    engine,
    mode: str,
    seed: int,
    beta: float,
    seeds: int = 4,
    draws: int = 5,
    min_room: int = 1,
) -> Probe:
    """Grows `seeds` trajectories a problem and `draws` rollouts at each of their distinct non-terminal step nodes."""
    first = [prompter.task(problem, independent(seeds), seed) for problem in problems]
    run(first, engine, mode, seed)
    second = [
        (
            node is task.tree.root,
            prompter.task(problem, independent(draws), seed, f"{problem.uid}/{node.index}", task.tree.prefix_ids(node)),
        )
        for problem, task in zip(problems, first, strict=True)
        for node in task.tree.candidates(min_room)
    ]
    run([task for _, task in second], engine, mode, seed)
    steps = [task.tree.root for at_root, task in second if not at_root]
    roots = [task.tree.root for at_root, task in second if at_root]
    return Probe(
        *(
            float(np.mean([score(node, beta) for node in group])) if group else np.nan
            for group in (steps, roots)
            for score in (ib_score, covariance)
        ),
        dead=float(np.mean([density(node) == 0 for node in steps])) if steps else np.nan,
        nodes=len(steps),
    )
