"""The registry of figures, and how one is written: SVG, PDF and PNG with equal bytes for equal data, and the caption beside them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.io import read_parquet, write_bytes, write_text
from ibtpo.report.curves import style
from ibtpo.report.figure1 import figure1
from ibtpo.report.figure2 import figure2
from ibtpo.report.figure3 import figure3
from ibtpo.report.figure5 import figure5
from ibtpo.report.figure6 import figure6
from ibtpo.report.figure7 import figure7
from ibtpo.report.figure8 import figure8
from ibtpo.report.ibscores import ibscores

BUILDERS = (figure1, figure2, figure3, figure5, figure6, figure7, figure8, ibscores)
FIGURES = {builder.__name__: builder for builder in BUILDERS}
METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}  # no dates: equal data, equal bytes


def write(name: str, config: Config, inputs: Sequence[str | Path], stem: Path) -> None:
    """Draws figure `name` and writes all its formats; nothing is written if the drawing fails."""
    if name not in FIGURES:
        raise IbtpoError(f"there is no figure {name!r}; known: {', '.join(FIGURES)}")
    figure, caption = FIGURES[name](config, [read_parquet(path) for path in inputs])
    for format, data in [(format, render(figure, format)) for format in METADATA]:
        write_bytes(data, f"{stem}.{format}")
    write_text(f"{caption}\n", f"{stem}.caption.txt")


def render(figure: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=format, metadata=METADATA[format])
    return buffer.getvalue()
