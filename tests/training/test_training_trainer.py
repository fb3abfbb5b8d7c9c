"""What we rely on of TRL, and what we replace: order, advantages per token, clipping, the guard."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from ibtpo.training.trainer import TreeTrainer
from ibtpo.tree import ReasoningTree, Segmenter

G, MINIBATCHES, PROBLEMS = 4, 2, 4


def grown(uid: str, tokenizer, rng, rewards=None, empty: bool = False) -> ReasoningTree:
    """A tree of G random responses of 3 to 9 tokens; rewards alternate unless given."""
    tree = ReasoningTree(uid, Segmenter.from_tokenizer(tokenizer), 16)
    for number in range(G):
        length = 0 if empty and number == 0 else int(rng.integers(3, 10))
        ids = tuple(int(i) for i in rng.integers(10, len(tokenizer), max(length - 1, 0))) + (tokenizer.eos_token_id,) * bool(length)
        tree.add(tree.root, ids, (-1.0,) * len(ids), bool(length), float(number % 2) if rewards is None else rewards[number])
    return tree


def make(world, folder, estimate, rewards=None, empty=False, seen=None, **options) -> TreeTrainer:
    tokenizer = AutoTokenizer.from_pretrained(world.policy)
    rng = np.random.default_rng(0)
    seen = [] if seen is None else seen

    def grow(uids, iteration):
        seen.append((iteration, list(uids)))
        return [grown(uid, tokenizer, rng, rewards, empty) for uid in uids]

    settings = {
        "per_device_train_batch_size": PROBLEMS // MINIBATCHES * G,
        "steps_per_generation": MINIBATCHES,
        "max_steps": 2 * MINIBATCHES,
        "learning_rate": 1e-2,
        "loss_type": "grpo",
        "beta": 0.001,
        "logging_steps": MINIBATCHES,
        "gradient_accumulation_steps": 1,
    }
    return TreeTrainer(
        model=AutoModelForCausalLM.from_pretrained(world.policy, dtype="float32"),
        args=GRPOConfig(
            output_dir=str(folder),
            num_generations=G,
            max_completion_length=16,
            temperature=0.7,
            shuffle_dataset=False,
            remove_unused_columns=False,
            save_strategy="no",
            report_to=[],
            bf16=False,
            use_cpu=True,
            disable_tqdm=True,
            lr_scheduler_type="constant",
            **(settings | options),
        ),
        train_dataset=Dataset.from_list([{"uid": f"p{i}", "prompt": "1+1="} for i in range(2 * PROBLEMS)]),
        processing_class=tokenizer,
        grow=grow,
        estimate=estimate,
        observe=lambda *_: None,
        prompt_ids=lambda uid: (11, 12, 13),
    )


def position(tree):
    """An advantage that differs for every token, so that any mix-up shows."""
    base = int(tree.uid[1:]) * 1000
    return [base + 100.0 * number + np.arange(len(t.ids)) for number, t in enumerate(tree.trajectories)]


def test_batches_keep_the_order_of_the_problems_and_whole_trees(world, tmp_path):
    seen, batches = [], []
    trainer = make(world, tmp_path, position, seen=seen)
    original = trainer._compute_loss
    trainer._compute_loss = lambda model, inputs: (batches.append(inputs["advantages"][:, 0].clone()), original(model, inputs))[1] * 0
    trainer.train()
    assert seen == [(0, ["p0", "p1", "p2", "p3"]), (1, ["p4", "p5", "p6", "p7"])]
    expected = [1000.0 * problem + 100.0 * number for problem in range(2 * PROBLEMS) for number in range(G)]
    assert torch.cat(batches).tolist() == expected


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo"])
def test_the_loss_is_the_clipped_objective_with_one_advantage_a_token(world, tmp_path, loss_type):
    """Formula 7 with C.1's KL, computed here by hand from log-probabilities of a plain forward."""
    trainer = make(world, tmp_path, position, loss_type=loss_type, epsilon=0.2, epsilon_high=0.26)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"uid": f"p{i}", "prompt": ""} for i in range(PROBLEMS) for _ in range(G)])
    batch["old_per_token_logps"] += torch.randn(batch["old_per_token_logps"].shape, generator=torch.Generator().manual_seed(1)) * 0.3
    trainer.current_gradient_accumulation_steps = 1
    with torch.no_grad():
        loss = trainer._compute_loss(trainer.model, batch)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        logits = trainer.model(input_ids=ids).logits[:, 2:-1] / 0.7  # right padding needs no mask in a causal model
    now = torch.log_softmax(logits, -1).gather(2, batch["completion_ids"][..., None])[..., 0]
    mask, advantages = batch["completion_mask"].float(), batch["advantages"]
    rho = torch.exp(now - batch["old_per_token_logps"])
    delta = batch["ref_per_token_logps"] - now
    token = -torch.minimum(rho * advantages, rho.clamp(0.8, 1.26) * advantages) + 0.001 * (torch.exp(delta) - delta - 1)
    if loss_type == "grpo":
        expected = ((token * mask).sum(1) / mask.sum(1)).mean()
    elif loss_type == "bnpo":
        expected = (token * mask).sum() / mask.sum()
    else:  # dapo: tokens of the whole rollout batch, per minibatch
        expected = (token * mask).sum() / (mask.sum() / MINIBATCHES)
    assert (((rho < 0.8) & (advantages < 0)) | ((rho > 1.26) & (advantages > 0))).any(), "the case must clip somewhere"
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)


