"""Table 3: branching strategies: independent, random, fixed width, entropy (EPTree), IB-Score with several beta. Paper: IB-TPO, Table 3."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.methods import SHAPE, Sampler
from ibtpo.config.models import Config
from ibtpo.report.reported import MODEL, reported
from ibtpo.report.strategies import read_strategies
from ibtpo.report.table import Table
from ibtpo.report.wording import distinct

TITLES = {"random": "random tree", "fixed-width": "fixed width", "eptree": "entropy (EPTree)", "treepo": "TreePO", "ibtree": "IBTree"}
PAPER_SHAPE = (4, 9, 1, 1)


def table3(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `trees` artifacts. Raises IbtpoError naming the strategy where groups are missing or not whole."""
    samplers = {name: config.samplers[name] for name in config.comparison.table3}
    strategies = read_strategies("table3", config, distinct({name: _title(s) for name, s in samplers.items()}), frames)
    paper = {name: _reported(sampler) for name, sampler in samplers.items()}
    independent = sorted((n for n, s in samplers.items() if s.name == "independent"), key=lambda n: samplers[n].group_size, reverse=True)
    label = f"Measured, preset {config.title}; reported: {MODEL}"
    grids = [strategies.measured(label, paper, independent[0] if independent else "")]
    grids += [strategies.difference(reference) for reference in independent if len(samplers) > 1]
    caption = (
        f"Branching strategies on the base policy. {strategies.notes()} Reported: the paper's numbers for {MODEL} on 1,024 problems, not "
        "measured here."
    )
    return Table("table3", caption, tuple(grids), strategies.titles)


def _title(sampler: Sampler) -> str:
    beta = f", beta = {sampler.beta:g}" if sampler.name == "ibtree" else ""
    return f"{TITLES.get(sampler.name, sampler.name)}, G = {sampler.group_size}{beta}"


def _reported(sampler: Sampler) -> dict[str, float]:
    """The paper's numbers, for a sampler in the paper's setting only."""
    other = sampler.model_dump(exclude_defaults=True, exclude={"name", "group_size", "min_room", *SHAPE})
    shape = tuple(getattr(sampler, key) for key in SHAPE)
    known = not other and shape in (PAPER_SHAPE, (None,) * 4)
    return reported("table3")[MODEL].get(f"{sampler.name}-{sampler.group_size}", {}) if known else {}
