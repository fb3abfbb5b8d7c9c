"""EvalScope's verdicts as scores, our verifiers on the same texts, and a report of where the two disagree."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.benchmarks.outputs import KEY
from ibtpo.config.models import Config
from ibtpo.evaluation.statistics import pass_rates, sample_matrix
from ibtpo.evaluation.verdicts import COLUMNS
from ibtpo.io import read_parquet, write_parquet, write_text
from ibtpo.verifiers import score_all

SHOWN = 100  # disagreements in the page; the table has all
TAIL = 500  # characters of an answer in the table


def main(config: Config, samples: str, reviews: str, data_dir: str, method: str, seed: int, out: str | Path, report: str | Path) -> None:
    """Writes `scores-<policy>` and the report (`report` with .csv and .md).

    A reward is EvalScope's verdict, or ours where it has none. Programs have one verdict, our sandbox's. Raises IbtpoError if samples and
    reviews are not of the same run, or a problem is not in the data.
    """
    answers, verdicts = read_parquet(samples), read_parquet(reviews)
    frame = answers.merge(verdicts, on=list(KEY), suffixes=("", "_evalscope"), validate="1:1")
    if not len(frame) == len(answers) == len(verdicts):
        raise IbtpoError(f"{samples} and {reviews} are not of one run: run evalscope again")
    frame = _rescored(frame.rename(columns={"reward": "evalscope"}), config, Path(data_dir))
    scores = frame.assign(reward=frame["evalscope"].fillna(frame["ours"]), method=method, seed=seed)
    differ = frame[frame["evalscope"].notna() & (frame["evalscope"] != frame["ours"])]
    shown = differ.assign(text=differ["text"].str[-TAIL:])[[*KEY, "evalscope", "ours", "status", "gold", "extracted", "text"]]
    write_text(shown.to_csv(index=False), f"{report}.csv")
    write_text(_page(config, scores, shown), f"{report}.md")
    write_parquet(pd.DataFrame(scores[COLUMNS]), out)


def _rescored(frame: pd.DataFrame, config: Config, data_dir: Path) -> pd.DataFrame:
    """With the rewards and statuses of our verifiers as `ours` and `status`."""
    metadata = {
        (benchmark, row.uid): row.metadata
        for benchmark in config.evaluate.benchmarks
        for row in read_parquet(data_dir / "benchmarks" / f"{benchmark}.parquet").itertuples()
    }
    if unknown := set(zip(frame["benchmark"], frame["uid"], strict=True)) - set(metadata):
        raise IbtpoError(f"{len(unknown)} problem(s) are not in {data_dir}, e.g. {min(unknown)}: run evalscope again")
    frame = frame.assign(ours=frame["evalscope"], status=frame["status_evalscope"])
    texts = frame[frame["family"] != "code"]
    items = [(row.family, _gold(row, metadata[row.benchmark, row.uid]), row.text) for row in texts.itertuples()]
    verdicts = list(score_all(items))
    frame.loc[texts.index, "ours"] = [verdict.reward for verdict in verdicts]
    frame.loc[texts.index, "status"] = [verdict.status for verdict in verdicts]
    return frame


def _gold(row, metadata: str):
    """The gold answer for a verifier. EvalScope orders the options of a choice anew, so the right letter is the one it says."""
    content = json.loads(metadata)
    if row.family == "choice":
        return {"answer": row.gold, "choices": content.get("choices", 4)}
    return content["answer"] if row.family == "maths" else content


def _page(config: Config, scores: pd.DataFrame, differ: pd.DataFrame) -> str:
    """The report to read: how often, what it means for the numbers, and the samples."""
    rows = []
    for benchmark in config.evaluate.benchmarks:
        part = scores[scores["benchmark"] == benchmark]
        both = {"EvalScope": part, "ours": part.assign(reward=part["ours"])}
        row = {"benchmark": benchmark, "samples": len(part), "without EvalScope's verdict": int(part["evalscope"].isna().sum())}
        row |= {"disagreements": int((differ["benchmark"] == benchmark).sum())}
        for judge, judged in both.items():
            matrix = sample_matrix(judged, config.evaluate.samples)
            row[f"avg@{config.evaluate.samples}, {judge}"] = f"{100 * matrix.mean():.1f}"
            row |= {f"pass@{k}, {judge}": f"{100 * pass_rates(matrix, k).mean():.1f}" for k in config.evaluate.pass_at[-1:]}
        rows.append(row)
    parts = [
        "# EvalScope and our verifiers on the same answers",
        pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True),
        "Rates in %. Where EvalScope has no verdict, ours stands in both columns. Programs are judged by our sandbox alone.",
        f"## Samples with two verdicts: {len(differ)}" + (f", of which the first {SHOWN}" if len(differ) > SHOWN else ""),
    ]
    table = differ.head(SHOWN).drop(columns="text").map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    return "\n\n".join([*parts, table.to_markdown(index=False, disable_numparse=True) if len(table) else "None."]) + "\n"
