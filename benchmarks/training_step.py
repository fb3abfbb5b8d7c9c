"""Training steps side by side: TRL's own GRPOTrainer, ours on the plain forward, ours with shared prefixes. Prints Markdown tables.

    python benchmarks/training_step.py --policy <model folder> --problems <problem set.parquet> [--preset tiny] [--repeats 5]

One step is what follows the rollouts of an iteration: old and reference log-probs, advantages, and `minibatches` updates. Model, sequences,
batch, loss and optimiser are the same for all three; TRL's has one advantage a sequence and sees the sequences shuffled. All three live in
one process and take turns within each repeat, so that a busy machine slows them alike. The trees: of the preset's training iteration, grown
by the base policy, and random ones of 300 to 1000 tokens a response on a random model of 16M parameters.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from ibtpo.advantages import estimate
from ibtpo.config import Config, load
from ibtpo.config.methods import Advantage
from ibtpo.engines import make_engine
from ibtpo.evaluation.sample import grow
from ibtpo.io import hardware
from ibtpo.prefix.trie import tries
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.training.trainer import TreeTrainer, _reward, _trajectories
from ibtpo.training.trl import GRPOConfig, GRPOTrainer
from ibtpo.tree import ReasoningTree, Segmenter

BRANCHED = Segmenter([b"", b"\n\n", *[b"a"] * 1022], eos_id=0)  # id 1 ends a step
TITLES = {"TRL": "TRL's GRPOTrainer", "plain": "ours, plain forward", "shared": "ours, shared prefixes"}
FIGURES = ["before the updates, s", "updates, s", "step, s", "step, CPU s"]
LOSS, BACKWARD, OPTIMISER = UPDATE = ["forward and loss", "backward", "optimiser"]
Trees = list[tuple[tuple[int, ...], ReasoningTree]]  # with the ids of their prompts


class Stopwatch:
    """Wall-clock seconds spent inside of chosen functions, by label; nested ones count to the inner label only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.open: list[str] = []
        self.since = time.perf_counter()

    def watch(self, owner, name: str, label: str | Callable[[], str]) -> None:
        """Replaces the function `name` of an object, a class or a module by one that is timed."""
        inner = getattr(owner, name)

        def timed(*args, **kwargs):
            self.turn()
            self.open.append(label if isinstance(label, str) else label())
            try:
                return inner(*args, **kwargs)
            finally:
                self.turn()
                self.open.pop()

        setattr(owner, name, timed)

    def turn(self) -> None:
        """Books the time since the last turn."""
        now = time.perf_counter()
        label = self.open[-1] if self.open else "rest"
        self.seconds[label] = self.seconds.get(label, 0.0) + now - self.since
        self.since = now

    def read(self) -> dict[str, float]:
        self.turn()
        seconds, self.seconds = self.seconds, {}
        return seconds


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        for title, model, trees, minibatches in cases(args, Path(folder)):
            trainers = {name: make(name, model, args.policy, trees, minibatches, Path(folder)) for name in TITLES}
            rows = []
            for repeat in range(args.repeats + 1):
                for name, trainer in trainers.items():
                    figures = measure(trainer, minibatches)
                    if repeat:  # the first one warms up
                        rows.append({"trainer": name, **figures})
            total, distinct = counts(trees)
            print(f"\n{title}: {total} tokens, {distinct} distinct (ratio {total / distinct:.2f})\n")
            print(table(pd.DataFrame(rows)), profile(pd.DataFrame(rows)), sep="\n\n", flush=True)
    where = f"{os.cpu_count()} x {hardware()['cpu']}, one thread, load {os.getloadavg()[1]:.1f}"
    print(f"\nMedian of {args.repeats} repeats (lowest to highest), {where}.")


def cases(args: argparse.Namespace, folder: Path):
    """(title, model folder, trees, minibatches) of each case."""
    config = load(args.preset)
    for sampler in args.samplers:
        trees = grown(config, args, sampler)
        title = f"Preset {args.preset}, {sampler}, {len(trees)} problems, {config.train.minibatches} minibatches"
        yield title, args.policy, trees, config.train.minibatches
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=8192, hidden_size=384, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=6, num_key_value_heads=2,
            head_dim=64, max_position_embeddings=2048, tie_word_embeddings=True, eos_token_id=0, pad_token_id=0,
        )
    )  # fmt: skip
    model.save_pretrained(folder / "mid")
    for count in args.trees:
        trees = [((2, 3) * 50, branched(seed)) for seed in range(count)]
        yield f"{model.num_parameters() / 1e6:.0f}M parameters, {count} tree(s) of 12", folder / "mid", trees, 1


def grown(config: Config, args: argparse.Namespace, sampler: str) -> Trees:
    """Trees of the base policy, as in a training iteration of the preset."""
    engine = make_engine(config.engine.kind, args.policy, config.sampling, config.engine)
    prompter = Prompter(AutoTokenizer.from_pretrained(args.policy), config.sampling.max_tokens)
    problems = load_problems(args.problems, config.train.problems_per_iteration)
    trees = grow(problems, prompter, engine, config.samplers[sampler], 0, config.engine.mode)
    engine.close()
    return [(prompter.encode(problem), tree) for problem, tree in zip(problems, trees, strict=True)]


def branched(seed: int, group: int = 12, initial: int = 4) -> ReasoningTree:
    """A tree of random tokens, steps of about 40: 4 responses of 300 to 1000 tokens, 8 continuations below random steps."""
    rng = np.random.default_rng(seed)
    tree = ReasoningTree(f"q{seed}", BRANCHED, 1000)
    for number in range(group):
        node = tree.root if number < initial else tree.nodes[rng.choice([n.index for n in tree.candidates(1)])]
        length = max(2, int(rng.integers(300, 1001)) - node.prefix_length)
        ids = np.where(rng.random(length) < 1 / 40, 1, rng.integers(2, 1024, length))
        ids[-1] = 0
        tree.add(node, ids.tolist(), [-1.0] * length, True, float(rng.random() < 0.5))
    return tree


