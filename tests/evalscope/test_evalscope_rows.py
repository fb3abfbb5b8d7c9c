"""From our schema to the columns that EvalScope reads, and what is refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from evalscope_helpers import SYSTEM, choice, code, ifeval, maths, problem

from ibtpo import IbtpoError
from ibtpo.benchmarks.rows import KNOWN, adapter, read_problems, rows
from ibtpo.corpora.layouts import layout
from ibtpo.io import write_parquet


def frame(problems: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(problems)


def test_each_row_has_the_publishers_columns_and_our_uid():
    (row,) = rows("math500", frame(maths("math500", 1, level=4, subject="Algebra")))
    assert row == {
        "uid": "math500-00000",
        "problem": "What is 0 mod {2}?",
        "answer": "0",
        "solution": "",
        "subject": "Algebra",
        "level": 4,
        "unique_id": "0",
    }
    (row,) = rows("minerva", frame(maths("minerva", 1, solution=json.dumps(["So $\\boxed{0}$."]))))
    assert row["solution"] == "So $\\boxed{0}$."
    assert rows("minerva", frame(maths("minerva", 1)))[0]["solution"] == "$\\boxed{0}$"


def test_the_options_are_taken_off_a_question_and_the_right_one_is_known():
    for number, row in enumerate(rows("gpqa_diamond", frame(choice("gpqa_diamond", 4)))):
        assert row["Question"] == f"Which of these, {number}?"
        options = [f"{number} [kg]", "ln(2) = [ (T_1 - T_2) / (T1*T2)]", "neither", "both of {these}"]
        assert row["Correct Answer"] == options[number]
        assert {row[f"Incorrect Answer {n}"] for n in (1, 2, 3)} == {*options} - {options[number]}


@pytest.mark.parametrize(
    "kind, published",
    [
        ("choice", {"Question": "Why?", "Correct Answer": "so", **{f"Incorrect Answer {n}": f"not {n}" for n in (1, 2, 3)}}),
        ("ifeval", {"key": 7, "prompt": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}),
    ],
)
def test_a_publishers_row_comes_back_as_it_was(kind, published):
    item = layout(kind, set(published)).convert(published)
    there = problem("x", 0, kind, item.prompt, item.metadata, source_id=item.source_id)
    (row,) = rows("x", frame([there]))
    assert {key: row[key] for key in published} == {key: str(value) if key == "key" else value for key, value in published.items()}


def test_benchmarks_are_known_by_name_or_else_by_their_kind():
    assert {name: adapter(name, frame(maths(name, 1))) for name in KNOWN} == KNOWN
    assert adapter("gpqa_like", frame(choice("gpqa_like", 1))) == "gpqa_diamond"
    assert adapter("rules", frame(ifeval("rules"))) == "ifeval"
    assert adapter("programs", frame(code("programs"))) == "humaneval"
    stdin = problem("programs", 0, "code", "Add.", {"cases": [{"input": "1 2", "output": "3"}], "entry": None})
    assert adapter("programs", frame([stdin])) == "live_code_bench"
    assert adapter("chain-sum", frame([problem("chain-sum", 0, "chain-sum", "1 + 2", {"answer": "3"})])) == "amc"


@pytest.mark.parametrize(
    "problems, message",
    [
        ([], "lacks the column"),
        (maths("x", 1) + choice("x", 1), "mixes problems of several kinds .family."),
        (maths("x", 1) + maths("x", 1, system=""), "mixes problems of several kinds .system."),
    ],
)
def test_a_benchmark_that_cannot_be_asked_is_refused(tmp_path, problems, message):
    write_parquet(pd.DataFrame(problems), tmp_path / "x.parquet")
    with pytest.raises(IbtpoError, match=message):
        read_problems(tmp_path / "x.parquet")


def test_an_empty_benchmark_is_refused(tmp_path):
    write_parquet(frame(maths("x", 1)).head(0), tmp_path / "x.parquet")
    with pytest.raises(IbtpoError, match=r"x\.parquet holds no problems: build the benchmark again"):
        read_problems(tmp_path / "x.parquet")


def test_a_choice_without_four_options_is_refused():
    two = problem("x", 0, "choice", "Yes?", {"answer": "A", "options": ["yes", "no"], "choices": 2})
    with pytest.raises(IbtpoError, match="x-00000 has 2 options in its metadata; EvalScope's GPQA needs four"):
        rows("x", frame([two]))


def test_without_a_system_column_prompts_are_evalscopes(tmp_path):
    write_parquet(frame(maths("x", 1)).drop(columns="system"), tmp_path / "x.parquet")
    assert read_problems(tmp_path / "x.parquet")["system"].tolist() == [""]
    write_parquet(frame(maths("x", 1)), tmp_path / "x.parquet")
    assert read_problems(tmp_path / "x.parquet")["system"].tolist() == [SYSTEM]
