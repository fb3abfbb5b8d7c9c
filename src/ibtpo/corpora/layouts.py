"""From a publisher's row to ours. A layout is a set of columns and a function; a row has the first layout whose columns it has.

Layouts belong to a kind of answer, not to a data set, so a copy of a data set under other column names is read as well.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import pickle
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ibtpo.verifiers import last_boxed
from ibtpo.verifiers.code import from_human_eval, from_livecodebench, from_open_r1

Row = dict[str, Any]
IDS = ("unique_id", "id", "problem_id", "question_id", "key", "task_id", "Record ID")


@dataclass(slots=True)
class Item:
    """A problem on its way to the schema. `answer` is the gold answer as text, "" where metadata alone decides (ifeval, code)."""

    prompt: str
    answer: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    solution: str = ""
    level: int | None = None
    subject: str = ""
    source_id: str = ""
    uid: str = ""
    fault: str = ""  # why it cannot be verified, if a converter knows


class Layout(NamedTuple):
    columns: frozenset[str]
    convert: Callable[[Row], Item]


def layout(kind: str, columns: set[str]) -> Layout | None:
    """The layout of rows that have these columns, None if they have none of the kind."""
    return next((known for known in LAYOUTS[kind] if known.columns <= columns), None)


def nearest(kind: str, columns: set[str]) -> list[str]:
    """What the columns lack for the layout that they fit best."""
    return sorted(min((known.columns - columns for known in LAYOUTS[kind]), key=len))


_BARE_BOX = re.compile(r"\\boxed\s+([^\s$]+)")  # \boxed 2


def _text(value: Any) -> str:
    """A cell as text; a whole number has no point. A list of one is its element (OlympiadBench's answers)."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"a text or a number is wanted, not {value!r:.60}")
    return str(value).strip()


def _level(value: Any) -> int | None:
    """5 of 5, "5" or "Level 5"; None of "Level ?"."""
    digits = re.search(r"\d+", str(value))
    return int(digits[0]) if digits else None


def _id(row: Row) -> str:
    return next((str(row[name]) for name in IDS if row.get(name) is not None), "")


def _common(row: Row) -> dict[str, Any]:
    level = row.get("level", row.get("difficulty"))
    return {
        "level": _level(level) if level is not None else None,
        "subject": _text(row.get("subject") or row.get("type") or ""),
        "solution": row["solution"] if isinstance(row.get("solution"), str) else "",
        "source_id": _id(row),
    }


def _math(prompt: str, answer: str, row: Row) -> Item:
    return Item(_text(prompt), answer, {"answer": answer}, **_common(row))


def _chat(row: Row) -> Item:
    """DAPO-Math-17k and others in verl's layout: a chat whose last message is the problem in its wrapper."""
    messages, gold = row["prompt"], _text(row["reward_model"]["ground_truth"])
    return Item(_text(messages[-1]["content"]), gold, {"answer": gold}, source_id=_text((row.get("extra_info") or {}).get("index")))


def _boxed(row: Row) -> Item:
    """MATH, AIME 2024 and Minerva of some publishers: the answer is the last box of the solution, of which MATH knows three spellings."""
    solution = row["solution"].replace("\\fbox{", "\\boxed{")
    bare = _BARE_BOX.findall(solution)
    answer = (last_boxed(solution) or (bare[-1] if bare else "")).strip()
    item = _math(row["problem"], answer, row)
    item.fault = "" if answer else "no \\boxed answer in the solution"
    return item


def option_order(question: str) -> list[int]:
    """The publisher's number of each of our four options, in our order; 0 is the right one."""
    return sorted(range(4), key=lambda option: hashlib.sha256(f"{question}\0{option}".encode()).digest())


def _choice(row: Row) -> Item:
    """GPQA: four options in an order that a hash of the question decides, so that it is the same everywhere."""
    options = [_text(row[name]) for name in ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")]
    question = _text(row["Question"])
    order = option_order(question)
    choices = [options[option] for option in order]
    answer = "ABCD"[order.index(0)]
    prompt = "\n".join([question, "", *(f"{letter}) {choice}" for letter, choice in zip("ABCD", choices, strict=True))])
    subject = _text(row.get("High-level domain") or "")
    return Item(prompt, answer, {"answer": answer, "choices": 4, "options": choices}, source_id=_id(row), subject=subject)


def _ifeval(row: Row, prompt: str = "prompt") -> Item:
    """Instructions with the arguments that are set; Parquet fills the others with null."""
    rules = [str(name) for name in row["instruction_id_list"]]
    arguments = [{key: value for key, value in (given or {}).items() if value is not None} for given in row["kwargs"]]
    if len(rules) != len(arguments):
        raise ValueError(f"{len(rules)} instructions, but arguments for {len(arguments)}")
    text = row[prompt]
    return Item(text, "", {"prompt": text, "instruction_id_list": rules, "kwargs": arguments}, source_id=_id(row))


def _code(prompt: str, gold: Callable[[Row], Row], row: Row, **more: Any) -> Item:
    """A programming problem; tests that the verifier cannot run are a fault of the problem."""
    item = Item(prompt, source_id=_id(row))
    try:
        item.metadata = gold(row) | more
    except ValueError as error:
        item.fault = str(error)
    item.solution = item.metadata.pop("solution", None) or ""
    return item


def _open_r1(row: Row) -> Item:
    return _code(row["prompt"], from_open_r1, row)


def _live_code_bench(row: Row) -> Item:
    """LiveCodeBench: public tests, and private ones where they are there (JSON, or JSON pickled, zipped and in base 64)."""
    cases = json.loads(row["public_test_cases"]) + _private(row.get("private_test_cases") or "[]")
    prompt = row.get("question_content") or row["problem"]
    dated = {"starter_code": row.get("starter_code") or "", "date": str(row.get("contest_date") or "")[:10]}
    return _code(prompt, from_livecodebench, row | {"public_test_cases": cases}, **dated)


def _human_eval(row: Row) -> Item:
    return _code(row.get("prompt") or row["problem"], from_human_eval, row)


class _Text(pickle.Unpickler):
    """Reads a pickled text and nothing else: no class is ever looked up."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in test cases")


def _private(packed: str) -> list[Row]:
    if packed.lstrip().startswith("["):
        return json.loads(packed)
    return json.loads(_Text(io.BytesIO(zlib.decompress(base64.b64decode(packed)))).load())


def _of(columns: str, convert: Callable[[Row], Item]) -> Layout:
    return Layout(frozenset(columns.split("|")), convert)


LAYOUTS: dict[str, tuple[Layout, ...]] = {
    "maths": (
        _of("prompt|reward_model", _chat),
        _of("problem|answer", lambda row: _math(row["problem"], _text(row["answer"]), row)),
        _of("question|answer", lambda row: _math(row["question"], _text(row["answer"]), row)),
        _of("problem|solution", _boxed),
    ),
    "choice": (_of("Question|Correct Answer|Incorrect Answer 1|Incorrect Answer 2|Incorrect Answer 3", _choice),),
    "ifeval": (
        _of("prompt|instruction_id_list|kwargs", _ifeval),
        _of("problem|instruction_id_list|kwargs", lambda row: _ifeval(row, "problem")),
    ),
    "code": (
        _of("prompt|verification_info", _open_r1),
        _of("question_content|public_test_cases", _live_code_bench),
        _of("problem|public_test_cases", _live_code_bench),
        _of("prompt|test|entry_point|canonical_solution", _human_eval),
        _of("problem|test|entry_point|answer", _human_eval),
    ),
}

_MORE = (
    *("extra_info", "level", "difficulty", "subject", "type", "solution", "gold_standard_solution", "High-level domain"),
    *("private_test_cases", "metadata", "starter_code", "contest_date"),
)
COLUMNS = frozenset((*IDS, *_MORE)).union(*(known.columns for layouts in LAYOUTS.values() for known in layouts))  # all that is ever read
