"""Scoring cached samples: a change of a verifier re-scores, it does not re-generate."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.io import read_parquet, write_parquet
from ibtpo.verifiers import Verdict, verify

COLUMNS = ["benchmark", "uid", "sample", "reward", "status", "tokens", "method", "seed"]


def main(config: Config, samples: str, data_dir: str, method: str, seed: int, out: str) -> None:
    """Writes `scores-<policy>` (columns: COLUMNS). Raises IbtpoError if a sample's problem is not in the data."""
    frame = read_parquet(samples)
    metadata = {
        (benchmark, row.uid): row.metadata
        for benchmark in config.evaluate.benchmarks
        for row in read_parquet(Path(data_dir) / "benchmarks" / f"{benchmark}.parquet").itertuples()
    }
    unknown = set(zip(frame["benchmark"], frame["uid"], strict=True)) - set(metadata)
    if unknown:
        raise IbtpoError(f"{samples}: {len(unknown)} problem(s) are not in {data_dir}, e.g. {min(unknown)}; sample again")
    verdicts = [
        Verdict(0.0, "oov") if row.status == "oov" else verify(row.family, metadata[row.benchmark, row.uid], row.text)
        for row in frame.itertuples()
    ]
    scores = frame.assign(
        reward=[verdict.reward for verdict in verdicts], status=[verdict.status for verdict in verdicts], method=method, seed=seed
    )
    write_parquet(pd.DataFrame(scores[COLUMNS]), out)
