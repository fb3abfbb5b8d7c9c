"""One training run: a method, a seed, a folder. It resumes from its last whole checkpoint and never overwrites a finished run."""

from __future__ import annotations

import json
import math
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from peft import LoraConfig
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback, set_seed
from transformers.trainer_utils import rotate_checkpoints

from ibtpo import IbtpoError
from ibtpo.advantages import NEEDS_SIGNALS, estimate
from ibtpo.config.models import Config, Method
from ibtpo.config.resources import SPEED
from ibtpo.engines import make_engine
from ibtpo.evaluation.ib_score import Probe, measure
from ibtpo.evaluation.sample import grow, independent, spread
from ibtpo.io import append_jsonl, checksums, exclusive, provenance, saving, write_json
from ibtpo.progress import progress
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.rollout.scheduler import stable_seed
from ibtpo.training import ranks, trackers
from ibtpo.training.checkpoints import last_complete, seal
from ibtpo.training.metrics import json_ready, rewind, rollout_metrics
from ibtpo.training.trainer import TreeTrainer
from ibtpo.training.trl import GRPOConfig
from ibtpo.training.weights import policy_state_dict
from ibtpo.tree import ReasoningTree
from ibtpo.tree.statistics import scored_rewards

KEPT = 2  # checkpoints: should the newest be broken, the one before it is there


def main(config: Config, method: str, seed: int, policy_dir: str, data_dir: str, out_dir: str) -> None:
    """Trains `method` from `policy_dir` on `data_dir`/train.parquet.

    Writes run.json, metrics.jsonl, checkpoints/, final/ and at last done.json into `out_dir`. With train.processes > 1 it is called in
    each of them (training/launch.py). Raises IbtpoError for sizes that do not divide, another number of processes and a tracker that is
    not installed, and for a folder that holds another run; FileNotFoundError if data or policy are missing.
    """
    if method not in config.methods:
        raise IbtpoError(f"there is no method {method!r}; known: {', '.join(config.methods)}")
    if seed < 0:
        raise IbtpoError(f"the seed is {seed}: give 0 or more")
    out = Path(out_dir)
    record = {
        "name": method,
        "seed": seed,
        "method": config.methods[method].model_dump(mode="json"),
        "sampler": sampler_of(config, method).model_dump(mode="json"),
        "train": config.train.model_dump(mode="json"),
        "sampling": config.sampling.model_dump(mode="json"),
        "data": checksums(data_dir, "train.parquet", "validation.parquet"),
        "base": checksums(policy_dir, "done.json"),
    }
    if (out / "done.json").exists():
        _same(out, record)
        print(f"{out} is finished; nothing to do")
        return
    if config.engine.device == "cuda" and not torch.cuda.is_available():
        raise IbtpoError("engine.device is cuda but no GPU is visible: run on a node with one, or set engine.device: cpu")
    trackers.check(config.train.trackers)
    ranks.join(config.train.processes, cpu=config.engine.device == "cpu")
    out.mkdir(parents=True, exist_ok=True)
    with exclusive(out) if ranks.first() else nullcontext(), trackers.in_folder(out):
        if any(out.glob("checkpoints/checkpoint-*")):
            _same(out, record)
        elif ranks.first():  # of an earlier try that did not get to a checkpoint nothing is of use
            write_json(provenance(out.name.rsplit("-", 1)[-1], seed) | record, out / "run.json")
        session = Session(config, method, seed, Path(policy_dir), Path(data_dir), out)
        session.train()
        session.save()


def _same(out: Path, record: dict[str, Any]) -> None:
    """Raises IbtpoError if the folder holds another run, which would go on as something in between; what changes speed only may differ."""
    file = out / "run.json"
    begun = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if other := [name for name, value in record.items() if name in begun and _differ(begun[name], value)]:
        raise IbtpoError(f"{out} holds a run with other {', '.join(other)}: give another folder, or move that one away")


def _differ(before: Any, now: Any) -> bool:
    if not isinstance(now, dict):
        return before != now
    return any(before[key] != value for key, value in now.items() if key in before and key not in SPEED | {"title"})


def sampler_of(config: Config, method: str):
    return config.samplers[config.methods[method].sampler]


