"""Publishing: the artifacts behind all tables and figures, as files small enough to be committed."""

from __future__ import annotations

from pathlib import Path

from ibtpo.config.paths import SHOWN, Paths
from ibtpo.io import write_bytes


def publish(paths: Paths) -> list[Path]:
    """Makes the published folder hold exactly the current artifacts, and returns them. Older ones are removed.

    Raises FileNotFoundError if an artifact is neither computed nor published.
    """
    names = dict.fromkeys(name for shown in SHOWN for name in paths.shown(shown))
    found = {paths.published(name): paths.artifact(name) for name in names}
    for target, source in found.items():
        if source != target:
            write_bytes(source.read_bytes(), target)
    for file in (paths.root / "published").glob("*.parquet"):
        if file not in found:
            file.unlink()
    return list(found)
