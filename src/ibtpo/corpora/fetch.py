"""Fetching: the only stage with a network. Files of one data set from its publisher, at a pinned revision, into data_root.

What came is recorded beside the files (origin.json: commit, checksums); the builders compare, so a damaged copy is told later.
"""

from __future__ import annotations

from pathlib import Path

from ibtpo import io
from ibtpo.corpora.read import ORIGIN, DataError, check_sums, sha256
from ibtpo.corpora.settings import load_settings


def fetch(settings_file: str | Path, name: str) -> Path:
    """Fetches a data set unless its files are there already; returns the path of its origin.json.

    Raises DataError if the hub cannot be reached, the terms of the data set are not accepted, or a file is not what the settings pin.
    """
    settings = load_settings(settings_file)
    if name not in settings.sources:
        raise DataError(f"there is no data set {name!r} in {settings_file}; known: {', '.join(settings.sources)}")
    source, folder = settings.sources[name], settings.folder(name)
    try:
        from huggingface_hub import HfApi, hf_hub_download

        revision = HfApi().dataset_info(source.hub, revision=source.revision).sha
        for file in source.files:
            hf_hub_download(source.hub, file, repo_type="dataset", revision=revision, local_dir=folder)
    except Exception as error:  # the hub's client raises its own errors, those of HTTP and those of sockets
        raise DataError(
            f"cannot fetch {source.hub} ({type(error).__name__}: {str(error).splitlines()[0]}): {_remedy(error, folder)}"
        ) from error
    paths = [folder / file for file in source.files]
    (folder / ORIGIN).unlink(missing_ok=True)
    check_sums(paths, folder, source.sha256)
    sums = {file: sha256(folder / file) for file in source.files}
    io.write_json({"hub": source.hub, "revision": revision, "asked": source.revision, "sha256": sums}, folder / ORIGIN)
    return folder / ORIGIN


def _remedy(error: Exception, folder: Path) -> str:
    if "Gated" in type(error).__name__:
        return "accept the terms on the data set's page, log in with `hf auth login`, and run again"
    if type(error).__name__ in ("RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError", "RemoteEntryNotFoundError"):
        return "correct hub, revision or files in the settings"
    return f"run again with a network (and without HF_HUB_OFFLINE), or put the files into {folder} yourself"
