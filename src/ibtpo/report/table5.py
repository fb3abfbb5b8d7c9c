"""Table 5: noise in where steps end. Paper: IB-TPO, Table 5 (its values are not known); the causal version of D.2 row 28 [OURS]."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ibtpo.config.models import Config
from ibtpo.report.accuracies import accuracies
from ibtpo.report.table import Table


def table5(config: Config, frames: Sequence[pd.DataFrame]) -> Table:
    """Builds the table from `scores` artifacts; errors as Table 1."""
    noises = {config.methods[name].title: config.samplers[config.methods[name].sampler].delimiter_noise for name in config.tables["table5"]}
    shares = ", ".join(f"{noise:.0%} ({title})" for title, noise in noises.items() if noise) or "none here"
    lead = (
        f"Noise in the step ends, share that is moved: {shares}. A step end is dropped, and another token ends a step, by a coin that "
        "depends on the prefix alone. The paper moves 10% and reports no significant change; its values are not known."
    )
    return accuracies("table5", config, frames, "ibtpo", lead)
