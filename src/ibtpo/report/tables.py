"""The registry of tables, and how one is written: Markdown, CSV, LaTeX, and beside them its caption and sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.io import read_parquet, write_json, write_text
from ibtpo.report.erpo1 import erpo1
from ibtpo.report.erpo2 import erpo2
from ibtpo.report.ibscore import ibscore
from ibtpo.report.render import latex, markdown, tidy_csv
from ibtpo.report.rollouts import rollouts, rollouts_midsize
from ibtpo.report.sources import SUFFIX, sources
from ibtpo.report.studies import studies
from ibtpo.report.table1 import table1
from ibtpo.report.table2 import table2
from ibtpo.report.table3 import table3
from ibtpo.report.table4 import table4
from ibtpo.report.table5 import table5
from ibtpo.report.table6 import table6
from ibtpo.report.table7 import table7
from ibtpo.report.table8 import table8, table8_midsize
from ibtpo.report.table9 import table9

PAPER = (table1, table2, table3, table4, table5, table6, table7, table8, table9)
BUILDERS = (*PAPER, erpo1, erpo2, ibscore, studies, rollouts, table8_midsize, rollouts_midsize)
TABLES = {builder.__name__: builder for builder in BUILDERS}
FORMATS = {".md": markdown, ".csv": tidy_csv, ".tex": latex, ".caption.txt": lambda table: f"{table.caption}\n"}


def write(name: str, config: Config, inputs: Sequence[str | Path], stem: Path) -> None:
    """Builds table `name` and writes all its formats and its sources; nothing is written if the build fails."""
    if name not in TABLES:
        raise IbtpoError(f"there is no table {name!r}; known: {', '.join(TABLES)}")
    frames = [read_parquet(path) for path in inputs]
    table = TABLES[name](config, frames)
    made_of = sources(table, config, inputs, frames)
    for suffix, text in [(suffix, render(table)) for suffix, render in FORMATS.items()]:
        write_text(text, f"{stem}{suffix}")
    write_json(made_of, f"{stem}{SUFFIX}")
