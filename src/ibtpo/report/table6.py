"""Table 6: the shape (B0, K, B) of IB-TPO's tree; L follows from G = B0 + (L - 1) K B. Paper: IB-TPO, Table 6 (values not known)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.strategies import read_strategies
from ibtpo.report.table import Cell, Column, Table

SETTINGS = {"initial": Column("B0"), "nodes": Column("K"), "branches": Column("B"), "iterations": Column("L")}
METHOD = "ibtpo"  # its sampler is the reference


def table6(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `trees` artifacts; errors as Table 3."""
    names = config.comparison.table6
    strategies = read_strategies("table6", config, {name: name for name in names}, frames, search=True)
    settings = {
        (name, column.name): Cell(number=value)
        for name in names
        for key, column in SETTINGS.items()
        if (value := getattr(config.samplers[name], key)) is not None
    }
    reference = config.methods[METHOD].sampler if METHOD in config.methods else ""
    against = reference if reference in names else ""
    measured = strategies.measured(f"Measured, preset {config.title}", {}, against)
    grids = [replace(measured, columns=(*SETTINGS.values(), *measured.columns), cells=settings | measured.cells)]
    grids += [strategies.difference(against)] if against and len(names) > 1 else []
    grids.append(strategies.search(f"Measured, preset {config.title}: the search"))
    caption = (
        f"Shape of the tree on the base policy: B0 rollouts, then L - 1 rounds of K nodes, B continuations each. {strategies.notes()} Mean "
        f"IB-Score (beta = {config.offline.beta:g}): over the inner nodes of a grown tree, root included; root picked, picked before: "
        "shares of the expansions that took the root, or a node taken before."
    )
    return Table("table6", caption, tuple(grids), strategies.titles)
