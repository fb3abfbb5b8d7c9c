"""The draw of the next token against transformers' own warpers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from ibtpo.config.models import Sampling
from ibtpo.engines.sampling import draw, log_probability, nucleus


def warped(logits, sampling):
    """The distribution (rows, vocabulary) of transformers, float64."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    return torch.softmax(warpers(None, logits).double(), dim=1)


def distribution(logits, sampling):
    weights, ids = nucleus(logits / sampling.temperature, sampling.top_k, sampling.top_p)
    full = torch.zeros(logits.shape, dtype=torch.float64).scatter_add(1, ids, weights)
    return full / full.sum(dim=1, keepdim=True)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**31),
    vocabulary=st.integers(1, 40),
    ties=st.booleans(),
    temperature=st.floats(0.2, 2),
    top_k=st.integers(0, 50),
    top_p=st.floats(0.05, 1),
)
def test_the_distribution_is_that_of_transformers(seed, vocabulary, ties, temperature, top_k, top_p):
    logits = 3 * torch.randn(5, vocabulary, generator=torch.Generator().manual_seed(seed))
    if ties:
        logits = logits.round()
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, max_tokens=1)
    expected, found = warped(logits, sampling), distribution(logits, sampling)
    if ties:  # of tokens that tie for the last place of the nucleus, either may stay
        expected, found = expected.sort(dim=1).values, found.sort(dim=1).values
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_top_k_keeps_all_that_tie_for_the_last_place():
    sampling = Sampling(temperature=1.0, top_k=2, top_p=1.0, max_tokens=1)
    logits = torch.tensor([[1.0, 3.0, 1.0, 0.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    assert (distribution(logits, sampling) > 0).tolist() == [[True, True, True, False, True], [True, True, False, False, False]]


def test_draws_by_hand():
    """Probabilities 0.1, 0.6, 0.3 without top-k and top-p: borders at 0.1 and 0.7. With top-p 0.6 the second one alone is left."""
    logits = torch.tensor([[0.1, 0.6, 0.3]]).log().expand(7, -1)
    uniforms = torch.tensor([0.0, 0.09, 0.11, 0.69, 0.71, 0.99, 1 - 2**-53], dtype=torch.float64)
    assert draw(logits, uniforms, Sampling(temperature=1.0, top_k=0, top_p=1.0, max_tokens=1)).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert draw(logits, uniforms, Sampling(temperature=1.0, top_k=0, top_p=0.59, max_tokens=1)).tolist() == [1] * 7
    # 0.6 and 0.3 become 2/3 and 1/3
    assert draw(logits, uniforms, Sampling(temperature=1.0, top_k=2, top_p=1.0, max_tokens=1)).tolist() == [1, 1, 1, 2, 2, 2, 2]


def test_frequencies():
    rows, sampling = 20_000, Sampling(temperature=0.7, top_p=0.9, top_k=4, max_tokens=1)
    logits = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.2, -1.0])
    uniforms = torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    share = np.bincount(draw(logits.expand(rows, -1), uniforms, sampling), minlength=6) / rows
    kept = np.exp(logits.numpy() / 0.7) * (np.arange(6) < 4)
    kept /= kept.sum()
    kept *= np.cumsum(kept) - kept < 0.9  # top-p keeps the token that crosses the threshold
    expected = kept / kept.sum()
    assert np.count_nonzero(expected) == 3
    np.testing.assert_array_less(np.abs(share - expected), 5 * np.sqrt(expected * (1 - expected) / rows) + 1e-12)


def test_log_probability():
    logits = torch.tensor([[0.1, 0.6, 0.3], [8.0, 1.0, 1.0]]).log()
    np.testing.assert_allclose(log_probability(logits, torch.tensor([1, 0])), np.log([0.6, 0.8]), atol=1e-6)


def test_logits_that_are_not_numbers_give_a_log_prob_that_is_none():
    logits = torch.full((2, 5), torch.nan)
    for top_k in (0, 3):
        tokens = draw(logits, torch.tensor([0.0, 0.9], dtype=torch.float64), Sampling(temperature=1.0, top_k=top_k, max_tokens=1))
        assert torch.isnan(log_probability(logits, tokens)).all()


@pytest.mark.parametrize("vocabulary", [1, 3])
def test_a_vocabulary_below_top_k(vocabulary):
    tokens = draw(torch.zeros(4, vocabulary), torch.linspace(0, 0.99, 4).double(), Sampling(top_k=20, max_tokens=1))
    assert set(tokens.tolist()) == set(range(vocabulary))