def test_two_minibatches_clip_and_one_never_does(world, tmp_path):
    """C.1's warning: with one optimiser step per rollout batch the ratio is 1, so clip-higher would equal GRPO."""

    def clipped(minibatches):
        trainer = make(
            world, tmp_path, lambda tree: [a / 1000 for a in position(tree)], steps_per_generation=minibatches,
            per_device_train_batch_size=PROBLEMS * G // minibatches, max_steps=minibatches, logging_steps=1,
        )  # fmt: skip
        trainer.train()
        return [row["clip_ratio/region_mean"] for row in trainer.state.log_history if "clip_ratio/region_mean" in row]

    assert clipped(1) == [0.0]
    first, second = clipped(2)
    assert first == 0.0 and second > 0.0


def test_micro_batches_do_not_change_the_update(world, tmp_path):
    """T23 for sequence-mean loss: the same weights whether a minibatch goes through in one piece or in two."""

    def weights(parts):
        trainer = make(
            world, tmp_path, lambda tree: [a / 1000 for a in position(tree)], gradient_accumulation_steps=parts,
            per_device_train_batch_size=PROBLEMS // MINIBATCHES * G // parts, steps_per_generation=MINIBATCHES * parts, max_steps=2,
            optim="sgd",
        )  # fmt: skip
        trainer.train()
        return torch.cat([value.flatten() for value in trainer.model.state_dict().values()])

    torch.testing.assert_close(weights(1), weights(2), rtol=0, atol=1e-6)


def test_a_completion_without_tokens_is_masked(world, tmp_path):
    trainer = make(world, tmp_path, position, empty=True)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"uid": f"p{i}", "prompt": ""} for i in range(PROBLEMS) for _ in range(G)])
    trained = (batch["completion_mask"] * batch.get("tool_mask", 1)).sum(1).reshape(PROBLEMS, G)
    assert (trained[:, 0] == 0).all() and (trained[:, 1:] >= 3).all()
    trainer.train()
    assert trainer.state.global_step == 2 * MINIBATCHES
    assert all(np.isfinite(row["loss"]) for row in trainer.state.log_history if "loss" in row)


def test_unscorable_rewards_do_not_poison_the_statistics(world, tmp_path):
    trainer = make(world, tmp_path, lambda tree: [np.zeros(len(t.ids)) for t in tree.trajectories], rewards=[1.0, 0.0, float("nan"), 1.0])
    trainer.train()
    assert [row["reward"] for row in trainer.state.log_history if "reward" in row] == pytest.approx([2 / 3] * 2)


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_batch(world, tmp_path):
    trainer = make(world, tmp_path, lambda tree: [np.full(len(t.ids), np.inf) for t in tree.trajectories])
    with pytest.raises(FloatingPointError, match="the batch is in"):
        trainer.train()
    (path,) = tmp_path.glob("not-finite-*.pt")
    assert "advantages" in torch.load(path)


def test_a_tree_of_the_wrong_size_is_refused(world, tmp_path):
    trainer = make(world, tmp_path, position)
    tokenizer = trainer.processing_class
    trainer.grow = lambda uids, iteration: [ReasoningTree(uid, Segmenter.from_tokenizer(tokenizer), 16) for uid in uids]
    with pytest.raises(ValueError, match="0 trajectories, the group size is 4"):
        trainer.train()


def test_t21_problems_with_the_same_text_are_groups_of_their_own(world, tmp_path):
    """One all right, one all wrong: grouped by text the advantages would be +-1, by uid they are exactly 0."""
    from functools import partial

    from ibtpo.advantages import ADVANTAGES
    from ibtpo.config.models import Advantage

    trainer = make(world, tmp_path, partial(ADVANTAGES["grpo"], spec=Advantage(name="grpo")))
    rng = np.random.default_rng(0)
    trainer.grow = lambda uids, iteration: [
        grown(uid, trainer.processing_class, rng, rewards=[float(number % 2)] * G) for number, uid in enumerate(uids)
    ]
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"uid": f"p{i}", "prompt": "1+1="} for i in range(PROBLEMS) for _ in range(G)])
    assert (batch["advantages"] == 0).all()


def test_t17_t18_log_probabilities_do_not_depend_on_padding_and_eos_is_trained_on(world, tmp_path):
    trainer = make(world, tmp_path, position)
    eos = trainer.processing_class.eos_token_id
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"uid": f"p{i}", "prompt": ""} for i in range(PROBLEMS) for _ in range(G)])
    assert (batch["completion_mask"][batch["completion_ids"] == eos].bool()).all()
    ids, mask = batch["completion_ids"][:1], batch["completion_mask"][:1]
    reference = None
    for pads in (0, 1, 7):
        prompt = torch.cat([torch.full((1, pads), trainer.processing_class.pad_token_id), torch.tensor([[11, 12, 13]])], dim=1)
        attention = torch.cat([torch.zeros(1, pads), torch.ones(1, 3), mask], dim=1).long()
        with torch.no_grad():
            logps, _, _ = trainer._get_per_token_logps_and_entropies(
                trainer.model, torch.cat([prompt, ids], dim=1), attention, ids.shape[1]
            )
        reference = logps if reference is None else reference
        torch.testing.assert_close(logps * mask, reference * mask, rtol=0, atol=1e-5)
