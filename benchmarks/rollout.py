"""Rollouts of one policy side by side: engine x mode x sampler. Prints a Markdown table.

    python benchmarks/rollout.py --policy <model folder> --problems <problem set.parquet> [--preset tiny] [--trees 64] [--repeats 5]
    python benchmarks/rollout.py --random [--trees 4] [--repeats 5]

All engines live in one process and take turns within each repeat, so that a busy machine slows them alike; CPU seconds tell what other
work on it hides. Before every run the weights are loaded anew, as between training steps: the prefix cache starts empty. A repeat has its
own seed and its own problems. "generate" is transformers' own, a batch at a time, on 128 rows.

--random: instead of a policy a random model of 18M parameters (6 layers of width 512), prompts of 64 tokens and responses of 300 to 1000
tokens (uniform, cut off there by the benchmark), steps of some 32 tokens, rewards by coin.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import pandas as pd
import torch
from generate import GenerateEngine

from ibtpo.config import Config, load
from ibtpo.engines import Engine, make_engine
from ibtpo.io import hardware
from ibtpo.measure.rollouts import cost
from ibtpo.measure.worlds import PolicyWorld, RandomWorld
from ibtpo.progress import progress

LONGEST = 1000  # tokens of --random


def main() -> None:
    args = arguments()
    chosen = {"model": "random" if args.random else "policy", "samplers": args.samplers, "modes": ["lockstep", "asynchronous"]}
    measurement = {**chosen, "trees": [args.trees], "max_tokens": [LONGEST] if args.random else []}
    config = load(args.preset, {"measurements": {"benchmark": measurement}, **({"engine": {"kv_cache_gib": 4.0}} if args.random else {})})
    world = (
        RandomWorld(config, config.measurements["benchmark"], LONGEST) if args.random else PolicyWorld(config, args.policy, args.problems)
    )
    engines, cases = start(config, args, world), config.cases("benchmark")
    weights = {name: value.clone() for name, value in world.model.state_dict().items()}
    rows = []
    with progress("benchmark", len(engines) * len(cases) * (args.repeats + 1), "run") as bar:
        for repeat in range(args.repeats + 1):
            for case in cases:
                for name, engine in engines.items():
                    figures = cost(engine, weights, world.tasks(case, repeat), case.mode, repeat)
                    if repeat:  # the first one warms up
                        rows.append({"sampler": case.sampler, "engine": name, "mode": case.mode, **figures})
                    bar.update()
    print(report(shown(pd.DataFrame(rows)), args, sum(value.numel() for value in world.model.parameters())))


def start(config: Config, args: argparse.Namespace, world: PolicyWorld | RandomWorld) -> dict[str, Engine]:
    """The engines by name; with --random all of them cut responses at lengths of their own."""
    engines: dict[str, Engine] = {}
    if "generate" in args.engines:
        engine = GenerateEngine(world.model, world.eos_id, config.sampling, rows=128)
        engines["generate"] = world.uneven(engine) if args.random else engine
    if "transformers" in args.engines:
        engines["transformers"] = (
            world.engine() if args.random else make_engine("transformers", args.policy, config.sampling, config.engine)
        )
    if "vllm" in args.engines:
        for block in args.blocks:
            settings = config.engine.model_copy(update={"block_size": block})
            engines[f"vllm, block {block}"] = make_engine("vllm", args.policy, config.sampling, settings)
    return engines


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The columns of the table."""
    used = rows.astype({"prefix_hits": float, "prefix_queries": float, "kv_peak_tokens": float})
    return pd.DataFrame(
        {
            **{name: rows[name] for name in ("sampler", "engine", "mode", "seconds")},
            "CPU seconds": rows["cpu_seconds"],
            "tokens": rows["tokens"],
            "tokens/CPU s": rows["tokens"] / rows["cpu_seconds"],
            "bookkeeping": rows["bookkeeping_seconds"] / rows["seconds"],
            "prefix hits": used["prefix_hits"] / used["prefix_queries"],
            "KV peak, tokens": used["kv_peak_tokens"],
        }
    )


def report(rows: pd.DataFrame, args: argparse.Namespace, parameters: int) -> str:
    """Medians over the repeats; seconds with their range; "times faster" than the first engine and mode, by CPU seconds."""
    groups = rows.groupby(["sampler", "engine", "mode"], sort=False)
    table = groups.median()
    first = table.groupby("sampler", sort=False)["CPU seconds"].transform("first")
    table["times faster"] = [f"{a / b:.1f}" for a, b in zip(first, table["CPU seconds"], strict=True)]
    for name in ("seconds", "CPU seconds"):
        low, high = groups[name].min(), groups[name].max()
        table[name] = [f"{m:.2f} ({a:.2f} to {b:.2f})" for m, a, b in zip(table[name], low, high, strict=True)]
    for name in ("tokens", "tokens/CPU s", "KV peak, tokens"):
        table[name] = table[name].map(lambda value: "" if np.isnan(value) else f"{value:.0f}")
    for share in ("bookkeeping", "prefix hits"):
        table[share] = table[share].map(lambda value: "" if np.isnan(value) else f"{value:.0%}")
    table = table.reset_index()
    lines = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False)]
    what = (
        f"random model of {parameters / 1e6:.0f}M parameters"
        if args.random
        else f"preset {args.preset}, {parameters / 1e3:.0f}k parameters"
    )
    where = f"{os.cpu_count()} x {hardware()['cpu']}, {torch.get_num_threads()} thread(s), load {os.getloadavg()[1]:.1f}"
    head = f"{args.trees} trees at once, {what}, median of {args.repeats} repeats ({where})"
    return "\n".join([head, "", *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", help="model folder")
    parser.add_argument("--problems", help="problem set (Parquet)")
    parser.add_argument("--random", action="store_true", help="a random model of 18M parameters and long, uneven responses")
    parser.add_argument("--preset", default="tiny", help="its sampling, samplers and engine settings")
    parser.add_argument("--trees", type=int, default=64, help="problems per run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", nargs="+", default=["generate", "transformers"], choices=["generate", "transformers", "vllm"])
    parser.add_argument("--blocks", type=int, nargs="+", default=[32], help="KV block sizes of vLLM")
    parser.add_argument("--samplers", nargs="+", default=["ibtree12", "independent12", "independent8"])
    args = parser.parse_args()
    if not args.random and not (args.policy and args.problems):
        parser.error("give --policy and --problems, or --random")
    if args.random and "vllm" in args.engines:
        parser.error("--random has no model folder, which vLLM needs")
    return args


if __name__ == "__main__":
    main()
