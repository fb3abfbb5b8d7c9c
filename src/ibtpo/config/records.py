"""Records: how an artifact, and everything that it comes from, was made.

A job that runs a model or makes data writes a record: run.json in its folder, or <artifact>.run.json beside its artifact. Publishing
copies those behind the published artifacts into one file beside them, for a clone has no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ibtpo import IbtpoError
from ibtpo.config.paths import Paths
from ibtpo.io import checksums

PUBLISHED = "provenance.json"
FILES = ("*.parquet", "benchmarks/*.parquet", "*.safetensors")  # of a folder of data, or of the base policy


def record(place: Path) -> dict[str, Any] | None:
    """What is known of a place that `Paths.behind` names: its run.json, done.json, and checksums of its data; None if there is nothing."""
    if not place.is_dir():
        job = place.with_name(f"{place.name}.run.json")
        return _read(job) if job.is_file() else None
    found = _read(place / "run.json") if (place / "run.json").is_file() else {}
    if (place / "done.json").is_file():
        found["done"] = _read(place / "done.json")
    if files := checksums(place, *FILES):
        found["files"] = files
    return found or None


def records(paths: Paths, artifacts: Iterable[str]) -> dict[str, Any]:
    """Records of all places behind the artifacts of these names, by their path below the preset's results.

    What was published stands where there is no newer record. Places without any record are left out.
    """
    places = sorted({place for artifact in artifacts for place in paths.behind(artifact)})
    known = {place.relative_to(paths.root).as_posix(): place for place in places}
    before = published(paths.root)
    found = {name: record(place) or before.get(name) for name, place in known.items()}
    return {name: content for name, content in found.items() if content}


def published(root: Path) -> dict[str, Any]:
    """The published records of a preset's results; none if there is no such file. Raises IbtpoError if it is not JSON."""
    path = root / "published" / PUBLISHED
    return _read(path) if path.is_file() else {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise IbtpoError(f"{path} is not JSON ({error}); delete it and make it again") from None
