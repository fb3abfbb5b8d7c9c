"""The sources of a table: which artifacts are behind each of its rows, and what those come from. `python -m ibtpo trace` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ibtpo.config import Config, Paths
from ibtpo.io import sha256
from ibtpo.report.table import Table

SUFFIX = ".sources.json"
KEYS = ("method", "strategy")  # columns of artifacts that name the row


def sources(table: Table, config: Config, inputs: Sequence[str | Path], frames: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """rows: file names of the artifacts by title of the row; shared: those that name no row, behind all rows without any of their own;
    artifacts: checksum of each, and the places behind it below the preset's results.

    An artifact that this configuration does not name (a file given by hand) has no places. Equal inputs give equal sources.
    """
    paths, rows, shared, artifacts = Paths(config), {title: [] for title in table.titles.values()}, [], {}
    behind = {paths.computed(name).name: paths.behind(name) for name in paths.shown(table.name)}
    for path, frame in zip(map(Path, inputs), frames, strict=True):
        named = [key for column in KEYS if column in frame for key in frame[column].unique() if key in table.titles]
        for files in [rows[table.titles[key]] for key in named] or [shared]:  # rows of costs are cases of one artifact
            files.append(path.name)
        places = [place.relative_to(paths.root).as_posix() for place in behind.get(path.name, [])]
        artifacts[path.name] = {"sha256": sha256(path), "made_by": places}
    return {"preset": config.preset, "rows": rows, "shared": shared, "artifacts": artifacts}
