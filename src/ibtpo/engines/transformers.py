"""Plain batched `generate` of transformers: the fallback where vLLM is missing. A batch runs until its last row is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ibtpo.config import models as config
from ibtpo.engines.base import Continuation, Queue, Request


class TransformersEngine(Queue):
    """Engine over `model.generate`; a step answers one batch of at most engine.max_sequences requests, similar prompt lengths together.

    A request's result depends on its own seed, and on its batch only through rounding.
    model: folder, or a live model, which is then sampled as it is (in eval mode) and loaded by load_state_dict.
    """

    def __init__(self, model: str | Path | PreTrainedModel, eos_id: int, sampling: config.Sampling, engine: config.Engine):
        live = isinstance(model, PreTrainedModel)
        self._model = model if live else AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).to(engine.device)
        self._eos_id, self._sampling, self._batch = eos_id, sampling, engine.max_sequences
        super().__init__(self._model.config.max_position_embeddings)

    def step(self) -> list[Continuation]:
        batch = sorted(self._waiting.values(), key=lambda request: len(request.prompt_ids))[: self._batch]
        if not batch:
            return []
        with self._prepared(max(request.max_tokens for request in batch)):
            return self._done(self._generate(batch))

    def load_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        tied = set(self._model._tied_weights_keys or ()) if self._model.config.tie_word_embeddings else set()
        self._check_weights(set(state_dict), set(self._model.state_dict()), tied)
        self._model.load_state_dict(state_dict, strict=False)

    def close(self) -> None:
        self._model = None
        self._waiting.clear()

    @contextmanager
    def _prepared(self, max_tokens: int) -> Iterator[None]:
        """Eval mode and our defaults, for a while: `generate` takes what a call leaves open, even a repetition penalty, from the model."""
        mode, defaults = self._model.training, self._model.generation_config
        self._model.generation_config = GenerationConfig(
            max_new_tokens=max_tokens, eos_token_id=self._eos_id, pad_token_id=self._eos_id, do_sample=False
        )
        self._model.eval()
        try:
            yield
        finally:
            self._model.train(mode)
            self._model.generation_config = defaults

    @torch.no_grad()
    def _generate(self, batch: list[Request]) -> list[Continuation]:
        width = max(len(request.prompt_ids) for request in batch)
        pads = [width - len(request.prompt_ids) for request in batch]
        ids = torch.tensor([[self._eos_id] * pad + list(request.prompt_ids) for pad, request in zip(pads, batch, strict=True)])
        mask = (torch.arange(width) >= torch.tensor(pads)[:, None]).long()
        limits = torch.tensor([width + request.max_tokens for request in batch])
        sampler = SeededSampler(batch, self._sampling, width)
        output = self._model.generate(
            ids.to(self._model.device),
            attention_mask=mask.to(self._model.device),
            logits_processor=LogitsProcessorList([sampler]),
            stopping_criteria=StoppingCriteriaList([RowLimit(limits)]),
        )
        logprobs = torch.stack(sampler.logprobs, dim=1).tolist()
        return [self._continuation(*row) for row in zip(batch, output[:, width:].tolist(), logprobs, strict=True)]

    def _continuation(self, request: Request, ids: list[int], logprobs: list[float]) -> Continuation:
        ids = ids[: request.max_tokens]
        finished = self._eos_id in ids
        length = ids.index(self._eos_id) + 1 if finished else len(ids)
        return Continuation(request.id, tuple(ids[:length]), tuple(logprobs[:length]), finished)


class SeededSampler(LogitsProcessor):
    """Draws each row's next token by its own stream of uniforms (inverse distribution function) and leaves only that token possible.

    So greedy decoding, which follows, takes it. `logprobs`: one tensor (batch,) per step, of the logits before temperature, top-k and
    top-p. The stream of a row is made of its seed alone: other rows do not shift it.
    """

    def __init__(self, batch: list[Request], sampling: config.Sampling, width: int):
        longest = max(request.max_tokens for request in batch)
        draws = [torch.rand(longest, generator=torch.Generator().manual_seed(request.seed), dtype=torch.float64) for request in batch]
        self.uniforms, self.width, self.logprobs = torch.stack(draws), width, []
        self.warpers = [TemperatureLogitsWarper(sampling.temperature)]
        if sampling.top_k:
            self.warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            self.warpers.append(TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """input_ids (batch, length), scores (batch, vocabulary) raw logits -> scores with one finite entry a row."""
        raw, warped = torch.log_softmax(scores.float(), dim=-1), scores
        for warper in self.warpers:
            warped = warper(input_ids, warped)
        cumulative = torch.softmax(warped.double(), dim=-1).cumsum(dim=-1)
        u = self.uniforms[:, input_ids.shape[1] - self.width, None].to(scores.device)
        token = torch.searchsorted(cumulative, u * cumulative[:, -1:], right=True)
        self.logprobs.append(raw.gather(1, token)[:, 0].cpu())
        return torch.full_like(scores, -torch.inf).scatter(1, token, 0.0)


class RowLimit(StoppingCriteria):
    """Ends each row at its own length, so a batch of short requests does not wait for nothing."""

    def __init__(self, lengths: torch.Tensor):
        self.lengths = lengths

    def __call__(self, input_ids: torch.Tensor, scores, **_) -> torch.Tensor:
        return (input_ids.shape[1] >= self.lengths).to(input_ids.device)
