"""What we rely on of TRL, and what we replace: order, advantages per token, clipping, the guard."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from accelerate import DistributedType
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer

from ibtpo.prefix import Batch
from ibtpo.training import trainer as module
from ibtpo.training.trainer import TreeTrainer
from ibtpo.training.trl import GRPOConfig
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


def bushy(uid: str, tokenizer, rng) -> ReasoningTree:
    """A tree of G responses that go on from each other: shared prefixes and a copy."""
    tree = ReasoningTree(uid, Segmenter.from_tokenizer(tokenizer), 16)
    trunk = tuple(int(i) for i in rng.integers(10, len(tokenizer), 8))
    for number, shared in enumerate((8, 6, 3, 8)):
        ids = trunk[:shared] + tuple(int(i) for i in rng.integers(10, len(tokenizer), 8 - shared)) + (tokenizer.eos_token_id,)
        tree.add(tree.root, ids, (-1.0,) * len(ids), True, float(number % 2))
    return tree


def prepared(trainer: TreeTrainer) -> dict:
    """A rollout batch, ready for the loss."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer._generate_and_score_completions([{"uid": f"p{i}", "prompt": ""} for i in range(PROBLEMS) for _ in range(G)])


def by_hand(model, batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs and entropies (B, T) of a plain forward, at the sampling temperature; the prompts have 3 tokens."""
    logits = model(input_ids=torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)).logits[:, 2:-1] / 0.7
    logps = torch.log_softmax(logits, -1)  # right padding needs no mask in a causal model
    return logps.gather(2, batch["completion_ids"][..., None])[..., 0], -(logps.exp() * logps).sum(-1)


def aggregate(loss_type: str, token: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """C.1's aggregations; dapo takes the tokens of the whole rollout batch, per minibatch."""
    if loss_type == "grpo":
        return ((token * mask).sum(1) / mask.sum(1)).mean()
    return (token * mask).sum() / (mask.sum() if loss_type == "bnpo" else mask.sum() / MINIBATCHES)


def make(world, folder, estimate, rewards=None, empty=False, seen=None, tree=None, ours=None, **options) -> TreeTrainer:
    """A trainer on random trees (or `tree(uid, tokenizer, rng)`); `ours` are options of TreeTrainer, the others of TRL."""
    tokenizer = AutoTokenizer.from_pretrained(world.policy)
    rng = np.random.default_rng(0)
    seen = [] if seen is None else seen

    def grow(uids, iteration):
        seen.append((iteration, list(uids)))
        return [tree(uid, tokenizer, rng) if tree else grown(uid, tokenizer, rng, rewards, empty) for uid in uids]

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
        estimate=lambda trees, signals: [row for tree in trees for row in estimate(tree)],
        prompt_ids=lambda uid: (11, 12, 13),
        **({"observe": lambda *_: None} | (ours or {})),
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
    batch = prepared(trainer)
    batch["old_per_token_logps"] += torch.randn(batch["old_per_token_logps"].shape, generator=torch.Generator().manual_seed(1)) * 0.3
    with torch.no_grad():
        loss = trainer._compute_loss(trainer.model, batch)
        now, _ = by_hand(trainer.model, batch)
    mask, advantages = batch["completion_mask"].float(), batch["advantages"]
    rho = torch.exp(now - batch["old_per_token_logps"])
    delta = batch["ref_per_token_logps"] - now
    token = -torch.minimum(rho * advantages, rho.clamp(0.8, 1.26) * advantages) + 0.001 * (torch.exp(delta) - delta - 1)
    assert (((rho < 0.8) & (advantages < 0)) | ((rho > 1.26) & (advantages > 0))).any(), "the case must clip somewhere"
    torch.testing.assert_close(loss, aggregate(loss_type, token, mask), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weights", [{"entropy": 0.3}, {"ibro": 0.2}, {"entropy": 0.3, "ibro": 0.2}])
@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo"])
def test_entropy_bonus_and_ibro_are_aggregated_as_the_policy_loss(world, tmp_path, loss_type, sharing, weights):
    """C.3: L - omega agg(H); C.4: L - omega_IB agg(A H), A without gradient. Loss and gradient, by hand."""
    few = lambda tree: [(values - 1000 * int(tree.uid[1:])) / 100 - 1.5 for values in position(tree)]  # noqa: E731  both signs
    trainer = make(world, tmp_path, few, loss_type=loss_type, tree=bushy, ours={"prefix_sharing": sharing, **weights})
    batch = prepared(trainer)
    batch["tool_mask"][1, 2] = 0  # a token that is left out
    mask = (batch["completion_mask"] * batch["tool_mask"]).float()
    now, entropy = by_hand(trainer.model, batch)
    delta = batch["ref_per_token_logps"] - now
    rho = torch.exp(now - batch["old_per_token_logps"])
    token = -rho * batch["advantages"] + 0.001 * (torch.exp(delta) - delta - 1)
    token = token - (weights.get("entropy", 0) + weights.get("ibro", 0) * batch["advantages"]) * entropy
    if loss_type == "dapo":
        batch["num_items_in_batch"] = mask.sum()
    expected = aggregate(loss_type, token, mask)
    found = trainer._compute_loss(trainer.model, batch)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    parameters = list(trainer.model.parameters())
    for ours, theirs in zip(torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters), strict=True):
        assert (ours - theirs).norm() <= 1e-3 * theirs.norm() + 1e-6


def test_entropy_regularisers_scale_with_gradient_accumulation(world, tmp_path):
    """Two micro-batches of a minibatch add up to its loss, as TRL's own terms do."""
    trainer = make(world, tmp_path, position, ours={"entropy": 0.3, "ibro": 0.01})
    batch = prepared(trainer)
    whole = trainer._compute_loss(trainer.model, batch).item()
    trainer.current_gradient_accumulation_steps = 2
    halves = [{key: value[part] if value.ndim else value for key, value in batch.items()} for part in (slice(0, 8), slice(8, 16))]
    assert sum(trainer._compute_loss(trainer.model, half).item() for half in halves) == pytest.approx(whole, rel=1e-5)


def test_trls_own_entropy_coefficient_is_another_aggregation(world, tmp_path):
    """Why we have a line of our own: with the sequence mean, TRL's bonus stays the mean over tokens."""
    zero = lambda tree: [np.zeros(len(t.ids)) for t in tree.trajectories]  # noqa: E731
    losses = []
    for options in ({"entropy_coef": 0.3, "beta": 0.0}, {"ours": {"entropy": 0.3}, "beta": 0.0}):
        trainer = make(world, tmp_path, zero, **options)
        batch = prepared(trainer)
        losses.append(trainer._compute_loss(trainer.model, batch).item())
    mask, entropy = batch["completion_mask"].float(), by_hand(trainer.model, batch)[1].detach()
    assert losses == pytest.approx([-0.3 * float(aggregate(kind, entropy, mask)) for kind in ("bnpo", "grpo")], rel=1e-4)
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_a_regulariser_needs_a_known_aggregation(world, tmp_path):
    trainer = make(world, tmp_path, position, loss_type="dr_grpo", ours={"entropy": 0.1})
    with pytest.raises(ValueError, match="no entropy regulariser for loss type 'dr_grpo'"):
        trainer._compute_loss(trainer.model, prepared(trainer))


@pytest.mark.parametrize("adapter", [False, True])
def test_shared_prefixes_change_neither_log_probs_nor_updates(world, tmp_path, adapter):
    """Old and reference log-probs, metrics and weights after two iterations, beside TRL's own forward."""
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM") if adapter else None
    seen = []
    for sharing in (True, False):
        torch.manual_seed(0)
        ours = {"prefix_sharing": sharing, "peft_config": lora}
        trainer = make(world, tmp_path, lambda tree: [a / 1000 for a in position(tree)], tree=bushy, ours=ours, optim="sgd")
        keep, batches = trainer.observe, []
        trainer.observe = lambda *args, keep=keep, batches=batches: batches.append(args[2])
        trainer.train()
        weights = torch.cat([value.flatten() for value in trainer.model.state_dict().values()])
        logs = [{k: v for k, v in row.items() if k in ("loss", "kl", "entropy", "grad_norm")} for row in trainer.state.log_history]
        seen.append((prepared(trainer), weights, [row for row in logs if "loss" in row], batches))
    (shared, *ours, mine), (plain, *theirs, other) = seen
    for key in ("old_per_token_logps", "ref_per_token_logps"):
        torch.testing.assert_close(shared[key], plain[key], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert mine[0]["train/shared_ratio"] > 2 and other[0]["train/shared_ratio"] == 1
    deviation = np.std(
        np.concatenate(
            [a / 1000 for uid in range(PROBLEMS) for a in position(bushy(f"p{uid}", trainer.processing_class, np.random.default_rng(0)))]
        )
    )
    assert mine[0]["train/advantage_std"] == pytest.approx(deviation) == pytest.approx(other[0]["train/advantage_std"])


def test_a_rollout_batch_is_sorted_into_tries_once_for_policy_and_reference(world, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(module, "Batch", lambda *args: made.append(Batch(*args)) or made[-1])
    trainer = make(world, tmp_path, position)
    prepared(trainer)
    assert len(made) == 1


def test_the_shared_ratio_is_known_without_any_pass_before_the_updates(world, tmp_path):
    """One minibatch and no KL: TRL needs neither old nor reference log-probs."""
    seen = []
    whole = {"beta": 0.0, "steps_per_generation": 1, "per_device_train_batch_size": PROBLEMS * G}
    prepared(make(world, tmp_path, position, tree=bushy, ours={"observe": lambda *args: seen.append(args[2])}, **whole))
    assert seen[0]["train/shared_ratio"] > 2


def test_a_model_that_cannot_share_prefixes_takes_the_plain_forward(world, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "unsupported", lambda model: "it is odd")
    monkeypatch.setattr(module, "Batch", None)  # fails if it is used
    trainer = make(world, tmp_path, position)
    assert not trainer.sharing
    caplog.clear()
    assert trainer._can_share() is False
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "prefixes are not shared, the plain forward is used: it is odd; set train.prefix_sharing: false"
    trainer.train()


def test_what_shares_no_prefixes_and_what_flex_cannot(world, tmp_path, caplog):
    trainer = make(world, tmp_path, position)
    trainer.flex, trainer.model.config.attention_dropout = True, 0.1
    with pytest.raises(ValueError, match=r"FlexAttention knows no dropout: set train\.prefix_kernel: sdpa"):
        trainer._can_share()
    trainer.accelerator.state._shared_state["distributed_type"], before = DistributedType.DEEPSPEED, trainer.accelerator.distributed_type
    try:
        assert not trainer._can_share() and "ZeRO 3" in caplog.text
    finally:
        trainer.accelerator.state._shared_state["distributed_type"] = before


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize("minibatches", [1, 2])
def test_signals_are_those_of_the_policy_and_its_reference(world, tmp_path, sharing, minibatches):
    """ERPO's inputs, token by token; with one minibatch TRL itself computes no old log-probs."""
    seen = []
    options = {"steps_per_generation": minibatches, "per_device_train_batch_size": PROBLEMS * G // minibatches}
    trainer = make(world, tmp_path, position, empty=True, ours={"signals": True, "prefix_sharing": sharing}, **options)
    estimate = trainer.estimate
    trainer.estimate = lambda trees, signals: seen.append((trees, signals)) or estimate(trees, signals)
    with torch.no_grad():
        for parameter in trainer.model.parameters():  # the policy leaves its reference
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)), alpha=0.01)
        batch = prepared(trainer)
        expected = [by_hand(trainer.model, batch)[0], by_hand(trainer.ref_model, batch)[0], by_hand(trainer.model, batch)[1]]
    ((trees, signals),) = seen
    assert len(signals) == len(trees) == PROBLEMS
    for number, (tree, of_tree) in enumerate(zip(trees, signals, strict=True)):
        for values, exact in zip((of_tree.logprobs, of_tree.reference, of_tree.entropy), expected, strict=True):
            assert [row.shape for row in values] == [(len(t.ids),) for t in tree.trajectories]
            for i, row in enumerate(values):
                np.testing.assert_allclose(row, exact[number * G + i, : len(row)].numpy(), rtol=1e-4, atol=1e-5)
    assert np.abs(signals[1].logprobs[1] - signals[1].reference[1]).max() > 1e-3


def test_signals_without_a_reference_are_refused(world, tmp_path):
    with pytest.raises(ValueError, match=r"set regulariser\.kl"):
        make(world, tmp_path, position, beta=0.0, ours={"signals": True})


def test_the_estimator_gets_no_signals_it_did_not_ask_for(world, tmp_path):
    trainer = make(world, tmp_path, position)
    estimate, seen = trainer.estimate, []
    trainer.estimate = lambda trees, signals: seen.append(signals) or estimate(trees, signals)
    prepared(trainer)
    assert seen == [None]


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
    batch = prepared(trainer)
    trained = (batch["completion_mask"] * batch.get("tool_mask", 1)).sum(1).reshape(PROBLEMS, G)
    assert (trained[:, 0] == 0).all() and (trained[:, 1:] >= 3).all()
    trainer.train()
    assert trainer.state.global_step == 2 * MINIBATCHES
    assert all(np.isfinite(row["loss"]) for row in trainer.state.log_history if "loss" in row)


def test_unscorable_rewards_do_not_poison_the_statistics(world, tmp_path):
    trainer = make(world, tmp_path, lambda tree: [np.zeros(len(t.ids)) for t in tree.trajectories], rewards=[1.0, 0.0, float("nan"), 1.0])
    trainer.train()
    assert [row["reward"] for row in trainer.state.log_history if "reward" in row] == pytest.approx([2 / 3] * 2)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the std of infinite advantages
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
    from ibtpo.config.methods import Advantage

    trainer = make(world, tmp_path, partial(ADVANTAGES["grpo"], spec=Advantage(name="grpo")))
    rng = np.random.default_rng(0)
    trainer.grow = lambda uids, iteration: [
        grown(uid, trainer.processing_class, rng, rewards=[float(number % 2)] * G) for number, uid in enumerate(uids)
    ]
    batch = prepared(trainer)
    assert (batch["advantages"] == 0).all()


def test_t17_t18_log_probabilities_do_not_depend_on_padding_and_eos_is_trained_on(world, tmp_path):
    trainer = make(world, tmp_path, position)
    eos = trainer.processing_class.eos_token_id
    batch = prepared(trainer)
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
