"""What an engine is: it takes requests, and hands back continuations as they finish."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ibtpo import IbtpoError

if TYPE_CHECKING:
    import torch


class EngineError(IbtpoError):
    """The engine cannot do what was asked; the message names the setting and the remedy."""


@dataclass(frozen=True)
class Request:
    """A prompt to continue. `id` is unique among the pending requests; `seed` fixes the draws of this request alone.

    generated: how many of the last `prompt_ids` an earlier request generated; their keys and values may still be at hand.
    """

    id: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    seed: int
    generated: int = 0


@dataclass(frozen=True)
class Continuation:
    """The answer to the request of the same id.

    logprobs: natural log-probabilities of `ids`, one per id: of the raw model (temperature 1, no top-k, no top-p; algorithms D.2 row 10),
    or of logits / temperature if the engine was made with pi="temperature". finished: ended by EOS, which is then the last of `ids`;
    otherwise it was cut at max_tokens.
    """

    id: str
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool


class Engine(Protocol):
    """One policy that samples. The sampling settings belong to the engine, the seed to the request.

    figures() counts since the engine was made:
        requests, prompt_tokens, generated_tokens     all engines; prompts are counted whole, also where a cached prefix is reused
        prefix_queries, prefix_hits                   prompt tokens looked up in, and found in, the prefix cache
        preemptions                                   requests thrown out for lack of KV blocks and computed again (vLLM)
        kv_blocks_total, kv_blocks_peak, block_size   KV blocks that exist, the most in use by running requests at once since the
                                                      weights were last loaded, tokens of one; requests share blocks with vLLM only
    """

    pending: int

    def submit(self, request: Request) -> None:
        """Queues a request. Raises EngineError if it can never be served."""

    def step(self) -> list[Continuation]:
        """Works on for a while and returns what finished meanwhile, in any order; [] does not mean that nothing is pending."""

    def load_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Replaces all weights in place. Raises EngineError while requests are pending and for weights that do not fit."""

    def figures(self) -> dict[str, float]: ...

    def close(self) -> None:
        """Frees the model and its cache; the engine is of no use afterwards."""


class Queue:
    """What the engines share: the pending requests, their checks and the counters.

    A request waits until it can run to its end, so that none is ever thrown out for lack of memory. Those that go on with a response
    come first, the longest first: their prefix is still cached, and a tree that is grown leaves room for the next.
    """

    def __init__(self, max_model_len: int):
        self._max_model_len = max_model_len
        self._waiting: dict[str, Request] = {}  # all that are pending
        self._queue: list[tuple[int, int, Request]] = []  # a heap of those that do not run yet
        self._count = {"requests": 0, "prompt_tokens": 0, "generated_tokens": 0}

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def submit(self, request: Request) -> None:
        length = len(request.prompt_ids) + request.max_tokens
        if request.id in self._waiting:
            raise EngineError(f"request {request.id!r} is already pending: give every request its own id")
        if not request.prompt_ids or request.max_tokens < 1:
            raise EngineError(f"request {request.id!r} needs a prompt of at least one token and max_tokens >= 1")
        if length > self._max_model_len:
            raise EngineError(
                f"request {request.id!r}: prompt of {len(request.prompt_ids)} tokens + max_tokens {request.max_tokens} = {length} exceeds "
                f"the model length {self._max_model_len}: shorten the prompt, lower sampling.max_tokens or use a model with more positions"
            )
        self._accept(request)
        self._waiting[request.id] = request
        self._count["requests"] += 1
        self._count["prompt_tokens"] += len(request.prompt_ids)

    def figures(self) -> dict[str, float]:
        return dict(self._count)

    def _accept(self, request: Request) -> None:
        """For an engine with requirements or a queue of its own. Raises EngineError for a request that can never be served."""

    def _enqueue(self, request: Request) -> None:
        heapq.heappush(self._queue, (-request.generated, self._count["requests"], request))

    def _next(self) -> Request:
        """The request that should start next, out of those that wait."""
        return heapq.heappop(self._queue)[-1]

    def _done(self, continuations: list[Continuation]) -> list[Continuation]:
        for continuation in continuations:
            del self._waiting[continuation.id]
            self._count["generated_tokens"] += len(continuation.ids)
        return continuations

    def _check_weights(self, names: set[str], expected: set[str], tied: set[str]) -> None:
        """Raises EngineError while requests are pending, and unless `names` are the `expected` weights; tied ones may be left out."""
        if self.pending:  # new weights under a running request would mix two policies in one continuation
            raise EngineError(f"cannot load weights while {self.pending} request(s) are pending: step the engine until it is idle")
        missing, unknown = expected - names - tied, names - expected - tied
        if missing or unknown:
            found = f"missing {sorted(missing)[:3]}" if missing else f"unknown {sorted(unknown)[:3]}"
            raise EngineError(f"state_dict does not fit the model: {found}; pass the state_dict() of the plain model, adapters merged")
