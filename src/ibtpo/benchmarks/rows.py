"""From a problem of ours to a row as EvalScope's adapters read it: with the columns of the publisher, and `uid` beside them.

Columns that our schema does not keep are null. Tests of programs stay here: the sandbox of `verifiers` runs them, not EvalScope.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.corpora.layouts import option_order
from ibtpo.io import read_parquet

Row = dict[str, Any]


def read_problems(path: str | Path) -> pd.DataFrame:
    """The problems of a benchmark, with a column `system` ("": none). Raises IbtpoError unless there are any, all to be asked alike."""
    frame = read_parquet(path)
    if missing := {"uid", "family", "prompt", "answer", "metadata"} - set(frame.columns):
        raise IbtpoError(f"{path} lacks the column(s) {', '.join(sorted(missing))}: build the benchmark again")
    if frame.empty:
        raise IbtpoError(f"{path} holds no problems: build the benchmark again")
    frame = frame.assign(system=frame["system"].fillna("") if "system" in frame else "")
    for column in ("family", "system"):
        if len(frame[column].unique()) > 1:
            raise IbtpoError(f"{path} mixes problems of several kinds ({column}): make a benchmark of each")
    return frame


def adapter(name: str, problems: pd.DataFrame) -> str:
    """EvalScope's name of the benchmark: known by ours, else by the kind of the problems."""
    if name in KNOWN:
        return KNOWN[name]
    family = problems["family"].iloc[0]
    if family == "code":
        return "humaneval" if json.loads(problems["metadata"].iloc[0]).get("test") else "live_code_bench"
    return {"choice": "gpqa_diamond", "ifeval": "ifeval"}.get(family, "amc")  # amc: one boxed answer, no levels, no years


def rows(name: str, problems: pd.DataFrame) -> list[Row]:
    """One row per problem for the adapter of the benchmark `name`, in order."""
    convert = COLUMNS[adapter(name, problems)]
    return [
        {"uid": problem["uid"], **convert(problem, json.loads(problem["metadata"]))}
        for problem in problems.astype(object).where(problems.notna(), None).to_dict("records")
    ]


def _solution(problem: Row) -> str:
    return "\n\n".join(json.loads(problem.get("solution") or "[]"))


def _math(problem: Row) -> Row:
    return {"problem": problem["prompt"], "answer": problem["answer"], "solution": _solution(problem)}


def _math_500(problem: Row, _: Row) -> Row:
    number = problem.get("source_id") or problem["uid"]
    return _math(problem) | {"subject": problem.get("subject"), "level": problem.get("level"), "unique_id": number}


def _aime(problem: Row, _: Row) -> Row:
    return _math(problem) | {"id": problem.get("source_id")}


def _amc(problem: Row, _: Row) -> Row:
    return _math(problem) | {"id": problem.get("source_id"), "year": None, "url": None}


def _minerva(problem: Row, _: Row) -> Row:
    """The gold answer is the box of the publisher's solution; alone it does where that is not at hand."""
    solution = _solution(problem) or f"$\\boxed{{{problem['answer']}}}$"
    return {"problem": problem["prompt"], "solution": solution, "type": problem.get("subject"), "idx": problem.get("source_id")}


def _gpqa(problem: Row, metadata: Row) -> Row:
    """The question without its options, which stand in the publisher's order again: on it, EvalScope's own order depends.

    Raises IbtpoError unless there are four.
    """
    options = metadata.get("options") or []
    if len(options) != 4:
        raise IbtpoError(f"{problem['uid']} has {len(options)} options in its metadata; EvalScope's GPQA needs four")
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
    question = problem["prompt"].removesuffix(listed).rstrip("\n")
    number, order = "ABCD".index(metadata["answer"]), option_order(question)
    if order[number]:  # a set that was not built from a publisher's rows
        order = [0 if option == number else option + (option < number) for option in range(4)]
    published = [options[order.index(option)] for option in range(4)]
    wrong = {f"Incorrect Answer {option}": published[option] for option in (1, 2, 3)}
    return {"Question": question, "Correct Answer": published[0], **wrong}


def _ifeval(problem: Row, metadata: Row) -> Row:
    return {"key": problem.get("source_id"), "prompt": problem["prompt"]} | {
        key: metadata[key] for key in ("instruction_id_list", "kwargs")
    }


def _human_eval(problem: Row, metadata: Row) -> Row:
    number = problem.get("source_id") or problem["uid"]
    return {
        "task_id": number,
        "prompt": problem["prompt"],
        "canonical_solution": _solution(problem),
        "test": "",
        "entry_point": metadata.get("entry"),
    }


def _live_code_bench(problem: Row, metadata: Row) -> Row:
    return {
        "question_content": problem["prompt"],
        "question_id": problem.get("source_id"),
        "contest_date": metadata.get("date") or "1970-01-01",
        "starter_code": metadata.get("starter_code") or "",
        "public_test_cases": "[]",
        "private_test_cases": "[]",
        "metadata": json.dumps({"func_name": metadata["entry"]} if metadata.get("entry") else {}),
    }


KNOWN = {
    "math500": "math_500",
    "aime24": "aime24",
    "aime25": "aime25",
    "amc23": "amc",
    "amc23_46": "amc",
    "amc24": "amc",
    "minerva": "minerva_math",
    "gpqa_diamond": "gpqa_diamond",
    "ifeval": "ifeval",
    "humaneval": "humaneval",
    "livecodebench": "live_code_bench",
}
COLUMNS: dict[str, Callable[[Row, Row], Row]] = {
    "math_500": _math_500,
    "aime24": _aime,
    "aime25": _aime,
    "amc": _amc,
    "minerva_math": _minerva,
    "gpqa_diamond": _gpqa,
    "ifeval": _ifeval,
    "humaneval": _human_eval,
    "live_code_bench": _live_code_bench,
}
