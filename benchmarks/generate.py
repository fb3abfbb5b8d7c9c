"""Plain `generate` of transformers behind our Engine protocol: what the rollout benchmark compares the engines with.

A step answers one batch of similar prompt lengths, which runs until its last row is done. Tokens are drawn from the same streams as in
`ibtpo.engines.transformers`, so the two give the same trees up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from transformers import (
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

from ibtpo.config.models import Sampling
from ibtpo.engines.base import Continuation, Queue, Request


class GenerateEngine(Queue):
    """At most `rows` requests at once."""

    def __init__(self, model: PreTrainedModel, eos_id: int, sampling: Sampling, rows: int):
        super().__init__(model.config.max_position_embeddings)
        self._model, self._eos_id, self._sampling, self._rows = model.eval(), eos_id, sampling, rows
        model.generation_config = GenerationConfig(eos_token_id=eos_id, pad_token_id=eos_id, do_sample=False)

    def step(self) -> list[Continuation]:
        batch = sorted(self._waiting.values(), key=lambda request: len(request.prompt_ids))[: self._rows]
        return self._done(self._generate(batch)) if batch else []

    def load_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        self._model.load_state_dict(state_dict, strict=False)

    def close(self) -> None:
        self._model = None

    @torch.no_grad()
    def _generate(self, batch: list[Request]) -> list[Continuation]:
        width = max(len(request.prompt_ids) for request in batch)
        pads = [width - len(request.prompt_ids) for request in batch]
        sampler = SeededSampler(batch, self._sampling, width)
        output = self._model.generate(
            torch.tensor([[self._eos_id] * pad + list(request.prompt_ids) for pad, request in zip(pads, batch, strict=True)]),
            attention_mask=(torch.arange(width) >= torch.tensor(pads)[:, None]).long(),
            max_new_tokens=max(request.max_tokens for request in batch),
            logits_processor=LogitsProcessorList([sampler]),
            stopping_criteria=StoppingCriteriaList([RowLimit(torch.tensor([width + request.max_tokens for request in batch]))]),
        )
        logprobs = torch.stack(sampler.logprobs, dim=1).tolist()
        return [self._continuation(*row) for row in zip(batch, output[:, width:].tolist(), logprobs, strict=True)]

    def _continuation(self, request: Request, ids: list[int], logprobs: list[float]) -> Continuation:
        ids = ids[: request.max_tokens]
        finished = self._eos_id in ids
        length = ids.index(self._eos_id) + 1 if finished else len(ids)
        return Continuation(request.id, tuple(ids[:length]), tuple(logprobs[:length]), finished)


class SeededSampler(LogitsProcessor):
    """Draws each row's next token from its own stream, and leaves only that one possible: greedy decoding then takes it."""

    def __init__(self, batch: list[Request], sampling: Sampling, width: int):
        longest = max(request.max_tokens for request in batch)
        draws = [torch.rand(longest, generator=torch.Generator().manual_seed(request.seed), dtype=torch.float64) for request in batch]
        self.uniforms, self.width, self.logprobs = torch.stack(draws), width, []
        self.warpers = [TemperatureLogitsWarper(sampling.temperature)]
        if sampling.top_k:
            self.warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            self.warpers.append(TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        raw, warped = torch.log_softmax(scores.float(), dim=-1), scores
        for warper in self.warpers:
            warped = warper(input_ids, warped)
        cumulative = torch.softmax(warped.double(), dim=-1).cumsum(dim=-1)
        token = torch.searchsorted(cumulative, self.uniforms[:, input_ids.shape[1] - self.width, None] * cumulative[:, -1:], right=True)
        self.logprobs.append(raw.gather(1, token)[:, 0])
        return torch.full_like(scores, -torch.inf).scatter(1, token, 0.0)


class RowLimit(StoppingCriteria):
    """Ends each row at its own length."""

    def __init__(self, lengths: torch.Tensor):
        self.lengths = lengths

    def __call__(self, input_ids: torch.Tensor, scores, **_) -> torch.Tensor:
        return input_ids.shape[1] >= self.lengths
