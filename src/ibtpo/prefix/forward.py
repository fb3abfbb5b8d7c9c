"""Log-probabilities and entropies of a batch, each distinct prefix computed once.

[OURS]; an optimisation that changes nothing: values equal those of the plain forward up to rounding (tests/prefix). The log-prob of
token t is log_softmax(logits of its parent / temperature)[t], its entropy that of the parent's distribution over the whole vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from types import MethodType

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from ibtpo.prefix.attention import NAME, Flex, Gather, Sharing
from ibtpo.prefix.trie import Trie, tries

FAMILIES = ("llama", "qwen2", "qwen3")
MEMORY = 2**31  # bytes of activations on a CPU
LOGITS = 2**27  # logits at once


def unsupported(model) -> str | None:
    """Why prefixes cannot be shared in this model, in words; None if they can."""
    base = _plain(model)
    config = getattr(base, "config", None)
    if getattr(config, "model_type", None) not in FAMILIES or not hasattr(base, "get_output_embeddings"):
        return f"{type(base).__name__} is none of {', '.join(FAMILIES)}"
    if set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return "some of its layers attend to a sliding window"
    if config._attn_implementation not in ("sdpa", NAME):
        return f"its attention implementation is {config._attn_implementation}, not sdpa"
    return None


def share_prefixes(model) -> None:
    """Makes the model able to run on tries; its other forwards stay what they are. Raises ValueError if `unsupported`."""
    if reason := unsupported(model):
        raise ValueError(f"prefixes cannot be shared: {reason}. Set train.prefix_sharing: false")
    base = _plain(model)
    base.set_attn_implementation(NAME)
    own = base.__dict__.get("forward")  # of the object, such as TRL's

    @wraps(type(base).forward)  # generation looks at its arguments
    def forward(self, *args, tries: tuple | None = None, **kwargs):
        if tries is not None:
            return _tries(self, *tries)
        return own(*args, **kwargs) if own else type(self).forward(self, *args, **kwargs)

    base.forward = MethodType(forward, base)


def token_limit(model) -> int:
    """Tokens of a trie whose float32 activations fit in memory: about 16 vectors of the hidden and 4 of the inner size a layer."""
    base = _plain(model)
    config, memory = base.config, MEMORY
    if base.device.type == "cuda":  # half of what weights, optimiser and an engine beside them leave
        cached = torch.cuda.memory_reserved(base.device) - torch.cuda.memory_allocated(base.device)
        memory = (torch.cuda.mem_get_info(base.device)[0] + cached) // 2
    return max(1, memory // 4 // (config.num_hidden_layers * (16 * config.hidden_size + 4 * config.intermediate_size)))


@dataclass(frozen=True)
class Part:
    """A trie on the device: ids, positions (1, N); parents, labels (E,)."""

    ids: torch.Tensor
    positions: torch.Tensor
    attention: Sharing
    parents: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def of(cls, trie: Trie, device: torch.device, flex: bool) -> Part:
        ids, positions, parents, labels = (
            torch.from_numpy(array).to(device) for array in (trie.ids, trie.positions, trie.parents, trie.labels)
        )
        attention = Flex.of(trie, device) if flex else [Gather.of(bucket, device) for bucket in trie.buckets]
        return cls(ids[None], positions[None], attention, parents, labels)


class Batch:
    """The tries of a batch. total, distinct: tokens that a plain and a shared forward compute (padding left out)."""

    def __init__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, completion: int, limit: int, flex: bool = False):
        """input_ids, attention_mask (B, P + C), padded anywhere; the last `completion` = C columns are scored; limit: tokens of a trie.

        flex: attention by FlexAttention, which has gradients on a GPU only.
        """
        ids, mask = input_ids.cpu().numpy(), attention_mask.cpu().numpy().astype(bool)
        sequences = [row[keep] for row, keep in zip(ids, mask, strict=True)]
        target = mask[:, mask.shape[1] - completion :]
        edges, found = np.zeros(target.shape, dtype=np.int64), 0
        self.parts, self.total, self.distinct = [], int(mask.sum()), 0
        for trie in tries(sequences, target.sum(1).tolist(), limit, bucketed=not flex):
            for row, numbers in zip(trie.rows, trie.edges, strict=True):
                edges[row, target[row]] = found + numbers
            found += len(trie.parents)
            self.distinct += len(trie.ids)
            self.parts.append(Part.of(trie, input_ids.device, flex))
        self._edges, self._target = (torch.from_numpy(array).to(input_ids.device) for array in (edges, target))
        self._flex, self.levelled = flex, False

    def level(self, parts: int) -> None:
        """Adds tries of two tokens, whose values nobody reads, until there are `parts`.

        Shards of a model are gathered for every trie, by all processes together: each must have as many. The head is called more than once
        for each: FSDP treats a module that is called several times in a pass otherwise than one that is called once.
        """
        self.levelled = True
        missing = parts - len(self.parts)
        if missing > 0:
            (trie,) = tries([np.zeros(2, dtype=np.int64)], [1], 2, bucketed=not self._flex)
            self.parts += missing * [Part.of(trie, self._edges.device, self._flex)]

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the edges (E,) -> (B, C), 0 at padding."""
        if not len(values):
            return values.new_zeros(self._edges.shape)
        return values.index_select(0, self._edges.flatten()).view_as(self._edges).masked_fill(~self._target, 0.0)


