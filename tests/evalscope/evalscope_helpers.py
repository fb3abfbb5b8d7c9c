"""Shared by the tests of EvalScope: a few made-up problems, and a policy that is a fake server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from ibtpo.benchmarks import server
from ibtpo.config import load
from ibtpo.io import write_parquet

SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
FAKE = Path(__file__).with_name("fake_server.py")


def problem(name: str, number: int, family: str, prompt: str, metadata: dict, **more) -> dict:
    row = {"uid": f"{name}-{number:05d}", "source": name, "source_id": str(number), "family": family, "prompt": prompt}
    row |= {"answer": metadata.get("answer", ""), "metadata": json.dumps(metadata), "solution": "", "level": None, "subject": ""}
    return row | {"system": SYSTEM if family == "maths" else ""} | more


def maths(name: str, count: int, **more) -> list[dict]:
    return [problem(name, n, "maths", f"What is {n} mod {{2}}?", {"answer": str(n % 2)}, **more) for n in range(count)]


def choice(name: str, count: int) -> list[dict]:
    rows = []
    for n in range(count):
        options = [f"{n} [kg]", "ln(2) = [ (T_1 - T_2) / (T1*T2)]", "neither", "both of {these}"]
        listed = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
        metadata = {"answer": "ABCD"[n % 4], "choices": 4, "options": options}
        rows.append(problem(name, n, "choice", f"Which of these, {n}?\n\n{listed}", metadata))
    return rows


def ifeval(name: str) -> list[dict]:
    rules = [
        (["punctuation:no_comma"], [{}]),
        (["length_constraints:number_words"], [{"relation": "less than", "num_words": 3}]),
        (["length_constraints:number_sentences"], [{"relation": "at least", "num_sentences": 1}]),
    ]
    return [
        problem(name, n, "ifeval", f"Write about rivers ({n}).", {"prompt": "", "instruction_id_list": kinds, "kwargs": arguments})
        for n, (kinds, arguments) in enumerate(rules)
    ]


def code(name: str) -> list[dict]:
    prompt = 'def double(x):\n    """Twice x."""\n'
    return [problem(name, 0, "code", prompt, {"prompt": prompt, "entry": "double", "test": "def check(f):\n    assert f(2) == 4\n"})]


def make(folder: Path, patch: pytest.MonkeyPatch, problems: dict[str, list[dict]], mode: str = "ok", samples: int = 4, **evalscope):
    """Writes problems by name, to be asked of a fake server; returns .config, .data, .work, .out, .reviews, .log and .requests()."""
    log = folder / "requests.jsonl"
    for name, rows in problems.items():
        write_parquet(pd.DataFrame(rows), folder / "data" / "benchmarks" / f"{name}.parquet")
    config = load("smoke", {"evalscope": {"start_minutes": 5.0, "concurrency": 8, **evalscope}})
    evaluate = config.evaluate.model_copy(update={"benchmarks": tuple(problems), "samples": samples, "pass_at": (1, 2)})
    patch.setattr(server, "VLLM", [sys.executable, str(FAKE), "--log", str(log), "--mode", mode])
    return SimpleNamespace(
        config=config.model_copy(update={"evaluate": evaluate}),
        data=folder / "data",
        work=folder / "work",
        out=folder / "samples.parquet",
        reviews=folder / "reviews.parquet",
        log=log,
        requests=lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else [],
    )


def evaluated(made):
    from ibtpo.benchmarks import evaluate

    evaluate(made.config, "model", "base", str(made.data), made.work, made.out, made.reviews)
    return made
