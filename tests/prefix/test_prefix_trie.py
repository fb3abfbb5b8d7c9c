"""The trie of a batch: every distinct prefix once, every query sees its own sequence and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibtpo.prefix import trie as module
from ibtpo.prefix.trie import tries


@st.composite
def batches(draw):
    """Up to 10 sequences over three ids (so that prefixes meet) and how many of their tokens are scored."""
    sequences = draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=10))
    return [np.array(ids) for ids in sequences], [draw(st.integers(0, len(ids) - 1)) for ids in sequences]


def seen(trie):
    """(token number, the ids it attends to) of every real query, in the order of the buckets."""
    for bucket in trie.buckets:
        shape = (len(bucket.queries), 1, bucket.queries.shape[1], bucket.keys.shape[1])
        visible = np.tri(*shape[2:], dtype=bool)[None, None].repeat(len(bucket.queries), 0) if bucket.visible is None else bucket.visible
        assert visible.shape == shape
        for row, query in zip(*bucket.real.nonzero(), strict=True):
            yield bucket.queries[row, query], trie.ids[bucket.keys[row, visible[row, 0, query]]]


def test_a_batch_by_hand():
    """1 2 3 9 | 1 2 4 9 | 1 2 3 5 9 share 1 2 and 1 2 3; the two 9 after different parents are two edges, and no token needs them."""
    sequences = [np.array(ids) for ids in ([1, 2, 3, 9], [1, 2, 4, 9], [1, 2, 3, 5, 9], [1, 2, 3, 9])]
    (trie,) = tries(sequences, [2, 2, 3, 2], 100)
    prefixes = sorted(tuple(ids.tolist()) for _, ids in seen(trie))
    assert prefixes == [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 5), (1, 2, 4)]
    assert sorted(zip(trie.ids.tolist(), trie.positions.tolist(), strict=True)) == [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3)]
    assert sorted(zip(trie.ids[trie.parents].tolist(), trie.labels.tolist(), strict=True)) == [
        (2, 3),
        (2, 4),
        (3, 5),
        (3, 9),
        (4, 9),
        (5, 9),
    ]
    edges = dict(zip(trie.rows, trie.edges, strict=True))
    assert edges[0].tolist() == edges[3].tolist() != edges[1].tolist()
    assert trie.labels[edges[2]].tolist() == [3, 5, 9]


@given(batches())
def test_first_and_last_sequence_tell_the_same_prefixes_whatever_the_order_of_tokens(batch):
    """What FlexAttention goes by: a token sees those at its position or before it that its own sequence holds."""
    sequences, scored = batch
    for bucketed in (True, False):
        for trie in tries(sequences, scored, 10**6, bucketed):
            found = set()
            for first, position in zip(trie.first, trie.positions, strict=True):
                held = (trie.first <= first) & (first <= trie.last) & (trie.positions <= position)
                found.add(tuple(trie.ids[held][np.argsort(trie.positions[held])].tolist()))
            kept = zip(sequences, scored, strict=True)
            assert found == {tuple(ids[:n].tolist()) for ids, count in kept if count for n in range(1, len(ids))}
            assert bucketed or not trie.buckets
            assert bucketed or (np.diff(trie.first) >= 0).all()


@given(batches())
def test_each_distinct_prefix_is_one_token_that_attends_to_itself(batch):
    sequences, scored = batch
    found = list(tries(sequences, scored, 10**6))
    assert len(found) == (sum(scored) > 0)
    for trie in found:
        tokens, prefixes = zip(*seen(trie), strict=True)
        assert list(tokens) == list(range(len(trie.ids))), "the real queries, in order, are the tokens"
        prefixes = [tuple(ids.tolist()) for ids in prefixes]
        expected = {tuple(ids[:n].tolist()) for ids, count in zip(sequences, scored, strict=True) if count for n in range(1, len(ids))}
        assert len(set(prefixes)) == len(prefixes) and set(prefixes) == expected
        assert [len(ids) - 1 for ids in prefixes] == trie.positions.tolist()
        assert [ids[-1] for ids in prefixes] == trie.ids.tolist()


@given(batches(), st.integers(1, 30))
def test_each_scored_token_has_the_edge_of_its_own_prefix_whatever_the_limit(batch, limit):
    sequences, scored = batch
    rows = []
    for trie in tries(sequences, scored, limit):
        assert len(trie.ids) <= limit or len({tuple(sequences[row][:-1].tolist()) for row in trie.rows}) == 1
        prefixes = [tuple(ids.tolist()) for _, ids in seen(trie)]
        pairs = list(zip(trie.parents.tolist(), trie.labels.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs), "an edge is scored once"
        for row, edges in zip(trie.rows, trie.edges, strict=True):
            ids, first = sequences[row], len(sequences[row]) - scored[row]
            assert [prefixes[trie.parents[edge]] for edge in edges] == [tuple(ids[:n].tolist()) for n in range(first, len(ids))]
            assert trie.labels[edges].tolist() == ids[first:].tolist()
        rows += trie.rows
    assert sorted(rows) == [row for row, count in enumerate(scored) if count], "every scored sequence is in one trie"


@given(batches())
def test_buckets_are_bounded(batch):
    sequences, scored = batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SCORES", 40)
        buckets = [bucket for trie in tries(sequences, scored, 10**6) for bucket in trie.buckets]
    for bucket in buckets:
        assert len(bucket.queries) == 1 or bucket.queries.size * bucket.keys.shape[1] <= 40
        owned = bucket.real.sum(1)
        assert owned.min() * 2 > bucket.queries.shape[1] or bucket.queries.shape[1] <= 2, "less than half is padding"


@given(batches())
def test_sequences_that_share_nothing_need_no_mask(batch):
    for bucket in (bucket for trie in tries(*batch, 10**6) for bucket in trie.buckets):
        assert (bucket.visible is None) == (bucket.start == 0).all() == (bucket.start == 0).any()


def test_attention_does_not_grow_with_the_square_of_the_trie():
    """12 responses of 500 tokens that share 100: scores of all buckets stay below those of 12 plain sequences."""
    rng = np.random.default_rng(0)
    head = rng.integers(0, 50, 100)
    sequences = [np.concatenate([head, rng.integers(0, 50, 500)]) for _ in range(12)]
    (trie,) = tries(sequences, [500] * 12, 10**6)
    scores = sum(bucket.queries.size * bucket.keys.shape[1] for bucket in trie.buckets)
    assert scores < 12 * 600**2 < len(trie.ids) ** 2 / 5


def test_a_sequence_without_a_first_token_is_refused():
    with pytest.raises(ValueError, match="sequence 1: 2 scored tokens of 2"):
        list(tries([np.array([1, 2]), np.array([1, 2])], [1, 2], 10))
