"""The registry of tables, and how one is written: Markdown, CSV, LaTeX and the caption beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.io import read_parquet, write_text
from ibtpo.report.render import latex, markdown, tidy_csv
from ibtpo.report.table1 import table1
from ibtpo.report.table3 import table3

TABLES = {"table1": table1, "table3": table3}
FORMATS = {".md": markdown, ".csv": tidy_csv, ".tex": latex, ".caption.txt": lambda table: f"{table.caption}\n"}


def write(name: str, config: Config, inputs: Sequence[str | Path], stem: Path) -> None:
    """Builds table `name` and writes all its formats; nothing is written if the build fails."""
    if name not in TABLES:
        raise IbtpoError(f"there is no table {name!r}; known: {', '.join(TABLES)}")
    table = TABLES[name](config, [read_parquet(path) for path in inputs])
    for suffix, text in [(suffix, render(table)) for suffix, render in FORMATS.items()]:
        write_text(text, f"{stem}{suffix}")
