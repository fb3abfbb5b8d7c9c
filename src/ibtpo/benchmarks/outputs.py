"""EvalScope's per-sample files -> tidy frames: what was generated (samples), and what EvalScope makes of it (reviews)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.io import read_jsonl

KINDS = ("predictions", "reviews")
KEY = ("benchmark", "uid", "sample")
USABLE = ("success", "fallback", "degraded")  # EvalScope's statuses of a score that counts


def repair(run: Path) -> None:
    """Cuts a torn last line off each file of a run that was killed: EvalScope would append to it and lose two rows."""
    for kind in KINDS:
        for path in (run / kind).glob("*/*.jsonl"):
            read_jsonl(path)


def frames(
    run: Path, policy: str, problems: dict[str, pd.DataFrame], registered: dict[str, str], samples: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Samples (columns of `samples-<policy>`) and reviews (KEY, reward, status, gold, extracted), in order of the problems.

    problems, registered: by name of the benchmark, its problems and EvalScope's name of it. reward: EvalScope's verdict, NaN where it has
    none; gold: the answer it compared with, for multiple choice a letter in its order of the options. Raises IbtpoError unless there are
    `samples` of both for each problem.
    """
    sampled, reviewed = [], []
    for name, frame in problems.items():
        predictions, reviews = (_rows(run / kind / policy, registered[name], samples) for kind in KINDS)
        for uid, family in zip(frame["uid"], frame["family"], strict=True):
            for number in range(samples):
                if (uid, number) not in predictions or (uid, number) not in reviews:
                    raise IbtpoError(f"{run}: EvalScope has no answer, or no verdict, for sample {number} of {name}/{uid}: see its logs")
                key = dict(zip(KEY, (name, uid, number), strict=True))
                sampled.append(key | {"family": family} | _sample(predictions[uid, number]))
                reviewed.append(key | _review(reviews[uid, number]))
    order = ["benchmark", "uid", "family", "sample", "text", "ids", "finished", "status", "tokens"]
    return pd.DataFrame(sampled)[order], pd.DataFrame(reviewed)


def _rows(folder: Path, benchmark: str, samples: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Rows of all subsets of a benchmark by uid and number of the sample; a later row of a sample replaces an earlier one."""
    found = {}
    for path in sorted(folder.glob(f"{benchmark}_*.jsonl")):
        for row in read_jsonl(path):
            metadata = row["sample_score"]["sample_metadata"] if "sample_score" in row else row["metadata"]
            found[metadata["uid"], row["index"] % samples] = row
    return found


def _sample(row: dict[str, Any]) -> dict[str, Any]:
    output = row["model_output"]
    choice = output["choices"][0]
    text, ids = choice["message"]["content"], (choice["message"].get("metadata") or {}).get("ids") or []
    tokens = (output.get("usage") or {}).get("output_tokens") or len(ids)
    return {"text": text, "ids": ids, "finished": choice["stop_reason"] == "stop", "status": "ok", "tokens": tokens}


def _review(row: dict[str, Any]) -> dict[str, Any]:
    score = row["sample_score"]["score"]
    name, values = score.get("main_score_name"), score["value"]
    usable = score["status"] in USABLE and bool(values)
    reward = float(values[name] if name in values else next(iter(values.values()))) if usable else float("nan")
    status = (score.get("metadata") or {}).get("status") or ("ok" if usable else "error")
    return {
        "reward": reward,
        "status": status,
        "gold": (row.get("target") or [""])[0],
        "extracted": score.get("extracted_prediction") or "",
    }
