"""The running requests of the transformers engine: a row each, and always the first rows of every tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ibtpo.engines.base import Request
from ibtpo.engines.cache import RowCache

TOKEN, POSITION, COUNT, LIMIT = range(4)  # columns of `state`


class Rows:
    """What the running requests are at, beside their keys and values in `cache`.

    state (rows, 4): next input token, its position, tokens generated, tokens allowed. uniforms, ids, logprobs (rows, most tokens): an
    entry a generated token. A row whose request has ended is a gap, until another request takes it or the last row moves there.
    """

    def __init__(self, cache: RowCache):
        self.cache, self.requests, self._gaps = cache, [], []
        self._state = torch.zeros(0, 4, dtype=torch.long, device=cache.device)
        self._ids = self._state.new_zeros(0, 0)
        self._logprobs, self._uniforms = self._ids.float(), self._ids.double()

    @property
    def running(self) -> int:
        return len(self.requests) - len(self._gaps)

    @property
    def state(self) -> torch.Tensor:
        return self._state[: len(self.requests)]

    def join(self, requests: Sequence[Request], most: int) -> list[int]:
        """Gives each request a row, out of `most`; the keys and values of its prompt, up to the last token, are for the caller to load."""
        fresh = max(0, len(requests) - len(self._gaps))
        rows = [*self._gaps, *range(len(self.requests), len(self.requests) + fresh)][: len(requests)]
        self._fit(len(self.requests) + fresh, most, requests)
        self._gaps = self._gaps[len(requests) :]
        self.requests += [None] * fresh
        for row, request in zip(rows, requests, strict=True):
            self.requests[row] = request
        state = [(request.prompt_ids[-1], len(request.prompt_ids) - 1, 0, request.max_tokens) for request in requests]
        draws = torch.zeros(len(requests), self._ids.shape[1], dtype=torch.float64)
        for row, request in zip(draws, requests, strict=True):  # a stream of its own: other rows do not shift it
            torch.rand(request.max_tokens, generator=torch.Generator().manual_seed(request.seed), out=row[: request.max_tokens])
        where = torch.tensor(rows, device=self.cache.device)
        self._state.index_copy_(0, where, torch.tensor(state, device=self.cache.device))
        self._uniforms.index_copy_(0, where, draws.to(self.cache.device))
        return rows

    def uniforms(self) -> torch.Tensor:
        """The draws (rows,) of the next tokens, float64 in [0, 1)."""
        return self._uniforms.view(-1).index_select(0, self._entry())

    def record(self, tokens: torch.Tensor, logprobs: torch.Tensor, eos_id: int) -> list[int]:
        """Appends a token (rows,) and its log-prob to each row; returns the rows that end with it."""
        state, entry = self.state, self._entry()
        self._ids.view(-1).index_copy_(0, entry, tokens)
        self._logprobs.view(-1).index_copy_(0, entry, logprobs)
        state[:, TOKEN] = tokens
        state[:, POSITION : COUNT + 1] += 1
        return ((tokens == eos_id) | (state[:, COUNT] == state[:, LIMIT])).nonzero()[:, 0].tolist()

    def leave(self, rows: list[int]) -> list[tuple[Request, list[int], list[float]]]:
        """Makes gaps of these rows; returns each request, the ids and the log-probs that were generated."""
        where = torch.tensor(rows, device=self.cache.device)
        counts = self._state[:, COUNT].index_select(0, where).tolist()
        ids, logprobs = (kept[:, : max(counts)].index_select(0, where).tolist() for kept in (self._ids, self._logprobs))
        self._gaps += rows
        return [(self.requests[row], i[:n], p[:n]) for row, n, i, p in zip(rows, counts, ids, logprobs, strict=True)]

    def close(self) -> None:
        """Moves the last rows into the gaps."""
        for gap in sorted(self._gaps, reverse=True):
            last = len(self.requests) - 1
            if gap < last:
                self.requests[gap] = self.requests[last]
                self.cache.move(last, gap)
                for tensor in (self._state, self._ids, self._logprobs, self._uniforms):
                    tensor[gap] = tensor[last]
            self.requests.pop()
        self._gaps = []

    def _fit(self, rows: int, most: int, joining: Sequence[Request]) -> None:
        longest = int(self.state[:, POSITION].max()) if self.requests else 0
        rows = rows if rows <= self.cache.rows else max(rows, min(most, 2 * self.cache.rows))
        self.cache.fit(rows, max(longest, *(len(request.prompt_ids) for request in joining)), len(self.requests))
        tokens = max(request.max_tokens for request in joining)
        if rows > len(self._state) or tokens > self._ids.shape[1]:
            self._state = _grown(self._state, rows, 4)
            self._ids, self._logprobs, self._uniforms = (_grown(old, rows, tokens) for old in (self._ids, self._logprobs, self._uniforms))

    def _entry(self) -> torch.Tensor:
        """Where each row (rows,) keeps its next token."""
        width, state = self._ids.shape[1], self.state
        return torch.arange(0, width * len(state), width, device=state.device) + state[:, COUNT]


def _grown(old: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    new = old.new_zeros(max(rows, old.shape[0]), max(columns, old.shape[1]))
    new[: old.shape[0], : old.shape[1]] = old
    return new
