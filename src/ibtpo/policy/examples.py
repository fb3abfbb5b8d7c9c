"""Supervised examples as token ids, and the order in which training sees them."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedTokenizerBase

from ibtpo import IbtpoError
from ibtpo.rollout.chat import encode_prompt
from ibtpo.world import DELIMITER

IGNORED = -100  # label of a position outside the loss, as torch's and transformers' cross entropy have it


class Example(NamedTuple):
    ids: list[int]
    prompt_length: int


def solution_text(row: pd.Series) -> str:
    return DELIMITER.join(json.loads(row.solution))


def encode(frame: pd.DataFrame, tokenizer: PreTrainedTokenizerBase, max_positions: int) -> list[Example]:
    """Prompt, solution and EOS of each row. Raises IbtpoError naming the row if one is longer than the model's positions."""
    solutions = tokenizer([solution_text(row) for row in frame.itertuples()], add_special_tokens=False)["input_ids"]
    examples = []
    for row, solution in zip(frame.itertuples(), solutions, strict=True):
        prompt = encode_prompt(tokenizer, row.prompt)
        examples.append(Example([*prompt, *solution, tokenizer.eos_token_id], len(prompt)))
        if len(examples[-1].ids) > max_positions:
            raise IbtpoError(f"{row.uid} has {len(examples[-1].ids)} tokens but policy.max_positions is {max_positions}: raise it")
    return examples


def batch_indices(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch: random problems of like length (little padding), in random order; a rest smaller than a batch is left out.

    A function of its arguments alone, so a resumed run needs no state of a shuffler to see the same data.
    """
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(lengths))
    order = order[np.argsort(lengths[order], kind="stable")]
    batches = [order[start : start + batch_size] for start in range(0, len(order) - batch_size + 1, batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def collate(examples: list[Example], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels of a batch, each (batch, longest), padded on the right; labels are IGNORED on prompt and padding."""
    longest = max(len(example.ids) for example in examples)
    ids = torch.full((len(examples), longest), pad_id)
    labels = torch.full((len(examples), longest), IGNORED)
    for i, (tokens, prompt_length) in enumerate(examples):
        ids[i, : len(tokens)] = torch.tensor(tokens)
        labels[i, prompt_length : len(tokens)] = ids[i, prompt_length : len(tokens)]
    return ids, labels
