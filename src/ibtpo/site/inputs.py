"""What pages are made of: the configuration, its artifacts, and the tables and figures built from them, each made once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ibtpo.config import Paths
from ibtpo.config.models import Config
from ibtpo.io import read_parquet
from ibtpo.report.figures import FIGURES
from ibtpo.report.table import Table
from ibtpo.report.tables import TABLES


class Inputs:
    """Artifacts of one configuration, published or computed, as tables and figures read them."""

    def __init__(self, config: Config, out: Path):
        """`out`: folder of the site, for links that lead out of it."""
        self.config, self.out, self.paths = config, out, Paths(config)
        self._frames: dict[str, pd.DataFrame] = {}

    def frame(self, artifact: str) -> pd.DataFrame:
        """Raises FileNotFoundError or IbtpoError naming the file."""
        if artifact not in self._frames:
            self._frames[artifact] = read_parquet(self.paths.artifact(artifact))
        return self._frames[artifact]

    def frames(self, shown: str) -> list[pd.DataFrame]:
        """All artifacts of a table or a figure."""
        return [self.frame(artifact) for artifact in self.paths.shown(shown)]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables that are to be made, in the order of their registry."""
        return {name: build(self.config, self.frames(name)) for name, build in TABLES.items() if name in self.paths.tables}

    @cached_property
    def figures(self) -> dict[str, tuple[Figure, str]]:
        """Drawing and caption of each figure."""
        return {name: build(self.config, self.frames(name)) for name, build in FIGURES.items() if name in self.paths.figures}

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Metrics of all runs that a figure shows: method, seed, step, metric, value; missing values left out."""
        shown = dict.fromkeys(name for figure in self.paths.figures for name in self.paths.shown(figure) if name.startswith("metrics-"))
        frames = [self.frame(name) for name in shown]
        columns = ["method", "seed", "step", "metric", "value"]
        return pd.concat([frame[columns] for frame in frames], ignore_index=True).dropna() if frames else pd.DataFrame(columns=columns)
