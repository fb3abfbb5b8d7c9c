"""An engine without a model, for tests: a function answers, and requests finish in an arbitrary but seeded order."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from ibtpo.engines.base import Continuation, Queue, Request

Answer = tuple[Sequence[int], Sequence[float], bool]


class ScriptedEngine(Queue):
    """`answer(request) -> (ids, logprobs, finished)`; a step finishes 1 to `most` of the pending requests, drawn by `seed`."""

    def __init__(self, answer: Callable[[Request], Answer], seed: int = 0, most: int = 3, max_model_len: int = 1 << 30):
        super().__init__(max_model_len)
        self._answer, self._rng, self._most = answer, random.Random(seed), most

    def step(self) -> list[Continuation]:
        chosen = self._rng.sample(sorted(self._waiting), min(self.pending, self._rng.randint(1, self._most)))
        return self._done([self._finish(self._waiting[name]) for name in chosen])

    def load_weights(self, state_dict: Mapping[str, object]) -> None:
        self._check_weights(set(), set(), set())

    def close(self) -> None:
        self._waiting.clear()

    def _finish(self, request: Request) -> Continuation:
        ids, logprobs, finished = self._answer(request)
        return Continuation(request.id, tuple(ids), tuple(logprobs), finished)
