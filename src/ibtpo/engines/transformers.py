"""Continuous batching over a plain transformers model: requests join and leave between steps, prefixes are computed once.

A forward decodes one token of every running request. A prompt is prefilled up to its last token, which is the first that is decoded; so a
request whose prefix is in the store (another sample of its problem, a branch of a finished response) starts without any prefill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedConfig, PreTrainedModel

from ibtpo.config import models as config
from ibtpo.engines.base import Continuation, EngineError, Queue, Request
from ibtpo.engines.cache import PrefixStore, RowCache
from ibtpo.engines.decoder import decoder
from ibtpo.engines.rows import POSITION, TOKEN, Rows
from ibtpo.engines.sampling import draw, log_probability

PREFILL_TOKENS = 4096  # of one prefill, padding included


class TransformersEngine(Queue):
    """Engine over an AutoModelForCausalLM with standard attention, such as Llama, Qwen2 and Qwen3.

    A request's result depends on its own seed, and on its batch only through rounding. At most engine.max_sequences requests run at once,
    fewer if at full length they would not fit into half of engine.kv_cache_gib; the other half keeps prefixes. The others wait, and none
    is thrown out. A step goes on until a request has finished.

    model: folder, or a live model, which is then sampled as it is (in eval mode) and loaded by load_state_dict. A live model may be
    trained while the engine is idle, so its prefixes are forgotten then. pi: the log-probs to report, of the raw model or of
    logits / temperature. Raises EngineError for a model whose attention has a sliding window or another implementation than sdpa or eager.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel,
        eos_id: int,
        sampling: config.Sampling,
        engine: config.Engine,
        pi: Literal["raw", "temperature"] = "raw",
    ):
        self._live = isinstance(model, PreTrainedModel)
        self._model = model if self._live else AutoModelForCausalLM.from_pretrained(model, dtype=engine.dtype).to(engine.device)
        _check_attention(self._model.config)
        super().__init__(self._model.config.max_position_embeddings)
        self._eos_id, self._sampling, self._tempered = eos_id, sampling, pi == "temperature"
        cache = RowCache(self._model.config, self._model.dtype, self._model.device)
        self._most, self._half, self._token_bytes = engine.max_sequences, int(engine.kv_cache_gib * 2**29), cache.token_bytes
        self._rows, self._prefixes = Rows(cache), PrefixStore(self._half)
        self._longest = 0  # prompt + max_tokens of a request, since the engine was idle
        self._queries = self._hits = self._used = self._peak = 0

    def step(self) -> list[Continuation]:
        if not self.pending:
            return []
        with self._prepared():
            self._admit()
            while not (ended := self._decode()):
                pass
            return self._done(self._finish(ended))

    def load_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        tied = set(self._model._tied_weights_keys or ()) if self._model.config.tie_word_embeddings else set()
        self._check_weights(set(state_dict), set(self._model.state_dict()), tied)
        self._model.load_state_dict(state_dict, strict=False)
        self._prefixes.clear()
        self._peak = 0

    def figures(self) -> dict[str, float]:
        blocks = {"kv_blocks_total": self._half // self._token_bytes, "kv_blocks_peak": self._peak, "block_size": 1}
        return super().figures() | {"prefix_queries": self._queries, "prefix_hits": self._hits} | blocks

    def close(self) -> None:
        self._model = self._rows = self._prefixes = None
        self._waiting.clear()
        self._queue.clear()

    def _accept(self, request: Request) -> None:
        length = len(request.prompt_ids) + request.max_tokens
        if length * self._token_bytes > self._half:
            raise EngineError(
                f"request {request.id!r}: keys and values of {length} tokens take {length * self._token_bytes / 2**30:.2g} GiB, more than "
                f"half of engine.kv_cache_gib = {self._half / 2**29:.2g}: raise it, or lower sampling.max_tokens"
            )
        if not self.pending:
            self._longest, self._decoder = 0, decoder(self._model)
            if self._live:
                self._prefixes.clear()
        self._longest = max(self._longest, length)
        self._enqueue(request)

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Eval mode and no gradients, for a while."""
        mode = self._model.training
        if mode:
            self._model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            if mode:
                self._model.train()

    def _admit(self) -> None:
        """Starts as many waiting requests as there is room for."""
        most = min(self._most, self._half // (self._longest * self._token_bytes))
        joining = [self._next() for _ in range(min(len(self._queue), most - self._rows.running))]
        if joining:
            holders: dict[tuple[int, ...], list[int]] = {}  # prefix -> rows
            for row, request in zip(self._rows.join(joining, most), joining, strict=True):
                holders.setdefault(request.prompt_ids[:-1], []).append(row)
            self._load(holders)
        self._rows.close()

    def _load(self, holders: dict[tuple[int, ...], list[int]]) -> None:
        """Fills rows with their prefixes, out of the store or else computed, similar lengths together."""
        missing = []
        for prefix, rows in holders.items():
            found = self._prefixes.find(prefix)
            if found is None:
                missing.append(prefix)
            else:
                self._fill(rows, found)
            self._queries += (len(prefix) + 1) * len(rows)
            self._hits += len(prefix) * (len(rows) - (found is None))
            self._used += len(prefix) * len(rows)
        missing = sorted(filter(None, missing), key=len)
        while missing:
            batch = missing[-max(1, PREFILL_TOKENS // len(missing[-1])) :]
            del missing[-len(batch) :]
            for prefix, kv in zip(batch, self._prefill(batch), strict=True):
                self._fill(holders[prefix], kv)
                self._prefixes.put(prefix, kv)

    def _fill(self, rows: list[int], prefix: torch.Tensor) -> None:
        for row in rows:
            self._rows.cache.load(row, prefix)

    def _prefill(self, batch: list[tuple[int, ...]]) -> list[torch.Tensor]:
        """Keys and values (layers, 2, heads, length, head size) of each; padded on the right, where a causal model never looks."""
        width, cache = max(map(len, batch)), DynamicCache()
        ids = torch.tensor([prefix + (self._eos_id,) * (width - len(prefix)) for prefix in batch], device=self._model.device)
        positions = torch.arange(width, device=ids.device).expand(len(batch), -1)
        self._model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1)
        kv = torch.stack([torch.stack([layer.keys, layer.values]) for layer in cache.layers])
        return [kv[:, :, row, :, : len(prefix)].clone() for row, prefix in enumerate(batch)]

    def _decode(self) -> list[int]:
        """Draws one token for every row; returns the rows that end with it."""
        rows, cache, state = self._rows, self._rows.cache, self._rows.state
        positions = state[:, POSITION]
        cache.fit(len(state), int(positions.max()) + 1, len(state))
        cache.aim(positions)
        ahead = torch.arange(cache.capacity, device=state.device) > positions[:, None]
        mask = torch.where(ahead, -torch.inf, 0.0).to(self._model.dtype)
        logits = self._decoder(state[:, TOKEN], positions, mask, cache).float()
        tokens = draw(logits, rows.uniforms(), self._sampling)
        self._used += len(state)
        self._peak = max(self._peak, self._used)
        scores = logits / self._sampling.temperature if self._tempered else logits
        return rows.record(tokens, log_probability(scores, tokens), self._eos_id)

    def _finish(self, ended: list[int]) -> list[Continuation]:
        continuations = []
        for row, (request, ids, logprobs) in zip(ended, self._rows.leave(ended), strict=True):
            seen = request.prompt_ids + tuple(ids[:-1])  # the last token was drawn, but never went through the model
            self._prefixes.put(seen, self._rows.cache.prefix(row, len(seen)))
            self._used -= len(seen)
            continuations.append(Continuation(request.id, tuple(ids), tuple(logprobs), ids[-1] == self._eos_id))
        return continuations


def _check_attention(model: PreTrainedConfig) -> None:
    special = set(getattr(model, "layer_types", None) or ()) - {"full_attention"}
    if special or getattr(model, "sliding_window", None):
        raise EngineError(f"{model.model_type} has sliding or other special attention here: set engine.kind: vllm")
    if model._attn_implementation not in ("sdpa", "eager"):
        raise EngineError(f"attention is {model._attn_implementation!r}: load the model with attn_implementation='sdpa'")
