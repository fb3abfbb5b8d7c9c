"""Responses without an end (T17): they count in the loss, or (train.mask_truncated) not at all; an end that is there is trained on."""

from __future__ import annotations

import pytest
import torch
from test_training_trainer import MINIBATCHES, PROBLEMS, G, make, position, prepared

from ibtpo.tree import ReasoningTree, Segmenter


def cut(uid, tokenizer, rng) -> ReasoningTree:
    """By turns a response of four tokens with EOS, and one that was cut after six."""
    tree = ReasoningTree(uid, Segmenter.from_tokenizer(tokenizer), 6)
    for number in range(G):
        ended = number % 2 == 0
        ids = (*rng.integers(10, len(tokenizer), 3 if ended else 6).tolist(), *[tokenizer.eos_token_id] * ended)
        tree.add(tree.root, ids, (-1.0,) * len(ids), ended, float(ended))
    return tree


@pytest.mark.parametrize("masked, tokens", [(False, 10), (True, 4)])
def test_t17_the_denominator_counts_what_the_numerator_holds(world, tmp_path, masked, tokens):
    trainer = make(world, tmp_path, position, tree=cut, loss_type="dapo", beta=0.0, mask_truncated_completions=masked)
    batch = prepared(trainer)
    mask = batch["completion_mask"] * batch.get("tool_mask", 1)
    assert mask.sum() == batch["num_items_in_batch"] == tokens * PROBLEMS * G // 2
    assert mask[0].sum() == 4, "three tokens and EOS"
    loss = trainer._compute_loss(trainer.model, batch)  # the ratio is 1
    torch.testing.assert_close(loss, -(batch["advantages"] * mask).sum() / (mask.sum() / MINIBATCHES))
