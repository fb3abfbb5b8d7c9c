"""Publishing: the artifacts behind all tables, figures and pictures of trees, as files small enough to be committed."""

from __future__ import annotations

from pathlib import Path

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.config.paths import EXTRA, Paths
from ibtpo.config.records import PUBLISHED, records
from ibtpo.io import write_bytes, write_json


def as_it_is(config: Config) -> None:
    """Raises IbtpoError if overrides changed the preset: what is committed is of the preset itself."""
    if config.changes:
        raise IbtpoError(f"only the preset itself is committed, and this is {config.described}: write it into config/{config.preset}.yaml")


def publish(paths: Paths) -> list[Path]:
    """Makes the published folder hold exactly the current artifacts and their records, and returns them. Older ones are removed.

    What tables outside of `all` show is published where it is there. Raises FileNotFoundError if another artifact is neither computed
    nor published, IbtpoError if the preset was overridden.
    """
    as_it_is(paths.config)
    extra = [name for table in EXTRA for name in paths.shown(table) if paths.artifact(name).is_file()]
    names = dict.fromkeys([*(name for shown in [*paths.tables, *paths.figures] for name in paths.shown(shown)), *paths.forests, *extra])
    found = {paths.published(name): paths.computed(name) for name in names}
    for target, source in found.items():
        if source.is_file() or not target.is_file():  # what was computed here is what the records here are of
            write_bytes(source.read_bytes(), target)
    write_json(records(paths, names), paths.root / "published" / PUBLISHED)
    for file in (paths.root / "published").glob("*.parquet"):
        if file not in found:
            file.unlink()
    return list(found)
