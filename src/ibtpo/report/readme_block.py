"""The generated block of the README: Table 1, and a copy of Figure 5 where the README shows it."""

from __future__ import annotations

import re
from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.config import Paths
from ibtpo.config.models import Config
from ibtpo.config.publish import as_it_is
from ibtpo.io import write_bytes

TABLE, FIGURE = "table1", "figure5"
README, PICTURE = Path("README.md"), Path(f"docs/figures/{FIGURE}.svg")
BLOCK = re.compile(rf"(?<=<!-- {TABLE} -->\n).*?(?=<!-- /{TABLE} -->)", re.DOTALL)


def update(config: Config) -> None:
    """Writes the block and the picture.

    Raises IbtpoError if the README has no such block or the preset was overridden, OSError if table or figure are not there.
    """
    as_it_is(config)
    for path, content in _wanted(config).items():
        write_bytes(content, path)


def stale(config: Config) -> list[Path]:
    """The files, README and picture, that are not up to date; errors as `update`."""
    return [path for path, content in _wanted(config).items() if not path.is_file() or path.read_bytes() != content]


def _wanted(config: Config) -> dict[Path, bytes]:
    paths = Paths(config)
    text = README.read_text(encoding="utf-8")
    if len(BLOCK.findall(text)) != 1:
        raise IbtpoError(f"{README} needs one block between the lines <!-- {TABLE} --> and <!-- /{TABLE} -->")
    table = Path(f"{paths.stem(TABLE)}.md").read_text(encoding="utf-8")
    figure = Path(f"{paths.stem(FIGURE)}.svg").read_bytes()
    return {README: BLOCK.sub(lambda _: f"\n{table}\n", text).encode(), PICTURE: figure}