class Session(TrainerCallback):
    """What one run holds together: problems, engine, trainer and the log of metrics."""

    def __init__(self, config: Config, method: str, seed: int, policy_dir: Path, data_dir: Path, out: Path):
        self.config, self.out, self.seed = config, out, seed
        self.method: Method = config.methods[method]
        self.sampler = sampler_of(config, method)
        set_seed(seed)
        self.problems = {problem.uid: problem for problem in load_problems(data_dir / "train.parquet")}
        self.validation = load_problems(data_dir / "validation.parquet")
        options = ranks.engine_options(config.engine.kind)
        self.engine = make_engine(config.engine.kind, str(policy_dir), config.sampling, config.engine, pi=self.sampler.pi, **options)
        self.tokenizer = AutoTokenizer.from_pretrained(policy_dir)
        self.prompter = Prompter(self.tokenizer, config.sampling.max_tokens, self.method.reward, seed)
        self.examiner = Prompter(self.tokenizer, config.sampling.max_tokens)  # validation is judged by the verifier, whatever the reward
        self.synced = -1
        self.pending: dict[str, float] = {}
        advantage, regulariser = self.method.advantage, self.method.regulariser
        self.trainer = TreeTrainer(
            model=AutoModelForCausalLM.from_pretrained(policy_dir, dtype="float32"),
            args=arguments(config, self.method, self.sampler.group_size, seed, out),
            train_dataset=self.dataset(),
            processing_class=self.tokenizer,
            peft_config=lora(config.train.lora_rank),
            callbacks=[self],
            grow=self.grow,
            estimate=lambda trees, signals: estimate(trees, advantage, signals, ranks.gather),
            signals=advantage.name in NEEDS_SIGNALS,
            prefix_sharing=config.train.prefix_sharing,
            flex=config.train.prefix_kernel == "flex",
            entropy=regulariser.entropy,
            ibro=regulariser.ibro,
            observe=self.observe,
            prompt_ids=lambda uid: self.prompter.encode(self.problems[uid]),
        )
        self.trainer.remove_callback(PrinterCallback)  # our bar tells what matters, metrics.jsonl holds the rest

    def dataset(self) -> Dataset:
        """The problems in the order in which they are used: whole batches of a fresh permutation per epoch, fixed by the seed,
        or (train.order: given) as they lie in the file."""
        train, given = self.config.train, self.config.train.order == "given"
        size, uids = train.problems_per_iteration, list(self.problems) if given else sorted(self.problems)
        if len(uids) < size:
            raise IbtpoError(f"train.problems_per_iteration is {size} but there are {len(uids)} training problems")
        rng, order = np.random.default_rng(self.seed), []
        while len(order) < train.iterations * size:
            order += uids if given else [uids[i] for i in rng.permutation(len(uids))[: len(uids) // size * size]]
        # each process takes the next rows of a rollout batch: its part of every minibatch, so minibatches are the same for any number
        batches = np.array(order[: train.iterations * size]).reshape(train.iterations, train.minibatches, train.processes, -1)
        order = batches.swapaxes(1, 2).ravel().tolist()
        return Dataset.from_list([{"uid": uid, "prompt": self.problems[uid].prompt} for uid in order])

    def train(self) -> None:
        checkpoint = ranks.agree(lambda: last_complete(self.out / "checkpoints", self.config.train.parallel))
        start = int(checkpoint.name.split("-")[1]) // self.config.train.minibatches if checkpoint else -1
        if ranks.first():
            rewind(self.out / "metrics.jsonl", start)
        title = f"{self.method.title} seed {self.seed}"
        with progress(title, self.config.train.iterations, "iteration", shown=ranks.first()) as self.bar:
            self.bar.update(max(start, 0))
            self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        self.engine.close()

    def save(self) -> None:
        """final/ (plain weights and tokenizer), then done.json; each appears whole."""
        weights = {name: value.contiguous() for name, value in self.weights().items()}
        if not ranks.first():
            return
        temporary = self.out / "final.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        plain = model.get_base_model() if hasattr(model, "peft_config") else model
        with saving(temporary, SafetensorError):
            plain.save_pretrained(temporary, state_dict=weights)
            self.tokenizer.save_pretrained(temporary)
        shutil.rmtree(self.out / "final", ignore_errors=True)
        temporary.rename(self.out / "final")
        write_json({"iterations": self.trainer.iteration, "optimiser_steps": self.trainer.state.global_step}, self.out / "done.json")

    def weights(self) -> dict[str, torch.Tensor]:
        """What the policy is now, as a plain model."""
        return policy_state_dict(self.trainer.model_wrapped, self.trainer.accelerator)

    def sync(self) -> None:
        """New weights into the engine, once per optimiser step."""
        if self.synced != self.trainer.state.global_step:
            self.engine.load_weights(self.weights())
            self.synced = self.trainer.state.global_step

    def grow(self, uids: list[str], iteration: int) -> list[ReasoningTree]:
        self.sync()
        problems = [self.problems[uid] for uid in uids]
        seed = stable_seed("train", self.seed, iteration)
        trees = grow(problems, self.prompter, self.engine, self.sampler, seed, self.config.engine.mode)
        if not ranks.gather(np.array([len(scored_rewards(tree)) for tree in trees])).any() and trees:
            raise IbtpoError(
                f"no response of iteration {iteration} could be scored: see the messages above, and correct gold answers or verifier"
            )
        return trees

    def observe(self, iteration: int, trees: list[ReasoningTree], measured: dict[str, float]) -> None:
        beta = self.sampler.beta if self.sampler.name == "ibtree" else self.method.advantage.beta
        self.pending = rollout_metrics(trees, beta, ranks.gather) | measured
        self.updating = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **_):
        """One row per rollout batch: TRL's averages over its minibatches beside the statistics of the trees."""
        if not logs or "loss" not in logs:
            return
        kept = {"loss": "loss", "entropy": "entropy", "kl": "kl", "clip_ratio/region_mean": "clip_fraction", "grad_norm": "grad_norm"}
        broken = [name for name in kept if (value := logs.get(name, 0.0)) is None or not math.isfinite(value)]  # None: TRL's NaN
        if broken:  # before the checkpoint is written, so the last one is sound
            where = f"{', '.join(broken)} of iteration {self.trainer.iteration} not finite"
            raise FloatingPointError(f"{where}; the last checkpoint is sound, go on from it with a lower train.learning_rate")
        row = self.pending | {f"train/{ours}": logs[theirs] for theirs, ours in kept.items() if theirs in logs}
        self.record(row)
        self.bar.update()
        speed = row["train/tokens"] / row["seconds/rollout"]
        self.bar.set_postfix(reward=f"{row['train/reward']:.3f}", eff=f"{row['train/eff_rate']:.2f}", tokens_per_s=f"{speed:.0f}")

    def record(self, row: dict[str, float]) -> None:
        """A row of metrics.jsonl; trackers get it as well."""
        row = json_ready(row)
        if ranks.first():
            append_jsonl({"step": self.trainer.iteration, **row}, self.out / "metrics.jsonl")
        if self.config.train.trackers:
            known = {name: value for name, value in row.items() if value is not None}
            trainer = self.trainer  # its own on_log would also take back that the end of a step is to be logged
            trainer.callback_handler.call_event("on_log", trainer.args, trainer.state, trainer.control, logs=known)

    def on_train_begin(self, args, state, control, **_):
        if state.global_step == 0:
            self.validate()

    def on_step_end(self, args, state, control, **_):
        train, iteration = self.config.train, self.trainer.iteration
        whole = state.global_step % train.minibatches == 0
        self.pending["seconds/update"] = time.perf_counter() - self.updating
        if whole and (iteration % train.validate_every == 0 or iteration == train.iterations):
            self.validate()

    def on_save(self, args, state, control, **_):
        """Seals the new checkpoint and lets the two newest stay: by their number, as the trainer's own rotation asks the clock."""
        self.trainer.accelerator.wait_for_everyone()
        if ranks.first():
            seal(Path(args.output_dir) / f"checkpoint-{state.global_step}")
            rotate_checkpoints(args.output_dir, save_total_limit=KEPT)

    def validate(self) -> None:
        """avg@k on the held-out problems and the IB-Score probe; the same draws at every step and for every method of a seed.

        The ranks share the problems out among them.
        With `pi: temperature` the probe is in those probabilities too; the offline IB-Score compares such a method with the others.
        """
        self.sync()
        config, train, started = self.config, self.config.train, time.perf_counter()
        seed = stable_seed("validate", self.seed)
        problems = ranks.own(self.validation)
        trees = grow(problems, self.examiner, self.engine, independent(train.validation_samples), seed, config.engine.mode)
        rewards = ranks.gather(np.array([t.reward for tree in trees for t in tree.trajectories]))
        row = {"validation/accuracy": float(np.nanmean(rewards))}
        if train.probe_problems:
            problems = ranks.own(spread(self.validation, train.probe_problems))
            beta, seeds, draws = config.offline.beta, train.probe_seeds, train.probe_draws  # one estimator for all methods
            found = measure(problems, self.examiner, self.engine, config.engine.mode, seed, beta, seeds, draws)
            row |= {f"validation/{name}": value for name, value in vars(Probe.of(gather_object(found))).items()}
        row["seconds/validation"] = time.perf_counter() - started
        self.record(row)


def lora(rank: int) -> LoraConfig | None:
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM") if rank else None


def arguments(config: Config, method: Method, group_size: int, seed: int, out: Path) -> GRPOConfig:
    """TRL's arguments. A rollout batch has problems x G sequences; whole problems are dealt out to minibatches, those to processes."""
    train, regulariser = config.train, method.regulariser
    minibatch = train.problems_per_iteration // train.minibatches // train.processes * group_size
    micro_batch = train.micro_batch or minibatch
    if train.prefix_sharing and train.parallel != "deepspeed-zero3":  # a torn tree shares nothing, and the tries bound the memory
        most, trees = max(1, micro_batch // group_size), minibatch // group_size
        micro_batch = group_size * max(number for number in range(1, most + 1) if trees % number == 0)
    if minibatch % micro_batch:
        each = " in each process" if train.processes > 1 else ""
        raise IbtpoError(f"train.micro_batch = {micro_batch} must divide the {minibatch} sequences of a minibatch{each}")
    loss, advantage = method.loss or train.loss, method.advantage
    if loss == "bnpo" and micro_batch < minibatch:
        raise IbtpoError("the loss bnpo is a mean over the tokens of a minibatch, which train.micro_batch would cut: set that to 0")
    if train.mask_truncated and (advantage.whiten or advantage.name in NEEDS_SIGNALS):
        raise IbtpoError(f"train.mask_truncated: {advantage.name} takes statistics over all tokens of a response here: set it to false")
    return GRPOConfig(
        output_dir=str(out / "checkpoints"),
        max_steps=train.iterations * train.minibatches,
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=minibatch // micro_batch,
        steps_per_generation=train.minibatches * minibatch // micro_batch,
        num_generations=group_size,
        num_iterations=1,
        max_completion_length=config.sampling.max_tokens,
        temperature=config.sampling.temperature,
        learning_rate=train.learning_rate,
        lr_scheduler_type="constant_with_warmup" if train.schedule == "constant" else "cosine",
        warmup_steps=train.warmup_steps,
        weight_decay=train.weight_decay,
        max_grad_norm=train.max_grad_norm,
        loss_type=loss,
        mask_truncated_completions=train.mask_truncated,
        beta=regulariser.kl,
        epsilon=regulariser.clip,
        epsilon_high=regulariser.clip if regulariser.clip_high is None else regulariser.clip_high,
        shuffle_dataset=False,
        remove_unused_columns=False,
        logging_steps=train.minibatches,
        save_strategy="steps",
        save_steps=train.minibatches * train.checkpoint_every,
        seed=seed,
        data_seed=seed,
        disable_tqdm=True,
        report_to=list(train.trackers),
        run_name=out.name,
        ddp_find_unused_parameters=False,
        ddp_timeout=int(ranks.WAIT.total_seconds()),
        bf16=train.dtype == "bfloat16",
        use_cpu=config.engine.device == "cpu",
        gradient_checkpointing=train.gradient_checkpointing,
    )
