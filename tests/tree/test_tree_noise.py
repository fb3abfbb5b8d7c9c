"""Delimiter noise: D.2 row 28. Causal, consistent along a branch, with the promised rates."""

import numpy as np
import pytest
from helpers import END, EOS, UNKNOWN, VOCABULARY, encode, letter
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.tree import NoisySegmenter, ReasoningTree, Segmenter

exact = settings(derandomize=True, deadline=None, max_examples=150)
PLAIN = Segmenter(VOCABULARY, EOS)
GOLDEN = (8, 12)
tokens = st.lists(st.sampled_from([letter("a"), letter("b"), END, 1, 2, 7, UNKNOWN]), max_size=24)


def noisy(rho=0.4, rate=0.5, key=(0, "q")):
    return NoisySegmenter(PLAIN, rho, rate, key)


@exact
@given(tokens, st.booleans())
def test_without_noise_it_is_the_plain_segmenter(ids, finished):
    ids = ids + [EOS] * finished
    assert noisy(rho=0.0).split(ids) == PLAIN.split(ids)


@exact
@given(tokens, tokens, st.integers(0, 9))
def test_a_prefix_is_cut_alike_whatever_follows(prefix, rest, seed):
    """Causality: the ends inside the prefix are those of the prefix alone, and a branch has the ends of the whole response."""
    segmenter = noisy(key=(seed, "q"))
    inside, whole = segmenter.ends(prefix), segmenter.ends(prefix + rest)
    assert whole == inside + [len(prefix) + end for end in segmenter.ends(rest, prefix)]
    closed = max(0, len(inside) - 1)
    assert segmenter.split(prefix + rest)[:closed] == segmenter.split(prefix)[:closed]


@exact
@given(tokens, st.data())
def test_a_branch_at_any_node_of_a_noisy_tree_gives_the_whole_response(ids, data):
    """Hanging the rest of the same response below one of its nodes finds every node again."""
    if not ids:
        return
    tree = ReasoningTree("q", noisy(), 64)
    whole = tree.add(tree.root, ids, [-0.5] * len(ids), False, 1.0)
    node = data.draw(st.sampled_from(whole.leaf.path[:-1]))
    rest = ids[node.prefix_length :]
    again = tree.add(node, rest, [-0.5] * len(rest), False, 1.0)
    assert again.leaf is whole.leaf and len(tree.nodes) == len(whole.leaf.path)


def test_row_16_holds_under_noise():
    always = NoisySegmenter(PLAIN, 0.999999, 1.0, ("q",))  # drops true ends, ends a step after every other token
    assert always.split(encode("ab|c$")) == [encode("a"), encode("b"), encode("|c$")]


def test_the_rates_are_the_promised_ones():
    """20,000 true ends and 180,000 other tokens: the counts lie within 4 standard deviations of rho n and rho rate n."""
    rho, rate = 0.1, 0.1
    ids = encode("abcdefghi|") * 20_000
    true = set(PLAIN.ends(ids))
    found = noisy(rho, rate, key=(3, "problem")).ends(ids)
    kept, new = len(true & set(found)), len(set(found) - true)
    assert len(true) == 20_000 and abs(kept - 18_000) < 4 * np.sqrt(20_000 * 0.09)
    assert abs(new - 1_800) < 4 * np.sqrt(180_000 * 0.01 * 0.99)
    assert abs(len(found) - 20_000 * (1 - rho + rho * rate * 9)) < 250, "rate = ends per token keeps about their number"


def test_coins_depend_on_key_and_prefix_and_are_fixed_for_ever():
    ids = encode("abcabcabcabcabcabcab|")
    cuts = {key: tuple(noisy(key=key).ends(ids)) for key in [(0, "q"), (1, "q"), (0, "p")]}
    assert len(set(cuts.values())) == 3
    assert cuts[0, "q"] == GOLDEN, "a change moves the nodes of every noisy run: raise slices.REVISION"
    assert noisy().ends(ids[1:]) != [end - 1 for end in cuts[0, "q"] if end > 1], "another prefix, other coins"


@pytest.mark.parametrize(("rho", "rate"), [(-0.1, 0.1), (1.0, 0.1), (0.1, -0.1), (0.1, 1.1)])
def test_bad_rates_are_refused(rho, rate):
    with pytest.raises(ValueError, match=r"must be in \[0, 1\)"):
        noisy(rho, rate)
