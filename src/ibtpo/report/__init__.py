"""Tidy artifacts in, tables and figures out. Needs pandas (tables) and seaborn (figures), never a model or what runs one.

A table or figure is one builder in a file of its own, entered in `tables.TABLES` or `figures.FIGURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ibtpo.config.models import Config


def main_table(name: str, config: Config, inputs: Sequence[str | Path], out_stem: str | Path) -> None:
    """Writes <out_stem>.md, .csv, .tex, .caption.txt and .sources.json from artifacts. Raises ValueError if a row or column has no data."""
    from ibtpo.report.tables import write  # a table must not wait for the plotting libraries

    write(name, config, inputs, Path(out_stem))


def main_figure(name: str, config: Config, inputs: Sequence[str | Path], out_stem: str | Path) -> None:
    """Writes <out_stem>.svg, .pdf, .png and .caption.txt from Parquet artifacts. Raises ValueError if a line has no data."""
    from ibtpo.report.figures import write

    write(name, config, inputs, Path(out_stem))


def readme(config: Config) -> None:
    """Renews the generated block of README.md, and the figure that it shows, from the table and figure of the preset."""
    from ibtpo.report.readme_block import update

    update(config)
