"""Raw files: every format, and what is damaged is told by file, line and remedy."""

import base64
import csv
import json
import pickle
import zlib

import pandas as pd
import pytest

from ibtpo.corpora.layouts import LAYOUTS, layout, nearest
from ibtpo.corpora.read import DataError, check_sums, find, rows
from ibtpo.io import sha256

ROWS = [{"problem": "Find $x$.", "answer": "1"}, {"problem": "Find\n\n$y$.", "answer": "2"}]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def convert(kind, row):
    return layout(kind, set(row)).convert(row)


def test_every_format_gives_the_same_rows(tmp_path):
    lines = [json.dumps(row) for row in ROWS]
    files = [
        write(tmp_path / "a.jsonl", "\n".join(lines)),  # no newline at the end
        write(tmp_path / "b.json", json.dumps(ROWS)),
        write(tmp_path / "c.json", "\n\n".join(lines) + "\n"),  # JSONL by another name, a blank line
        tmp_path / "d.csv",
        tmp_path / "e.parquet",
    ]
    pd.DataFrame(ROWS).to_parquet(files[4])
    with open(files[3], "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, ["problem", "answer"])
        writer.writeheader()
        writer.writerows(ROWS)
    assert [[row for _, row in rows(path)] for path in files] == [ROWS] * 5
    assert [line for line, _ in rows(files[0])] == [1, 2] and [line for line, _ in rows(files[2])] == [1, 3]


def test_parquet_reads_only_wanted_columns(tmp_path):
    pd.DataFrame([{"a": 1, "b": 2}]).to_parquet(tmp_path / "x.parquet")
    assert list(rows(tmp_path / "x.parquet", {"b", "c"})) == [(1, {"b": 2})]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 2\n{"a": 3}\n', "a.jsonl, line 2 is not JSON"),
        ("a.jsonl", '{"a": 1}\n{"a": 2', "a.jsonl, line 2 is not JSON"),  # torn at the end
        ("a.jsonl", '{"a": 1}\n[2]\n', "a.jsonl, line 2 is a list"),
        ("a.json", '[{"a": 1}, {"a": 2]', "a.json is not JSON"),
        ("a.csv", "a,b\n1,2\n3\n", "a.csv, line 3 has another number of fields"),
        ("a.parquet", "PAR1 but not really", "a.parquet, row 1 cannot be read"),
        ("a.txt", "x", "cannot read a .txt"),
    ],
)
def test_damage_is_told_by_file_and_line(tmp_path, name, text, message):
    path = write(tmp_path / name, text)
    with pytest.raises(DataError, match=message) as error:
        list(rows(path))
    assert "fetch it again" in str(error.value) or "use one of" in str(error.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(DataError, match=r"does not exist.*fetch the data set"):
        rows(tmp_path / "a.jsonl")


def test_find_takes_the_named_files_or_whatever_is_there(tmp_path):
    with pytest.raises(DataError, match=r"holds no data .*fetch it"):
        find(tmp_path, ("a.jsonl",))
    other = write(tmp_path / "z.jsonl", "{}\n")
    write(tmp_path / "origin.json", "{}")
    assert find(tmp_path, ("a.jsonl", "b.jsonl")) == [other]
    assert find(other, ("a.jsonl",)) == [other]
    named = write(tmp_path / "b.jsonl", "{}\n")
    with pytest.raises(DataError, match=r"a.jsonl is missing, while b.jsonl is there"):
        find(tmp_path, ("a.jsonl", "b.jsonl"))
    assert find(tmp_path, ("b.jsonl",)) == [named]


@pytest.mark.parametrize("where", ["settings", "origin"])
def test_a_wrong_checksum_is_told(tmp_path, where):
    path = write(tmp_path / "a.jsonl", "{}\n")
    right = sha256(path)
    assert check_sums([path], tmp_path, {"a.jsonl": right}) == {"a.jsonl": right}
    if where == "origin":
        write(tmp_path / "origin.json", json.dumps({"sha256": {"a.jsonl": right}}))
        write(path, "{}\n{}\n")
    with pytest.raises(DataError, match=r"a.jsonl has the checksum .*fetch it again"):
        check_sums([path], tmp_path, {"a.jsonl": "0" * 64} if where == "settings" else {})


# layouts: one row of each publisher -------------------------------------------------------------------------------------------------------


def test_maths_of_every_publisher():
    chat = {
        "prompt": [{"role": "user", "content": " Find. "}],
        "reward_model": {"ground_truth": "34", "style": "rule"},
        "extra_info": {"index": "a"},
    }
    cases = {
        "34": chat,
        "p - q": {"problem": "Find.", "answer": "p - q", "level": 5, "subject": "Algebra", "unique_id": "test/1", "solution": "So."},
        "27": {"question": "Find.", "answer": 27.0, "id": 0},
        "\\frac{1}{2}": {
            "problem": "Find.",
            "solution": "So \\boxed{3}, no: $\\boxed{\\frac{1}{2}}$.",
            "level": "Level 3",
            "type": "Algebra",
        },
    }
    found = {answer: convert("maths", row) for answer, row in cases.items()}
    assert all((item.prompt, item.answer, item.metadata) == ("Find.", answer, {"answer": answer}) for answer, item in found.items())
    assert [item.level for item in found.values()] == [None, 5, None, 3]
    assert [item.source_id for item in found.values()] == ["a", "test/1", "0", ""]
    assert convert("maths", {"problem": "x", "answer": "1", "level": "Level ?"}).level is None
    assert [convert("maths", {"problem": "x", "solution": s}).answer for s in ("\\fbox{2}", "$\\boxed 3$", "\\boxed{4}")] == ["2", "3", "4"]
    assert "no \\boxed" in convert("maths", {"problem": "x", "solution": "nothing"}).fault


def test_choices_are_in_an_order_of_their_own():
    row = {
        "Question": "Which?",
        "Correct Answer": " right",
        "Incorrect Answer 1": "w1",
        "Incorrect Answer 2": "w2",
        "Incorrect Answer 3": "w3",
    }
    items = [convert("choice", row | {"Question": f"Which {n}?"}) for n in range(40)]
    for item in items:
        assert sorted(item.metadata["options"]) == ["right", "w1", "w2", "w3"]
        assert f"{item.answer}) right" in item.prompt.splitlines() and item.metadata["answer"] == item.answer
    assert {item.answer for item in items} == set("ABCD")
    assert convert("choice", row | {"Question": "Which 0?"}) == items[0]


def test_instructions_have_only_arguments_that_are_set():
    row = {"key": 1, "prompt": "Write.", "instruction_id_list": ["a:b"], "kwargs": [{"num_words": 3, "relation": None}]}
    assert convert("ifeval", row).metadata == {"prompt": "Write.", "instruction_id_list": ["a:b"], "kwargs": [{"num_words": 3}]}
    with pytest.raises(ValueError, match="1 instructions, but arguments for 2"):
        convert("ifeval", row | {"kwargs": [{}, {}]})


def test_code_of_every_publisher():
    case = {"input": "1\n", "output": "2\n", "fn_name": None, "type": "stdin_stdout"}
    cases = [{"input": "1\n", "output": "2\n"}]
    open_r1 = {"prompt": "Add.", "verification_info": {"language": "python", "test_cases": [case]}, "gold_standard_solution": "print(2)"}
    item = convert("code", open_r1)
    assert (item.prompt, item.metadata, item.solution, item.fault) == ("Add.", {"cases": cases}, "print(2)", "")
    other = convert("code", open_r1 | {"verification_info": {"language": "python", "test_cases": [case | {"fn_name": "f"}]}})
    assert "standard input" in other.fault and other.metadata == {}

    public = json.dumps([{"input": "1", "output": "2", "testtype": "functional"}])
    hidden = [{"input": "[3]\n4", "output": "4", "testtype": "functional"}]
    private = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(hidden)))).decode()
    bench = {"question_content": "Add.", "public_test_cases": public, "private_test_cases": private, "metadata": '{"func_name": "add"}'}
    found = convert("code", bench | {"question_id": "1", "contest_date": "2025-01-04T00:00:00"}).metadata
    assert (found["entry"], found["date"]) == ("add", "2025-01-04")
    assert found["cases"] == [{"input": [1], "output": 2}, {"input": [[3], 4], "output": 4}]

    human = {
        "prompt": "def f():\n",
        "test": "def check(c): pass",
        "entry_point": "f",
        "canonical_solution": "    return 1\n",
        "task_id": "H/0",
    }
    item = convert("code", human)
    assert (item.prompt, item.solution, item.metadata["test"]) == ("def f():\n", "    return 1\n", "def check(c): pass")


def test_a_pickle_in_test_cases_never_runs():
    evil = base64.b64encode(zlib.compress(pickle.dumps(print))).decode()
    with pytest.raises(pickle.UnpicklingError, match="in test cases"):
        convert("code", {"question_content": "x", "public_test_cases": "[]", "private_test_cases": evil})


def test_what_a_row_lacks():
    assert layout("maths", {"id", "text"}) is None
    assert nearest("maths", {"question", "text"}) == ["answer"]
    assert set(LAYOUTS) == {"maths", "choice", "ifeval", "code"}
