"""Fetching: the only stage with a network. Files of one data set from its publisher, at a pinned revision, into data_root.

What came is recorded beside the files (origin.json: commit, checksums); the builders compare, so a damaged copy is told later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ibtpo import io
from ibtpo.config.corpora import Corpora
from ibtpo.corpora.read import ORIGIN, DataError, check_sums


def fetch(settings: Corpora, name: str) -> Path:
    """Fetches a data set unless its files are there already; returns the path of its origin.json.

    Raises DataError if the hub cannot be reached, the terms of the data set are not accepted, or a file is not what the settings pin.
    """
    if name not in settings.sources:
        raise DataError(f"there is no data set {name!r}; known: {', '.join(settings.sources)}")
    source, folder = settings.sources[name], settings.folder(name)
    if source.hub is None:
        raise DataError(f"{name} is published nowhere (hub: null): put {', '.join(source.files)} into {folder} yourself")
    from huggingface_hub import HfApi, hf_hub_download

    with hub_errors(source.hub, folder):
        revision = HfApi().dataset_info(source.hub, revision=source.revision).sha
        for file in source.files:
            hf_hub_download(source.hub, file, repo_type="dataset", revision=revision, local_dir=folder)
    paths = [folder / file for file in source.files]
    (folder / ORIGIN).unlink(missing_ok=True)
    check_sums(paths, folder, source.sha256)
    sums = {file: io.sha256(folder / file) for file in source.files}
    io.write_json({"hub": source.hub, "revision": revision, "asked": source.revision, "sha256": sums}, folder / ORIGIN)
    return folder / ORIGIN


@contextmanager
def hub_errors(hub: str, folder: Path) -> Iterator[None]:
    """Turns what goes wrong on the hub into a DataError with a remedy."""
    try:
        yield
    except Exception as error:  # the hub's client raises its own errors, those of HTTP and those of sockets
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"cannot fetch {hub} ({type(error).__name__}: {reason}): {_remedy(error, folder)}") from error


def _remedy(error: Exception, folder: Path) -> str:
    if "Gated" in type(error).__name__:
        return "accept the terms on its page, log in with `hf auth login`, and run again"
    if type(error).__name__ in ("RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError", "RemoteEntryNotFoundError"):
        return "correct hub, revision or files in the settings"
    return f"run again with a network (and without HF_HUB_OFFLINE), or put the files into {folder} yourself"
