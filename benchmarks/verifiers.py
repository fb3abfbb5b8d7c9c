"""Throughput of the verifiers: answers (programs) a second. Prints a Markdown table.

    python benchmarks/verifiers.py --math500 <test.jsonl> [--human-eval <test.jsonl>] [--threads 2]

Rows of `--math500` need `answer`, those of `--human-eval` what `from_human_eval` needs; local copies, nothing is downloaded.
"gold against itself" meets the gold answer in the answer, letter for letter, so it is parsed once; "the same in other words" cannot.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path

from ibtpo.verifiers import score_all, workers
from ibtpo.verifiers.code import from_human_eval
from ibtpo.verifiers.workers import Pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--math500", required=True)
    parser.add_argument("--human-eval")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    pool = Pool(options.threads)
    workers.pool = lambda: pool
    gold = [str(row["answer"]) for row in _rows(options.math500)]
    warm = [("maths", "1", "\\boxed{1}")] * 8 * options.threads
    list(score_all(warm, options.threads))  # workers start
    table = [("maths, gold against itself", [("maths", answer, f"\\boxed{{{answer}}}") for answer in gold])]
    table += [("maths, the same in other words", [("maths", answer, f"\\boxed{{\\left({answer}\\right)\\cdot 1}}") for answer in gold])]
    table += [("tiny (gcd)", [("gcd", "6", "\\boxed{6}")] * 20_000)]
    if options.human_eval:
        problems = [from_human_eval(row) for row in _rows(options.human_eval)]
        table += [("code (HumanEval, canonical solutions)", [("code", problem, problem["solution"]) for problem in problems])]
    print("| what | items | right | a second |\n|---|---|---|---|")
    for name, items in table:
        print(_line(name, items, options.threads), flush=True)
    pool.close()


def _line(name: str, items: list[tuple], threads: int) -> str:
    start = time.perf_counter()
    right = sum(verdict.reward == 1 for verdict in score_all(items, threads))
    seconds = time.perf_counter() - start
    return f"| {name} | {len(items)} | {right} | {len(items) / seconds:.0f} |"


def _rows(path: str) -> Iterable[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


if __name__ == "__main__":
    main()
