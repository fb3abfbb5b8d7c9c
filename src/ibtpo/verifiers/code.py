"""Code answers: the last fenced block of a completion, run against the tests of the problem in the sandbox.

A gold answer has one of two forms:
    {"cases": [{"input": text, "output": text}, ...]}                                        standard input and output
    {"entry": name, "cases": [{"input": [arguments], "output": value}, ...]}                 calls of a function or of Solution().name
    {"entry": name, "test": program of assertions, may define check(candidate)}              HumanEval
with "prompt" (program text that goes before the answer) and "solution" (one that passes, for `check`) if there are any.
`from_human_eval`, `from_livecodebench` and `from_open_r1` make such a gold answer of a publisher's row.
"""

from __future__ import annotations

import json
import re

from ibtpo.verifiers.sandbox import DEFAULT, Job, Limits, run
from ibtpo.verifiers.verdict import RIGHT, UNPARSED, WRONG, Verdict

_FENCE = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_VERDICTS = {
    "passed": RIGHT,
    "failed": WRONG,
    "syntax": UNPARSED,
    "timeout": Verdict(0.0, "timeout"),
    "memory": Verdict(0.0, "memory"),
}
_PRELUDE = """from typing import *
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from builtins import *
"""
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


def judge(gold: dict, text: str, limits: Limits = DEFAULT) -> Verdict:
    """Runs the program in `text`. Raises SandboxError where programs cannot be isolated, ValueError if `gold` holds no tests."""
    program = extract(text)
    return _VERDICTS[run(_job(gold, program), limits)] if program.strip() else UNPARSED


def check(gold: dict) -> str:
    """Status of a gold answer: ok, empty, parse_failed, or unverified (its "solution" does not pass)."""
    try:
        job = _job(gold, gold.get("solution") or "")
    except ValueError as error:
        return f"parse_failed: {error}" if gold.get("cases") or gold.get("test") else "empty"
    return "ok" if not gold.get("solution") or run(job) == "passed" else "unverified"


def extract(text: str) -> str:
    """The last fenced block that is Python or says nothing; the whole text if there is no fence at all."""
    blocks = [body for language, body in _FENCE.findall(text) if language.lower() in ("", "python", "python3", "py")]
    return blocks[-1] if blocks else "" if "```" in text else text


def _job(gold: dict, program: str) -> Job:
    entry, test, cases = gold.get("entry"), gold.get("test") or "", gold.get("cases") or []
    if not cases and not test:
        raise ValueError("a gold answer for code needs `cases` or `test`")
    expected = list if entry else str
    for number, case in enumerate(cases):
        if not isinstance(case, dict) or not isinstance(case.get("input"), expected) or "output" not in case:
            raise ValueError(f"case {number} needs an `output` and, as `input`, a {'list of arguments' if entry else 'text'}")
    prompt = gold.get("prompt") or ""
    complete = not entry or re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(entry)}\b", program, re.MULTILINE)
    program = "".join(_FUTURE.findall(program)) + prompt + ("\n" if complete else "") + _FUTURE.sub("", program)  # those come first
    return Job(program, tuple(cases), stdin=bool(cases) and not entry, entry=entry, test=test)


def from_human_eval(row: dict) -> dict:
    """Of a row of openai/openai_humaneval."""
    prompt = row.get("prompt") or row["problem"]
    return {
        "prompt": prompt,
        "entry": row["entry_point"],
        "test": row["test"],
        "solution": row.get("canonical_solution") or row.get("answer"),
    }


def from_livecodebench(row: dict) -> dict:
    """Of a row of livecodebench/code_generation (its public tests)."""
    cases, metadata = _loads(row["public_test_cases"]), _loads(row.get("metadata") or "{}")
    entry = metadata.get("func_name")
    if entry:
        cases = [
            {"input": [json.loads(line) for line in case["input"].splitlines() if line.strip()], "output": json.loads(case["output"])}
            for case in cases
        ]
    return {"prompt": _PRELUDE, "entry": entry, "cases": [{"input": case["input"], "output": case["output"]} for case in cases]}


def from_open_r1(row: dict) -> dict:
    """Of a row of open-r1/verifiable-coding-problems-python."""
    information = _loads(row["verification_info"])
    cases = information["test_cases"]
    if information.get("language") != "python" or any(case.get("fn_name") or case.get("type") != "stdin_stdout" for case in cases):
        raise ValueError("only Python problems with tests on standard input are supported")
    solution = row.get("gold_standard_solution")
    return {
        "cases": [{"input": case["input"], "output": case["output"]} for case in cases],
        "solution": extract(solution) if solution else None,
    }


def _loads(value: str | dict | list) -> dict | list:
    return json.loads(value) if isinstance(value, str) else value
