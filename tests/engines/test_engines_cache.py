"""Rows and prefixes of the KV cache, against plain lists."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config

from ibtpo.engines.cache import PrefixStore, RowCache

CONFIG = Qwen3Config(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4, hidden_size=16)


def kv(ids):
    """Keys and values that tell the ids: (2, 2, 1, len(ids), 1)."""
    return torch.tensor(ids, dtype=torch.float32).view(1, 1, 1, -1, 1).repeat(2, 2, 1, 1, 1)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    sequences=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), max_size=12),
    limit=st.integers(0, 20),
)
def test_every_beginning_of_what_is_stored_is_found(sequences, limit):
    store, kept = PrefixStore(limit * 16), []  # a token takes 16 bytes here
    for ids in sequences:
        store.put(ids, kv(ids))
        if len(ids) <= limit:
            kept.append(ids)
        while sum(map(len, kept)) > limit:
            kept.pop(0)
        for length in range(1, 8):
            for wanted in {(ids * 7)[:length], (0,) * length, (*ids[: length - 1], 2)}:
                found = store.find(wanted)
                assert (found is not None) == any(stored[: len(wanted)] == wanted for stored in kept)
                if found is not None:
                    assert torch.equal(found, kv(wanted))
    store.clear()
    assert all(store.find(ids) is None for ids in sequences)
    assert store._where == {} == dict(store._stored)


def test_a_dropped_sequence_leaves_nothing_behind():
    store = PrefixStore(48)
    for start in range(50):
        store.put((start, 1, 2), kv((start, 1, 2)))
    assert len(store._stored) == 1 and len(store._where) == 4  # the empty beginning, too


def test_a_hash_that_two_sequences_share_is_no_hit(monkeypatch):
    monkeypatch.setattr("ibtpo.engines.cache._hashes", lambda ids: list(range(len(ids) + 1)))
    store = PrefixStore(1000)
    store.put((1, 2), kv((1, 2)))
    assert store.find((1, 3)) is None and store.find((1, 2)) is not None


def filled(rows=3, length=5):
    cache = RowCache(CONFIG, torch.float32, torch.device("cpu"))
    cache.fit(rows, length, 0)
    for row in range(rows):
        cache.load(row, torch.full((2, 2, 2, length, 4), float(row + 1)))
    return cache


def test_rows_keep_their_content_when_the_storage_changes():
    cache = filled()
    assert cache.token_bytes == 2 * 2 * 2 * 4 * 4
    assert cache.capacity == 5 + 16
    cache.fit(2, 4, 2)
    assert cache.capacity == 21, "close enough"
    for rows, length, capacity in ((3, 22, 38), (8, 22, 38), (8, 300, 337), (8, 9, 25)):
        cache.fit(rows, length, 3)
        assert (cache.rows, cache.capacity) == (rows, capacity)
        for row in range(3):
            assert (cache.prefix(row, 5) == row + 1).all()
        assert all(torch.isfinite(tensor).all() for tensor in cache._layers)
    cache.move(2, 0)
    assert (cache.prefix(0, 5) == 3).all() and (cache.prefix(1, 5) == 2).all()


def test_a_row_is_written_at_its_own_position():
    cache = filled()
    cache.aim(torch.tensor([5, 2]))
    states = torch.arange(2 * 2 * 4, dtype=torch.float32).view(2, 2, 1, 4) + 100
    keys, values = cache.update(states, -states, 1)
    assert keys.shape == values.shape == (2, 2, cache.capacity, 4)
    expected = torch.zeros(2, 2, cache.capacity, 4)
    expected[0, :, :5], expected[1, :, :5] = 1, 2
    expected[0, :, 5], expected[1, :, 2] = states[0, :, 0], states[1, :, 0]
    assert torch.equal(keys, expected)
    assert torch.equal(values[0, :, 5], -states[0, :, 0])
    assert (cache.prefix(0, 5)[0] == 1).all() and (cache.prefix(2, 5) == 3).all(), "the other layer and row are as they were"
