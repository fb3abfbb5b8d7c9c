"""Files of the site: what it copies from the results, and links that lead out of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ibtpo.site.inputs import Inputs

ASSETS = "assets"


def downloads(inputs: Inputs, name: str) -> list[dict[str, Any]]:
    """Links, relative to the site, to the formats of a table or a figure; `copied` puts the files there."""
    return [{"format": path.suffix[1:], "href": _place(path)} for path in _formats(inputs, name)]


def copied(inputs: Inputs, name: str) -> dict[str, bytes]:
    """Content of the formats of a table or a figure, by path in the site. Raises FileNotFoundError naming a file that was not made."""
    files = {}
    for path in _formats(inputs, name):
        if not path.is_file():
            raise FileNotFoundError(f"no such file: {path}; run `snakemake {name}`, which makes it")
        files[_place(path)] = path.read_bytes()
    return files


def outside(inputs: Inputs, path: Path) -> str:
    """Link from a page of the site to a file of the repository, whose path is relative to the working directory, as the site's is."""
    return Path(os.path.relpath(path, inputs.out)).as_posix()


def _formats(inputs: Inputs, name: str) -> list[Path]:
    """The files for readers; captions and sources are on the pages."""
    return [path for path in inputs.paths.outputs(name) if path.suffix not in (".txt", ".json")]


def _place(path: Path) -> str:
    return f"{ASSETS}/{path.parent.name}/{path.name}"
