"""Keys and values of the transformers engine: those of the running requests, and prefixes that later ones may share."""

from __future__ import annotations

from collections import OrderedDict
from itertools import accumulate

import torch
from transformers import Cache, PreTrainedConfig


class RowCache(Cache):
    """Keys and values of each layer, (2, rows, heads, capacity, head size); the running requests are the first rows.

    A forward over the running rows writes one token each, at its own position, and looks at the view [:running] up to the capacity, which
    `fit` keeps close to the longest row: memory without gaps is read several times faster, worth more than what is read in vain.
    """

    def __init__(self, config: PreTrainedConfig, dtype: torch.dtype, device: torch.device):
        super().__init__(layers=[])
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.token_bytes = config.num_hidden_layers * 2 * heads * size * dtype.itemsize
        self.rows = self.capacity = 0
        self.device, self._heads, self._size = device, heads, size
        self._layers = [torch.zeros(2, 0, heads, 0, size, dtype=dtype, device=device) for _ in range(config.num_hidden_layers)]

    def fit(self, rows: int, length: int, running: int) -> None:
        """Room for so many rows of this length, and not much more length; the `running` rows keep their content."""
        slack = max(16, length // 8)
        if rows <= self.rows and length <= self.capacity <= length + 2 * slack:
            return
        capacity, kept = length + slack, min(length, self.capacity)
        for index, old in enumerate(self._layers):
            self._layers[index] = new = old.new_empty(2, rows, self._heads, capacity, self._size)
            new[:, :running, :, :kept] = old[:, :running, :, :kept]
            new[:, :running, :, kept:] = 0  # what the mask hides must be finite, too
            new[:, running:] = 0
        self.rows, self.capacity = rows, capacity
        self._first = capacity * torch.arange(rows * self._heads, device=self.device).view(rows, self._heads)

    def aim(self, positions: torch.Tensor) -> None:
        """Where the running rows (rows,) write in the next forward."""
        self._running = len(positions)
        self._target = (self._first[: self._running] + positions[:, None]).view(-1)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_, **__) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self._layers[layer_idx]
        keys.view(-1, self._size).index_copy_(0, self._target, key_states.reshape(-1, self._size))
        values.view(-1, self._size).index_copy_(0, self._target, value_states.reshape(-1, self._size))
        return keys[: self._running], values[: self._running]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0  # not asked for: the model is given positions and mask

    def load(self, row: int, prefix: torch.Tensor) -> None:
        """Fills the beginning of a row from a prefix (layers, 2, heads, length, head size)."""
        for layer, part in zip(self._layers, prefix, strict=True):
            layer[:, row, :, : part.shape[2]] = part

    def prefix(self, row: int, length: int) -> torch.Tensor:
        """A copy of the beginning of a row."""
        return torch.stack([layer[:, row, :, :length] for layer in self._layers])

    def move(self, source: int, target: int) -> None:
        for layer in self._layers:
            layer[:, target] = layer[:, source]


class PrefixStore:
    """Sequences with their keys and values, the oldest out first; every beginning of one of them can be found.

    limit: bytes. A prefix is found by a chained hash of its ids, and compared before it is used.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        self._bytes = self._number = 0
        self._stored: OrderedDict[int, tuple[tuple[int, ...], torch.Tensor]] = OrderedDict()
        self._where: dict[int, int] = {}  # hash of a prefix -> number of the newest sequence that begins with it

    def find(self, ids: tuple[int, ...]) -> torch.Tensor | None:
        """Keys and values (layers, 2, heads, len(ids), head size) of `ids`, a view; None if no stored sequence begins with it."""
        stored, kv = self._stored.get(self._where.get(_hashes(ids)[-1], 0), ((), None))
        return kv[:, :, :, : len(ids)] if kv is not None and stored[: len(ids)] == ids else None

    def put(self, ids: tuple[int, ...], kv: torch.Tensor) -> None:
        """Keeps `kv` (layers, 2, heads, len(ids), head size), memory of its own; one that exceeds the limit is left out."""
        if kv.nbytes > self._limit:
            return
        while self._bytes + kv.nbytes > self._limit:
            self._drop()
        self._bytes += kv.nbytes
        self._number += 1
        self._stored[self._number] = ids, kv
        self._where.update(dict.fromkeys(_hashes(ids), self._number))

    def _drop(self) -> None:
        number, (ids, kv) = self._stored.popitem(last=False)
        self._bytes -= kv.nbytes
        for key in _hashes(ids):
            if self._where.get(key) == number:
                del self._where[key]


def _hashes(ids: tuple[int, ...]) -> list[int]:
    """A hash of each beginning of `ids`, from the empty one to all of it; the same in every process."""
    return list(accumulate(ids, lambda value, token: hash((value, token)), initial=0))
