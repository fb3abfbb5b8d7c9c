"""GRPOTrainer of TRL with trees: rollouts come from our scheduler, advantages are per token.

Paper: IB-TPO, "the method in seven formulas", 7: the clipped token-level objective of GRPO with KL, A_{i,t} replaced by A(s).
TRL computes that loss, its KL, its clipping and its metrics. We replace four things, each pinned by a contract test:
1. `rollout_func` hands over the trajectories of the trees grown for the batch;
2. the advantages (B,) of TRL become our (B, T);
3. minibatches are cut in the order of the problems, so a tree is never torn (TRL would shuffle sequences first);
4. a loss that is not finite stops the run and leaves the batch on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from trl import GRPOTrainer
from trl.trainer.utils import pad, split_tensor_dict

from ibtpo.tree import ReasoningTree

Grow = Callable[[list[str], int], list[ReasoningTree]]
Estimate = Callable[[ReasoningTree], list[np.ndarray]]


class TreeTrainer(GRPOTrainer):
    """`grow(uids, iteration)` returns one scored tree per problem of the batch, `estimate(tree)` the advantages of its trajectories.

    `observe(iteration, trees, seconds)` is called once per rollout batch. Data rows need `uid` and `prompt`.
    """

    def __init__(self, *args, grow: Grow, estimate: Estimate, observe: Callable, prompt_ids: Callable, **kwargs):
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # `rollout_func` may change: the contract tests watch it
        super().__init__(*args, reward_funcs=[_reward], rollout_func=_trajectories, **kwargs)
        self.grow, self.estimate, self.observe, self.prompt_ids = grow, estimate, observe, prompt_ids
        self.batch: list[tuple[str, ReasoningTree]] = []

    @property
    def iteration(self) -> int:
        """Rollout batches that are finished."""
        return self.state.global_step * self.args.gradient_accumulation_steps // self.args.steps_per_generation

    def _generate_and_score_completions(self, inputs):
        uids = [row["uid"] for row in inputs[:: self.num_generations]]
        started = time.perf_counter()
        trees = self.grow(uids, self.iteration)
        grown = time.perf_counter()
        for tree in trees:
            if len(tree.trajectories) != self.num_generations:
                raise ValueError(f"tree {tree.uid}: {len(tree.trajectories)} trajectories, the group size is {self.num_generations}")
        self.batch = list(zip(uids, trees, strict=True))
        output = super()._generate_and_score_completions(inputs)
        rows = [torch.as_tensor(row, dtype=torch.float32) for tree in trees for row in self.estimate(tree)]
        rows = [row if len(row) else torch.zeros(1) for row in rows]
        output["advantages"] = pad(rows, padding_value=0.0, padding_side="right").to(self.accelerator.device)
        self.observe(self.iteration, trees, {"rollout": grown - started, "prepare": time.perf_counter() - grown})
        return output

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
        if not torch.isfinite(loss):
            path = Path(self.args.output_dir) / f"not-finite-{self.state.global_step}.pt"
            torch.save(inputs, path)
            raise FloatingPointError(f"the loss of step {self.state.global_step} is {loss.item()}; the batch is in {path}")
        return loss


def _trajectories(prompts: list, trainer: TreeTrainer) -> dict[str, list]:
    """TRL's rollout hook: the trajectories of the batch's trees, in the order of the data rows.

    A response without any token (an aborted request) is padded by one masked EOS, since TRL needs a token to look at.
    """
    pairs = [(uid, trajectory) for uid, tree in trainer.batch for trajectory in tree.trajectories]
    eos = trainer.processing_class.eos_token_id
    return {
        "prompt_ids": [list(trainer.prompt_ids(uid)) for uid, _ in pairs],
        "completion_ids": [list(t.ids) or [eos] for _, t in pairs],
        "logprobs": [list(t.logprobs) or [0.0] for _, t in pairs],
        "env_mask": [[1] * len(t.ids) or [0] for _, t in pairs],
        "tree_reward": [t.reward for _, t in pairs],
    }


def _reward(completions, tree_reward, **_) -> list[float | None]:
    """The verifier's reward, for TRL's own statistics; unscorable is None there."""
    return [None if np.isnan(reward) else reward for reward in tree_reward]
