"""GRPOTrainer of TRL with trees: rollouts come from our scheduler, advantages are per token, common prefixes are computed once.

Paper: IB-TPO, "the method in seven formulas", 7: the clipped token-level objective of GRPO with KL, A_{i,t} replaced by A(s).
TRL computes that loss, its KL (k3; TRL does not clamp its exponent), its clipping and its metrics. We replace seven things, each pinned
by a contract test:
1. `rollout_func` hands over the trajectories of the trees grown for the batch;
2. the advantages (B,) of TRL become our (B, T);
3. minibatches are cut in the order of the problems, so a tree is never torn (TRL would shuffle sequences first);
4. log-probs and entropies come from the prefix-shared forward, which equals the plain one;
5. entropy bonus and IBRO (algorithms C.3, C.4), aggregated as the policy loss (TRL's entropy_coef always takes the mean over tokens);
6. a loss that is not finite stops the run and leaves the batch on disk;
7. with several processes the loss is that of one: bnpo's mean is over the tokens of all (tests/training/test_training_ranks.py).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from accelerate import DistributedType
from safetensors import SafetensorError

from ibtpo.advantages import Signals
from ibtpo.io import saving
from ibtpo.prefix import Batch, score, share_prefixes, token_limit, unsupported
from ibtpo.training.ranks import gather
from ibtpo.training.trl import GRPOTrainer, pad, split_tensor_dict
from ibtpo.tree import ReasoningTree

log = logging.getLogger(__name__)

Grow = Callable[[list[str], int], list[ReasoningTree]]
Estimate = Callable[[list[ReasoningTree], list[Signals] | None], list[np.ndarray]]


class TreeTrainer(GRPOTrainer):
    """TRL's trainer, with four functions (docs/trl.md has a whole script). Rewards are those of the trees: TRL's `reward_funcs` is taken.

    grow(uids, iteration): one scored tree per problem of the batch, sampled at args.temperature by the policy as it is now, so it gives the
    engine the weights first (`policy_state_dict`). estimate(trees, signals): the advantages of all their trajectories, in order; signals is
    None unless `signals`. prompt_ids(uid): the ids of a prompt. observe(iteration, trees, metrics): called once per rollout batch. With
    several processes they see the trees of this one only, the metrics are of all. Data rows need `uid` and `prompt`.

    prefix_sharing, flex: as train.prefix_sharing and train.prefix_kernel. entropy, ibro: weights of the regularisers. Raises ValueError if
    `signals` are asked for without a reference (args.beta = 0).
    """

    def __init__(
        self, *args, grow: Grow, estimate: Estimate, prompt_ids: Callable, observe: Callable = lambda *_: None,
        signals: bool = False, prefix_sharing: bool = True, flex: bool = False, entropy: float = 0.0, ibro: float = 0.0, **kwargs,
    ):  # fmt: skip
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # `rollout_func` may change: the contract tests watch it
        super().__init__(*args, reward_funcs=[_reward], rollout_func=_trajectories, **kwargs)
        if signals and self.beta == 0:
            raise ValueError(
                "the estimator needs the log-probs of a reference, and there is none without KL: set regulariser.kl (TRL's beta) > 0"
            )
        self.grow, self.estimate, self.observe, self.prompt_ids = grow, estimate, observe, prompt_ids
        self.needs_signals, self.weights = signals, (entropy, ibro)
        self.batch: list[tuple[str, ReasoningTree]] = []
        self.flex = flex
        self.sharing = prefix_sharing and self._can_share()
        self._scored: tuple[torch.Tensor, Batch] | None = None
        self._entropies: torch.Tensor | None = None

    @property
    def iteration(self) -> int:
        """Rollout batches that are finished."""
        return self.state.global_step * self.args.gradient_accumulation_steps // self.args.steps_per_generation

    def create_accelerator_and_postprocess(self):
        """As Trainer's, but FSDP casts no output: log-probs in half precision would make ratios and KL noise."""
        super().create_accelerator_and_postprocess()
        plugin = self.accelerator.state.fsdp_plugin if self.accelerator.distributed_type == DistributedType.FSDP else None
        if hasattr(getattr(plugin, "mixed_precision_policy", None), "output_dtype"):  # FSDP 2; the first has another way
            plugin.mixed_precision_policy = replace(plugin.mixed_precision_policy, output_dtype=None)

    def _can_share(self) -> bool:
        if self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            log.warning("prefixes are not shared: ZeRO 3 gathers weights call by call, and processes would make different numbers of calls")
            return False
        models = [self.accelerator.unwrap_model(model) for model in (self.model, self.ref_model) if model is not None]
        reasons = [unsupported(model) for model in models]
        if reason := next(filter(None, reasons), None):
            log.warning("prefixes are not shared, the plain forward is used: %s; set train.prefix_sharing: false", reason)
            return False
        for model in models:
            share_prefixes(model)
            if self.flex and getattr(model.config, "attention_dropout", 0):
                raise ValueError("FlexAttention knows no dropout: set train.prefix_kernel: sdpa, or the model's attention_dropout to 0")
        return True

    def _save_checkpoint(self, *args, **kwargs):
        with saving(self.args.output_dir, RuntimeError, SafetensorError):
            super()._save_checkpoint(*args, **kwargs)

    def _generate_and_score_completions(self, inputs):
        uids = self._groups([row["uid"] for row in inputs])
        started = time.perf_counter()
        trees = self.grow(uids, self.iteration)
        grown = time.perf_counter()
        for tree in trees:
            if len(tree.trajectories) != self.num_generations:
                raise ValueError(f"tree {tree.uid}: {len(tree.trajectories)} trajectories, the group size is {self.num_generations}")
        self.batch = list(zip(uids, trees, strict=True))
        self._scored = None
        output = super()._generate_and_score_completions(inputs)
        rows = self.estimate(trees, self._signals(output, trees) if self.needs_signals else None)
        metrics = {"train/advantage_std": float(np.std(gather(np.concatenate(rows)))), "train/shared_ratio": self._shared_ratio(output)}
        tensors = [torch.as_tensor(row, dtype=torch.float32) if len(row) else torch.zeros(1) for row in rows]
        output["advantages"] = pad(tensors, padding_value=0.0, padding_side="right").to(self.accelerator.device)
        seconds = gather(np.array([[grown - started, time.perf_counter() - grown]])).max(axis=0)
        metrics |= dict(zip(("seconds/rollout", "seconds/prepare"), seconds.tolist(), strict=True))
        self.observe(self.iteration, trees, metrics)
        return output

    def _groups(self, uids: list[str]) -> list[str]:
        """One uid per group of the rows. Raises ValueError if a group is torn: its other rows would be in another process."""
        size, number, count = self.num_generations, self.accelerator.process_index, self.accelerator.num_processes
        whole = uids[::size]
        if uids != [uid for uid in whole for _ in range(size)]:
            raise ValueError(
                f"process {number} of {count}: its {len(uids)} sequences are not whole groups of {size}; the rollout batch of "
                f"{self.args.generation_batch_size} must hold a multiple of {count} x {size} sequences, a group's rows side by side"
            )
        return whole

    def _shared_ratio(self, output: dict[str, torch.Tensor]) -> float:
        """Tokens of the rollout batch (prompts included, padding not) over those that its forward pass computes."""
        if not self.sharing:
            return 1.0
        batch = self._tries(*_whole(output), output["completion_ids"].shape[1]) if self._scored is None else self._scored[1]
        total, distinct = gather(np.array([[batch.total, batch.distinct]])).sum(axis=0).tolist()
        return total / max(1, distinct)

    def _tries(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, completion: int) -> Batch:
        """The batch as tries; policy and reference score the same tensor, one after the other."""
        if self._scored is None or self._scored[0] is not input_ids:
            batch = Batch(input_ids, attention_mask, completion, token_limit(self.model), self.flex)
            if self.accelerator.distributed_type == DistributedType.FSDP:
                batch.level(max(1, gather(np.array([len(batch.parts)])).max()))
            self._scored = input_ids, batch
        return self._scored[1]

    @torch.no_grad()
    def _signals(self, output: dict[str, torch.Tensor], trees: list[ReasoningTree]) -> list[Signals]:
        """log pi_old, log pi_ref and entropy of every token, at the sampling temperature."""
        length, size = output["completion_ids"].shape[1], self.args.per_device_train_batch_size
        logps, entropies, _ = self._get_per_token_logps_and_entropies(self.model, *_whole(output), length, size, compute_entropy=True)
        values = [tensor.double().cpu().numpy() for tensor in (logps, output["ref_per_token_logps"], entropies)]
        signals, row = [], 0
        for tree in trees:
            lengths = [len(t.ids) for t in tree.trajectories]
            signals.append(Signals(*([value[row + i, :n] for i, n in enumerate(lengths)] for value in values)))
            row += len(lengths)
        return signals

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, batch_size=None, compute_entropy=False, **kwargs
    ):
        if self.sharing:
            tries = self._tries(input_ids, attention_mask, logits_to_keep)
            with self.accelerator.autocast():
                logps, entropies = score(model, tries, self.temperature, compute_entropy, any(self.weights))
            if logps.dtype != torch.float32:  # ratios and KL are differences of these
                raise TypeError(f"log-probs arrive as {logps.dtype}: a wrapper around the model casts what it returns")
            result = logps, entropies, None
        else:
            result = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy, **kwargs
            )
        self._entropies = result[1]
        return result

    def _prepare_inputs(self, generation_batch):
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        every = self.args.steps_per_generation
        if self._step % every == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(batch, every)
        return self._buffered_inputs[self._step % every]

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        if any(self.weights):
            entropy, ibro = self.weights
            loss = loss - self._aggregate((entropy + ibro * inputs["advantages"]) * self._entropies, inputs)
        self._entropies = None
        if self.loss_type == "bnpo":
            loss = loss * self._share(inputs)
        if not torch.isfinite(loss):
            path = Path(self.args.output_dir) / f"not-finite-{self.state.global_step}.pt"
            torch.save(inputs, path)
            raise FloatingPointError(f"the loss of step {self.state.global_step} is {loss.item()}; the batch is in {path}")
        return loss

    def _aggregate(self, values: torch.Tensor, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Values of tokens (B, T) -> their share of the step's loss, exactly as TRL aggregates the policy loss."""
        mask, parts = _mask(inputs), self.current_gradient_accumulation_steps
        if self.loss_type == "grpo":  # mean over a sequence, then over sequences
            return ((values * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean() / parts
        if self.loss_type == "bnpo":  # mean over the tokens of the micro-batch
            return (values * mask).sum() / mask.sum().clamp(min=1) / parts
        if self.loss_type == "dapo":  # mean over the tokens of the rollout batch, in all processes
            count = inputs["num_items_in_batch"].clamp(min=1) / self.accelerator.num_processes
            return (values * mask).sum() / (count * parts / self.args.steps_per_generation)
        raise ValueError(f"no entropy regulariser for loss type {self.loss_type!r}; take grpo, bnpo or dapo")

    def _share(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Tokens of the micro-batch here over their mean in all processes: turns a mean over those here into one over all."""
        tokens = _mask(inputs).sum().clamp(min=1).float()
        return tokens * self.accelerator.num_processes / self.accelerator.reduce(tokens, reduction="sum")


def _mask(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Tokens that are trained on (B, T)."""
    return inputs["completion_mask"] * inputs.get("tool_mask", 1)


def _whole(output: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (B, P + C) of prompts and completions together."""
    return tuple(torch.cat([output[f"prompt_{name}"], output[f"completion_{name}"]], dim=1) for name in ("ids", "mask"))


def _trajectories(prompts: list, trainer: TreeTrainer) -> dict[str, list]:
    """TRL's rollout hook: the trajectories of the batch's trees, in the order of the data rows.

    A response without any token (an aborted request) is padded by one masked EOS, since TRL needs a token to look at.
    """
    pairs = [(uid, trajectory) for uid, tree in trainer.batch for trajectory in tree.trajectories]
    prompts = {uid: list(trainer.prompt_ids(uid)) for uid, _ in trainer.batch}
    eos = trainer.processing_class.eos_token_id
    return {
        "prompt_ids": [prompts[uid] for uid, _ in pairs],
        "completion_ids": [list(t.ids) or [eos] for _, t in pairs],
        "logprobs": [list(t.logprobs) or [0.0] for _, t in pairs],
        "env_mask": [[1] * len(t.ids) or [0] for _, t in pairs],
        "tree_reward": [t.reward for _, t in pairs],
    }


def _reward(completions, tree_reward, **_) -> list[float | None]:
    """The verifier's reward, for TRL's own statistics; unscorable is None there."""
    return [None if np.isnan(reward) else reward for reward in tree_reward]
