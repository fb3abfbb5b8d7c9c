"""Artifacts as one frame, refused where something is missing: an empty table or figure is never written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from ibtpo import IbtpoError

SHOWN = 5


def gather(
    name: str, frames: Sequence[pd.DataFrame], columns: Sequence[str], expected: Iterable[tuple], defined: str | None = None
) -> pd.DataFrame:
    """Concatenates frames; `expected` holds the values of the first columns of which there must be rows.

    Rows without a value in the column `defined` do not count. Raises IbtpoError "no rows for <name>: missing ..." that names what is not
    there, or the column that an input lacks.
    """
    expected = list(dict.fromkeys(expected))
    for frame in frames:
        absent = [column for column in columns if column not in frame]
        if absent:
            raise IbtpoError(
                f"{name}: an input has no column {', '.join(absent)} (it has: {', '.join(map(str, frame.columns))}); build it again"
            )
    full = [frame[list(columns)].dropna(subset=defined or []) for frame in frames]
    keys = list(columns[: len(expected[0])])
    present = {key for frame in full for key in frame[keys].drop_duplicates().itertuples(index=False, name=None)}
    missing = [key for key in expected if key not in present]
    if missing:
        shown = ["/".join(map(str, key)) for key in missing[:SHOWN]] + [f"and {len(missing) - SHOWN} more"] * (len(missing) > SHOWN)
        raise IbtpoError(f"no rows for {name}: missing {', '.join(shown)} ({'/'.join(keys)}); run the rules that make these")
    return pd.concat([frame for frame in full if len(frame)], ignore_index=True)
