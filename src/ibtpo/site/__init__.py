"""The report: artifacts in, one static site out, which opens from disk without a server or a network.

A page is a function from `Inputs` to the context of a template of the same name, entered in `build.PAGES`.
"""

from __future__ import annotations

from pathlib import Path

from ibtpo.config.models import Config


def main(config: Config, out: str | Path) -> None:
    """Writes the site to the folder `out`, index.html last.

    Raises FileNotFoundError naming an artifact, a table or a figure that is not there, IbtpoError as tables and figures do.
    """
    from ibtpo.site.build import build  # only here, so that the registry of commands stays quick

    build(config, Path(out))
