"""The sequences of a batch as a trie of token ids: which tokens are distinct, and who attends to what.

[OURS]; an optimisation, no paper. Sequences are sorted, so each shares its longest prefix with the one before it and *owns* the rest:
the distinct tokens are the owned parts, one after the other. The queries of an owned part attend to the whole sequence, so attention costs
at most what it costs without sharing and never grows with the square of the trie. The last token of a sequence predicts nothing and is
left out. Prompts of all problems are sorted together: a common system prompt is computed once as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SCORES = 1 << 24  # attention scores of a bucket at most (per head): bounds its mask


@dataclass(frozen=True)
class Bucket:
    """Owned parts of similar length, which attend in one call.

    queries (S, Q), keys (S, K): numbers of tokens. real (S, Q): not padding; read in order, the real queries of all buckets are the tokens
    of the trie. start (S,): position of the first owned token.
    """

    queries: np.ndarray
    keys: np.ndarray
    real: np.ndarray
    start: np.ndarray

    @property
    def visible(self) -> np.ndarray | None:
        """(S, 1, Q, K): a query sees the keys up to its own position. None if that is the plain causal mask."""
        if not self.start.any():
            return None
        position = self.start[:, None] + np.arange(self.queries.shape[1])
        return (np.arange(self.keys.shape[1]) <= position[..., None])[:, None]


@dataclass(frozen=True)
class Trie:
    """The distinct tokens of some sequences.

    ids, positions (N,): the tokens. buckets: their attention. first, last (N,): the sequences that hold a token are, as they are sorted,
    those from its first, which owns it, to its last. parents, labels (E,): a scored edge leads from token parents[e] to the id
    labels[e]. rows, edges: edges[i] are the edges of the scored tokens of sequence rows[i], in order.
    """

    ids: np.ndarray
    positions: np.ndarray
    buckets: list[Bucket]
    first: np.ndarray
    last: np.ndarray
    parents: np.ndarray
    labels: np.ndarray
    rows: list[int]
    edges: list[np.ndarray]


def tries(sequences: list[np.ndarray], scored: list[int], limit: int, bucketed: bool = True) -> Iterator[Trie]:
    """Cuts a batch into tries of at most `limit` distinct tokens (but at least one sequence each).

    sequences: ids, shape (length,), prompt and completion. scored: how many of a sequence's last tokens need a log-prob; at least one token
    goes before them. Sequences without scored tokens are in no trie. bucketed: else there are no buckets, and tokens lie as the sorted
    sequences do, neighbours in the trie side by side. Raises ValueError for a sequence with too few tokens.
    """
    for row, (ids, count) in enumerate(zip(sequences, scored, strict=True)):
        if count >= len(ids) and count:
            raise ValueError(f"sequence {row}: {count} scored tokens of {len(ids)}, but the first of a sequence has nothing before it")
    order = sorted((row for row, count in enumerate(scored) if count), key=lambda row: sequences[row][:-1].astype(">i8").tobytes())
    rows, shared, tokens = [], [], 0
    for row in order:
        length = len(sequences[row]) - 1
        common = _common(sequences[rows[-1]][:-1], sequences[row][:-1]) if rows else 0
        if rows and tokens + length - common > limit:
            yield _trie(sequences, scored, rows, shared, bucketed)
            rows, shared, tokens, common = [], [], 0, 0
        rows.append(row)
        shared.append(common)
        tokens += length - common
    if rows:
        yield _trie(sequences, scored, rows, shared, bucketed)


def _common(left: np.ndarray, right: np.ndarray) -> int:
    """Length of the longest common prefix."""
    size = min(len(left), len(right))
    differ = left[:size] != right[:size]
    return int(differ.argmax()) if differ.any() else size


def _trie(sequences: list[np.ndarray], scored: list[int], rows: list[int], shared: list[int], bucketed: bool) -> Trie:
    shared = np.array(shared)
    lengths = np.array([len(sequences[row]) - 1 for row in rows])
    owned = lengths - shared
    groups = _groups(shared, owned, lengths) if bucketed else []
    order = np.concatenate(groups) if bucketed else np.nonzero(owned)[0]
    start = np.zeros(len(rows), dtype=np.int64)
    start[order] = np.cumsum(owned[order]) - owned[order]
    last = np.zeros(owned.sum(), dtype=np.int64)
    numbers, path = [], np.zeros(0, dtype=np.int64)  # the token numbers of each sequence
    for number in range(len(rows)):
        path = np.concatenate([path[: shared[number]], np.arange(start[number], start[number] + owned[number])])
        last[path] = number
        numbers.append(path)
    ids = np.concatenate([sequences[rows[i]][shared[i] : -1] for i in order])
    positions = np.concatenate([np.arange(shared[i], lengths[i]) for i in order])
    parents = np.concatenate([path[-scored[row] :] for row, path in zip(rows, numbers, strict=True)])
    labels = np.concatenate([sequences[row][-scored[row] :] for row in rows])
    pairs, edges = np.unique(parents << 32 | labels, return_inverse=True)
    cuts = np.cumsum([scored[row] for row in rows])[:-1]
    buckets = [_bucket([numbers[i] for i in group], shared[group]) for group in groups]
    first = np.repeat(order, owned[order])
    return Trie(ids, positions, buckets, first, last, pairs >> 32, pairs & 0xFFFFFFFF, rows, np.split(edges, cuts))


def _groups(shared: np.ndarray, owned: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """The sequences that own tokens, by the power of two of how many, those that own all their tokens apart: their mask is causal."""
    size = np.where(owned > 0, np.ceil(np.log2(np.maximum(owned, 1))), -1) + 100 * (shared == 0)
    groups = []
    for value in np.unique(size[owned > 0]):
        group = np.nonzero((size == value) & (owned > 0))[0]
        most = max(1, SCORES // int(owned[group].max() * lengths[group].max()))
        groups += [group[i : i + most] for i in range(0, len(group), most)]
    return groups


def _bucket(paths: list[np.ndarray], start: np.ndarray) -> Bucket:
    lengths = np.array([len(path) for path in paths])
    keys = np.zeros((len(paths), lengths.max()), dtype=np.int64)
    queries = np.zeros((len(paths), (lengths - start).max()), dtype=np.int64)
    for row, (path, begin) in enumerate(zip(paths, start, strict=True)):
        keys[row, : len(path)] = path
        queries[row, : len(path) - begin] = path[begin:]
    return Bucket(queries, keys, np.arange(queries.shape[1]) < (lengths - start)[:, None], start)
