"""Rollouts of one policy side by side: engine x block size x mode x sampler. Prints a Markdown table.

    python benchmarks/rollout.py --policy <model folder> --problems <problem set.parquet> [--preset tiny] [--trees 16] [--repeats 5]

All engines live in one process and take turns within each repeat, so that a busy machine slows them alike. Before every run the weights
are loaded anew, as between training steps: the prefix cache starts empty. A repeat has its own seed and its own problems.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

import numpy as np
import pandas as pd
from transformers import AutoModelForCausalLM, AutoTokenizer

from ibtpo.config import Config, load
from ibtpo.engines import Engine, make_engine
from ibtpo.progress import progress
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.rollout.scheduler import run


def main() -> None:
    args = arguments()
    config = load(args.preset)
    engines, seconds = start(config, args)
    prompter = Prompter(AutoTokenizer.from_pretrained(args.policy), config.sampling.max_tokens)
    weights = AutoModelForCausalLM.from_pretrained(args.policy, dtype="float32").state_dict()
    problems = load_problems(args.problems, args.trees * (args.repeats + 1))
    cases = [
        (engine, mode, sampler)
        for engine in engines
        for sampler in args.samplers
        for mode in (("asynchronous", "lockstep") if config.samplers[sampler].name != "independent" else ("asynchronous",))
    ]
    rows = []
    with progress("benchmark", len(cases) * (args.repeats + 1), "run") as bar:
        for repeat in range(args.repeats + 1):
            part = problems[repeat * args.trees : (repeat + 1) * args.trees]
            for engine, mode, sampler in cases:
                tasks = [prompter.task(problem, config.samplers[sampler], seed=repeat) for problem in part]
                figures = measure(engines[engine], weights, tasks, mode, repeat)
                if repeat:  # the first one warms up
                    rows.append({"sampler": sampler, "engine": engine, "mode": mode, **figures})
                bar.update()
    print(report(pd.DataFrame(rows), args))
    print("\nStart of the engines (the first with its imports), s: " + ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))


def measure(engine: Engine, weights: dict, tasks: list, mode: str, seed: int) -> dict[str, float]:
    started = time.perf_counter()
    engine.load_weights(weights)
    loading, before = time.perf_counter() - started, engine.figures()
    used_cpu = time.process_time()
    figures = run(tasks, engine, mode, seed)
    used_cpu, after = time.process_time() - used_cpu, engine.figures()
    used = {name: after[name] - before[name] for name in after}
    return {
        "seconds": figures.seconds,
        "CPU seconds": used_cpu,
        "tokens": figures.tokens,
        "tokens/CPU s": figures.tokens / used_cpu,
        "bookkeeping": figures.bookkeeping_seconds / figures.seconds,
        "load weights, ms": 1000 * loading,
        "prefix hits": used["prefix_hits"] / used["prompt_tokens"] if "prefix_hits" in used else np.nan,
        "KV peak, tokens": after["kv_blocks_peak"] * after["block_size"] if "kv_blocks_peak" in after else np.nan,
    }


def start(config: Config, args: argparse.Namespace) -> tuple[dict[str, Engine], dict[str, float]]:
    engines, seconds = {}, {}
    for name, kind, block in [*((f"vllm, block {block}", "vllm", block) for block in args.blocks), ("transformers", "transformers", 1)]:
        started = time.perf_counter()
        settings = config.engine.model_copy(update={"block_size": block})
        engines[name] = make_engine(kind, args.policy, config.sampling, settings)
        seconds[name] = time.perf_counter() - started
    return engines, seconds


def report(rows: pd.DataFrame, args: argparse.Namespace) -> str:
    """Medians over the repeats; seconds with their range. CPU seconds tell what other work on the machine hides."""
    groups = rows.groupby(["sampler", "engine", "mode"], sort=False)
    table = groups.median()
    for name in ("seconds", "CPU seconds"):
        low, high = groups[name].min(), groups[name].max()
        table[name] = [f"{m:.2f} ({a:.2f} to {b:.2f})" for m, a, b in zip(table[name], low, high, strict=True)]
    for name in ("tokens", "tokens/CPU s", "load weights, ms"):
        table[name] = table[name].map("{:.0f}".format)
    for share in ("bookkeeping", "prefix hits"):
        table[share] = table[share].map(lambda value: "" if np.isnan(value) else f"{value:.0%}")
    table["KV peak, tokens"] = table["KV peak, tokens"].map(lambda value: "" if np.isnan(value) else f"{value:.0f}")
    table = table.sort_index(level="sampler", sort_remaining=False).reset_index()
    lines = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False)]
    where = f"{os.cpu_count()} x {cpu()}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}, load {os.getloadavg()[1]:.1f}"
    head = f"{args.trees} trees at once, preset {args.preset}, median of {args.repeats} repeats ({where})"
    return "\n".join([head, "", *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(": ")[1].strip() for line in info if line.startswith("model name")), platform.machine())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True, help="model folder")
    parser.add_argument("--problems", required=True, help="problem set (Parquet)")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--trees", type=int, default=16, help="problems per run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--blocks", type=int, nargs="+", default=[32, 128], help="KV block sizes of vLLM")
    parser.add_argument("--samplers", nargs="+", default=["independent8", "independent12", "ibtree12"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