def make(name: str, model: Path, tokenizer: str, trees: Trees, minibatches: int, folder: Path) -> GRPOTrainer:
    """A trainer on the same sequences as the others, ready to step."""
    group = len(trees[0][1].trajectories)
    settings = GRPOConfig(
        output_dir=str(folder / name), per_device_train_batch_size=len(trees) // minibatches * group, steps_per_generation=minibatches,
        gradient_accumulation_steps=1, num_generations=group, max_steps=1000, max_completion_length=1024, temperature=0.7, beta=0.001,
        loss_type="grpo", learning_rate=1e-5, use_cpu=not torch.cuda.is_available(), bf16=False, gradient_checkpointing=False,
        report_to=[], remove_unused_columns=False, shuffle_dataset=False,
    )  # fmt: skip
    prompts = {tree.uid: ids for ids, tree in trees}
    common = {
        "model": AutoModelForCausalLM.from_pretrained(model, dtype="float32"),
        "args": settings,
        "train_dataset": Dataset.from_list([{"uid": tree.uid, "prompt": ""} for _, tree in trees]),
        "processing_class": AutoTokenizer.from_pretrained(tokenizer),
    }
    if name == "TRL":
        os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
        trainer = GRPOTrainer(**common, reward_funcs=[_reward], rollout_func=_trajectories)
        trainer.batch, trainer.prompt_ids = [(tree.uid, tree) for _, tree in trees], prompts.get
    else:
        trainer = TreeTrainer(
            **common, grow=lambda uids, _: [tree for _, tree in trees], observe=lambda *_: None, prompt_ids=prompts.get,
            estimate=lambda trees, signals: estimate(trees, Advantage(name="ibtpo"), signals), prefix_sharing=name == "shared",
        )  # fmt: skip
    trainer.create_optimizer_and_scheduler(num_training_steps=1000)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return watched(trainer)


def step(trainer: GRPOTrainer, minibatches: int) -> None:
    """One training step, without the rollouts and without writing anything."""
    rows = [{"uid": row["uid"], "prompt": ""} for row in trainer.train_dataset for _ in range(trainer.num_generations)]
    for _ in range(minibatches):
        trainer.training_step(trainer.model, rows, None)
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()


def measure(trainer: GRPOTrainer, minibatches: int) -> dict[str, float]:
    trainer.clock.read()
    used = time.process_time()
    step(trainer, minibatches)
    used, seconds = time.process_time() - used, trainer.clock.read()
    return {
        "before the updates, s": sum(value for label, value in seconds.items() if label not in UPDATE),
        "updates, s": sum(seconds[label] for label in UPDATE),
        "step, s": sum(seconds.values()),
        "step, CPU s": used,
    } | seconds


def watched(trainer: GRPOTrainer) -> GRPOTrainer:
    clock = trainer.clock = Stopwatch()
    clock.watch(trainer, "_get_per_token_logps_and_entropies", lambda: LOSS if torch.is_grad_enabled() else "old and reference log-probs")
    clock.watch(trainer, "_generate_and_score_completions", "rest of TRL's preparation")
    clock.watch(trainer, "_compute_loss", LOSS)
    clock.watch(trainer.accelerator, "backward", BACKWARD)
    clock.watch(trainer.optimizer, "step", OPTIMISER)
    if isinstance(trainer, TreeTrainer):
        clock.watch(trainer, "estimate", "advantages")
    return trainer


def table(rows: pd.DataFrame) -> str:
    """Medians with their range, one line a trainer, and the speed-up over TRL's."""
    groups = rows.groupby("trainer", sort=False)
    low, middle, high = groups.min(), groups.median(), groups.max()
    lines = [["trainer", *FIGURES, "times faster than TRL (CPU)"], ["---"] * (len(FIGURES) + 2)]
    for name in middle.index:
        cells = [f"{middle.loc[name, f]:.2f} ({low.loc[name, f]:.2f} to {high.loc[name, f]:.2f})" for f in FIGURES]
        lines.append([TITLES[name], *cells, f"{middle.loc['TRL', 'step, CPU s'] / middle.loc[name, 'step, CPU s']:.1f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def profile(rows: pd.DataFrame) -> str:
    """Seconds of the parts of a step, one column a trainer."""
    parts = rows.groupby("trainer", sort=False).median().drop(columns=FIGURES).T.fillna(0.0)
    lines = [["part, s", *parts.columns], ["---"] * (len(parts.columns) + 1)]
    lines += [[label, *(f"{value:.2f}" for value in line)] for label, line in parts.iterrows()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def counts(trees: Trees) -> tuple[int, int]:
    """Tokens of all sequences, and those that a shared forward computes."""
    sequences = [np.array([*ids, *t.ids]) for ids, tree in trees for t in tree.trajectories]
    scored = [len(t.ids) for _, tree in trees for t in tree.trajectories]
    return sum(map(len, sequences)), sum(len(trie.ids) for trie in tries(sequences, scored, 10**9))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True, help="model folder")
    parser.add_argument("--problems", required=True, help="problem set (Parquet)")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--samplers", nargs="*", default=["ibtree12", "independent8"], help="of the preset's trees")
    parser.add_argument("--trees", type=int, nargs="*", default=[1], help="how many random trees of long responses")
    return parser.parse_args()


if __name__ == "__main__":
    main()
