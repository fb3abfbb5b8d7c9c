"""Offline IB-Score of the methods: how good is branching at the nodes of a policy?

Paper: IB-TPO, IB-Score and Cov(eta1, eta2) of Figures 2, 3 and 5, here of the final policies, by the protocol of D.2 row 29 [OURS]: step
nodes, with the roots apart ("both reported"), and the share of dead nodes, whose rollouts all fail. Intervals over problems and seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import Estimate, Intervals
from ibtpo.report.offline import MEASURES, Offline, read_offline
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.wording import interval, judged, sampling

REFERENCE = "grpo"
NODES = Column("nodes / problem", decimals=1)


def ibscore(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `offline` artifacts. Raises IbtpoError naming method and seed where something is missing."""
    offline = read_offline("ibscore", config, config.tables["ibscore"], frames)
    shown = f"Measured, preset {config.title}"
    grids = [_grid(f"{shown}: step nodes", config, offline, nodes=True), _grid(f"{shown}: roots", config, offline, nodes=False)]
    if REFERENCE in offline.titles:
        grids.insert(1, _difference(f"{shown}: step nodes, difference to {offline.titles[REFERENCE]}", config, offline))
    return Table("ibscore", _caption(config, offline), tuple(grids), offline.titles)


def _grid(label: str, config: Config, offline: Offline, nodes: bool) -> Grid:
    cells, values, intervals = {}, offline.steps if nodes else offline.roots, Intervals(config.evaluate.confidence)
    for method, row in offline.titles.items():
        for measure, column in MEASURES.items():
            cells[row, column.name] = _cell(config, values[method][measure], column.mean(values[method][measure], intervals))
        if nodes:
            cells[row, NODES.name] = _cell(config, offline.nodes[method], NODES.mean(offline.nodes[method], intervals))
    columns = (*MEASURES.values(), *([NODES] if nodes else []))
    return Grid(label, "method", tuple(offline.titles.values()), columns, cells)


def _difference(label: str, config: Config, offline: Offline) -> Grid:
    cells, intervals, reference = {}, Intervals(config.evaluate.confidence), offline.steps[REFERENCE]
    others = {method: row for method, row in offline.titles.items() if method != REFERENCE}
    for method, row in others.items():
        for measure, column in MEASURES.items():
            estimate = intervals.difference([offline.steps[method][measure]], [reference[measure]])
            cells[row, column.name] = _cell(config, reference[measure], estimate, estimate.verdict)
    return Grid(label, "method", tuple(others.values()), tuple(column.difference() for column in MEASURES.values()), cells)


def _cell(config: Config, values: np.ndarray, estimate: Estimate, note: str = "") -> Cell:
    return Cell(estimate, values.shape[1], config.offline.draws, len(values), note=note)


def _caption(config: Config, offline: Offline) -> str:
    plan, problems, seeds = config.offline, offline.problems, len(config.seeds)
    return (
        f"Offline IB-Score, the same estimator for every policy (beta = {plan.beta:g}). Of each of {problems} {plan.source} problems, "
        f"{plan.seeds} trajectories; at each of their distinct non-terminal step nodes {plan.draws} fresh rollouts, whose first steps are "
        "the node's children. Means over all step nodes; the roots, the problems themselves, apart. Cov: with 1/B; pi: geometric mean "
        f"probability of a step's tokens; dead: nodes whose rollouts all fail. Preset {config.described}, {seeds} seed(s); the base policy "
        f"has one. {sampling(config)} {interval(config, seeds)} Problems are clusters of nodes; means over nodes are ratios, linearised. "
        f"{judged('problem and seed')}"
    )