def score(
    model, batch: Batch, temperature: float, entropy: bool = True, entropy_gradient: bool = False
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Log-probs and, if asked for, entropies (nats) of the scored tokens, at the sampling temperature: (B, C) in float32, 0 at padding.

    The entropies carry a gradient only if `entropy_gradient`. A batch of several tries keeps the activations of none: they are computed
    again in the backward pass. The model may be wrapped: its own call is what starts DDP, FSDP and DeepSpeed.
    """
    return model(tries=(batch, temperature, entropy, entropy_gradient))


def _tries(base, batch: Batch, temperature: float, entropy: bool, entropy_gradient: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What `score` returns, inside the forward of the plain model."""
    least = 2 if batch.levelled else 1
    results = _each(_score, [(base, part, temperature, entropy, entropy_gradient, least) for part in batch.parts])
    if not results:  # no token is scored; the loss still hangs on the weights, so that a step goes on
        weights = (weight.sum() for weight in base.parameters() if weight.requires_grad)
        nothing = batch.spread(torch.zeros(0, device=base.device)) + 0 * sum(weights)
        return nothing, nothing if entropy else None
    return tuple(batch.spread(torch.cat(values)) if values[0] is not None else None for values in zip(*results, strict=True))


def _score(base, part: Part, temperature: float, entropy: bool, entropy_gradient: bool, least: int):
    """Log-prob and entropy of each edge (E,); least: calls of the head."""
    whole = torch.zeros(1, 1, 1, 1, device=part.ids.device)  # a 4D mask passes unchanged; without one a mask of (N, N) would be made
    output = base.base_model(part.ids, attention_mask=whole, position_ids=part.positions, use_cache=False, prefix=part.attention)
    hidden, head = output.last_hidden_state[0], base.get_output_embeddings()
    size = max(1, LOGITS // base.config.vocab_size)
    chunks = list(zip(part.parents.split(size), part.labels.split(size), strict=True))
    chunks += (least - len(chunks)) * [(part.parents[:0], part.labels[:0])]
    results = _each(_edges, [(head, hidden, *chunk, temperature, entropy, entropy_gradient) for chunk in chunks])
    return tuple(torch.cat(values) if values[0] is not None else None for values in zip(*results, strict=True))


def _edges(head, hidden, parents, labels, temperature: float, entropy: bool, entropy_gradient: bool):
    logits = head(hidden.index_select(0, parents)).float() / temperature
    logps = torch.log_softmax(logits, dim=-1)
    chosen = logps.gather(1, labels[:, None])[:, 0]
    if not entropy:
        return chosen, None
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        return chosen, -(logps.exp() * logps).sum(-1)


def _each(function, calls: list[tuple]) -> list[tuple]:
    """The results of all calls; with more than one, none keeps its activations for the backward pass."""
    if len(calls) == 1 or not torch.is_grad_enabled():
        return [function(*call) for call in calls]
    return [checkpoint(function, *call, use_reentrant=False) for call in calls]


def _plain(model):
    """The model itself, where an adapter is wrapped around it."""
    return model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model
