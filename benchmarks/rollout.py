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
import platform
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from generate import GenerateEngine
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from ibtpo.config import Config, load
from ibtpo.engines import Engine, Request, make_engine
from ibtpo.engines.transformers import TransformersEngine
from ibtpo.progress import progress
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.rollout.scheduler import Task, run, stable_seed
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter
from ibtpo.verifiers import Verdict

SHORTEST, LONGEST, PROMPT = 300, 1000, 64  # tokens of --random
Tasks = Callable[[str, int], list[Task]]  # (sampler, repeat) -> the trees to grow


def main() -> None:
    args = arguments()
    config = load(args.preset)
    model, eos_id, tasks = random_world(config, args) if args.random else tiny_world(config, args)
    engines = start(config, args, model, eos_id)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    cases = [
        (name, mode, sampler)
        for sampler in args.samplers
        for name in engines
        for mode in (("lockstep", "asynchronous") if config.samplers[sampler].name != "independent" else ("asynchronous",))
    ]
    rows = []
    with progress("benchmark", len(cases) * (args.repeats + 1), "run") as bar:
        for repeat in range(args.repeats + 1):
            for name, mode, sampler in cases:
                figures = measure(engines[name], weights, tasks(sampler, repeat), mode, repeat)
                if repeat:  # the first one warms up
                    rows.append({"sampler": sampler, "engine": name, "mode": mode, **figures})
                bar.update()
    print(report(pd.DataFrame(rows), args, sum(value.numel() for value in model.parameters())))


def tiny_world(config: Config, args: argparse.Namespace) -> tuple[PreTrainedModel, int, Tasks]:
    """The policy and the problems of a preset."""
    tokenizer = AutoTokenizer.from_pretrained(args.policy)
    prompter = Prompter(tokenizer, config.sampling.max_tokens)
    problems = load_problems(args.problems, args.trees * (args.repeats + 1))

    def tasks(sampler: str, repeat: int) -> list[Task]:
        part = problems[repeat * args.trees : (repeat + 1) * args.trees]
        return [prompter.task(problem, config.samplers[sampler], repeat) for problem in part]

    return AutoModelForCausalLM.from_pretrained(args.policy, dtype=torch.float32), tokenizer.eos_token_id, tasks


def random_world(config: Config, args: argparse.Namespace) -> tuple[PreTrainedModel, int, Tasks]:
    """A random model, which never ends a response by itself, and prompts of random tokens."""
    torch.manual_seed(0)
    eos_id = 512
    shape = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 6, "vocab_size": eos_id + 1}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64}
    model = Qwen3ForCausalLM(Qwen3Config(**shape, **heads, max_position_embeddings=2048, tie_word_embeddings=True))
    torch.nn.init.zeros_(model.lm_head.weight[eos_id])  # a logit of 0 is never among the best 20
    segmenter = Segmenter([b"x\n\n" if token % 32 == 0 else b"x" for token in range(eos_id)] + [b""], eos_id)

    def tasks(name: str, repeat: int) -> list[Task]:
        made = []
        for uid in (f"{repeat}-{number}" for number in range(args.trees)):
            rng, sampler = np.random.default_rng(stable_seed(uid)), config.samplers[name]
            tree = make_tree(uid, sampler, segmenter, LONGEST, repeat)
            prompt = tuple(rng.integers(eos_id, size=PROMPT).tolist())
            made.append(Task(uid, prompt, SAMPLERS[sampler.name](tree, sampler, rng), tree, coin))
        return made

    return model, eos_id, tasks


def coin(ids: tuple[int, ...]) -> Verdict:
    return Verdict(float(stable_seed(*ids) % 2), "ok")


class Uneven:
    """Cuts responses at lengths of their own: what a request may generate is drawn by its seed."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def submit(self, request: Request) -> None:
        done = len(request.prompt_ids) - PROMPT
        length = SHORTEST + request.seed % (LONGEST - SHORTEST + 1)
        self._engine.submit(replace(request, max_tokens=max(1, min(length - done, request.max_tokens))))

    def __getattr__(self, name: str):
        return getattr(self._engine, name)


def start(config: Config, args: argparse.Namespace, model: PreTrainedModel, eos_id: int) -> dict[str, Engine]:
    engines: dict[str, Engine] = {}
    if "generate" in args.engines:
        engines["generate"] = GenerateEngine(model, eos_id, config.sampling, rows=128)
    if "transformers" in args.engines and args.random:
        engines["transformers"] = TransformersEngine(model, eos_id, config.sampling, config.engine.model_copy(update={"kv_cache_gib": 4.0}))
    elif "transformers" in args.engines:
        engines["transformers"] = make_engine("transformers", args.policy, config.sampling, config.engine)
    if "vllm" in args.engines:
        for block in args.blocks:
            settings = config.engine.model_copy(update={"block_size": block})
            engines[f"vllm, block {block}"] = make_engine("vllm", args.policy, config.sampling, settings)
    return {name: Uneven(engine) for name, engine in engines.items()} if args.random else engines


def measure(engine: Engine, weights: dict, tasks: list[Task], mode: str, seed: int) -> dict[str, float]:
    engine.load_weights(weights)
    before, used_cpu = engine.figures(), time.process_time()
    figures = run(tasks, engine, mode, seed)
    used_cpu, after = time.process_time() - used_cpu, engine.figures()
    used = {name: after[name] - before[name] for name in after}
    return {
        "seconds": figures.seconds,
        "CPU seconds": used_cpu,
        "tokens": figures.tokens,
        "tokens/CPU s": figures.tokens / used_cpu,
        "bookkeeping": figures.bookkeeping_seconds / figures.seconds,
        "prefix hits": used["prefix_hits"] / used["prefix_queries"] if "prefix_hits" in used else np.nan,
        "KV peak, tokens": after["kv_blocks_peak"] * after["block_size"] if "kv_blocks_peak" in after else np.nan,
    }


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
    where = f"{os.cpu_count()} x {cpu()}, {torch.get_num_threads()} thread(s), load {os.getloadavg()[1]:.1f}"
    head = f"{args.trees} trees at once, {what}, median of {args.repeats} repeats ({where})"
    return "\n".join([head, "", *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(": ")[1].strip() for line in info if line.startswith("model name")), platform.machine())


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
