"""Step segmentation: D.2 rows 13-16, cases T13-T16."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import END, EOS, PIECES, UNKNOWN, VOCABULARY, encode, letter
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from ibtpo.tree import BlockSegmenter, Segmenter

exact = settings(derandomize=True, deadline=None, max_examples=150)

# The Qwen ids of cases T14-T16.
QWEN = {
    64: "a", 65: "b", 198: "\n", 271: "\n\n", 382: ".\n\n", 1447: ":\n\n", 692: ")\n\n", 2533: "]\n\n", 1406: "\n\n\n",
    1022: "\n\n\n\n", 4192: ".\n\n\n", 871: "\r\n\r\n", 26809: "\n \n", 4710: " \n\n", 19324: "`\n\n", 3407: "。\n\n", 785: "The",
    4226: " answer", 374: " is", 856: " x", 4416: "So", 582: " we", 633: " get", 22446: "tri", 4044: "angle",
}  # fmt: skip
QWEN_EOS = 30_000


@pytest.fixture(scope="module")
def qwen() -> Segmenter:
    token_bytes = [b""] * QWEN_EOS + [b"<|im_end|>"]
    for index, text in QWEN.items():
        token_bytes[index] = text.encode()
    characters = {"∯": (21704, 107), "⅓": (70467, 241), "①": (48312, 254)}
    token_bytes += [b""] * (max(first for first, _ in characters.values()) + 1 - len(token_bytes))
    for character, (first, second) in characters.items():
        token_bytes[first], token_bytes[second] = character.encode()[:2], character.encode()[2:]
    return Segmenter(token_bytes, QWEN_EOS)


def split_text(text: str) -> list[str]:
    """Splits a text whose tokens are its characters and, as in the canonical tokenisation, its runs of newlines."""
    pieces: list[str] = []
    for character in text:
        if character == "\n" and pieces and set(pieces[-1]) == {"\n"}:
            pieces[-1] += character
        else:
            pieces.append(character)
    vocabulary = sorted(set(pieces))
    segmenter = Segmenter([b"", *(piece.encode() for piece in vocabulary)], eos_id=0)
    steps = segmenter.split([1 + vocabulary.index(piece) for piece in pieces])
    return ["".join(vocabulary[token - 1] for token in step) for step in steps]


FENCE = "```python\nx = 1\n\ny = 2\n```"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a\n\nb", ["a\n\n", "b"]),
        ("\n\na\n\nb\n\n", ["\n\na\n\n", "b\n\n"]),
        ("a\n\n\nb", ["a\n\n\n", "b"]),
        ("a\n\n\n\nb", ["a\n\n\n\n", "b"]),
        ("", []),
        ("a\r\n\r\nb", ["a\r\n\r\nb"]),
        ("a\n \nb", ["a\n \nb"]),
        (f"Code:\n\n{FENCE}\n\nDone", ["Code:\n\n", "```python\nx = 1\n\n", "y = 2\n```\n\n", "Done"]),
    ],
)
def test_t13_table(text, steps):
    assert split_text(text) == steps


@pytest.mark.parametrize("end", [271, 382, 1447, 692, 2533, 1406, 1022, 4192, 4710, 19324, 3407])
def test_t14_a_merged_delimiter_closes_the_step(qwen, end):
    assert qwen.split([785, 4226, end, 4416, 582]) == [(785, 4226, end), (4416, 582)]


def test_t14_example_and_separate_newlines(qwen):
    assert qwen.split([785, 4226, 374, 856, 382, 4416, 582, 633]) == [(785, 4226, 374, 856, 382), (4416, 582, 633)]
    assert qwen.split([64, 198, 198, 65]) == [(64, 198, 198), (65,)]
    assert qwen.split([64, 871, 65]) == [(64, 871, 65)]
    assert qwen.split([64, 26809, 65]) == [(64, 26809, 65)]


@pytest.mark.parametrize("character", [(21704, 107), (70467, 241), (48312, 254)])
def test_t15_a_character_of_two_tokens_stays_whole(qwen, character):
    ids = [*character, 271, *character, 382, *character]
    assert qwen.split(ids) == [(*character, 271), (*character, 382), character]


def test_t16_ids_are_kept_as_sampled(qwen):
    assert qwen.split([64, 271, 198, 65]) == [(64, 271), (198, 65)]
    assert qwen.split([22446, 4044, 382, 65]) == [(22446, 4044, 382), (65,)]


def test_delimiter_and_first_byte_in_one_token_wait_for_the_character():
    glued, rest = PIECES.index(b"\n\n\xe2"), PIECES.index(b"\x88\xaf")
    a = letter("a")
    split = Segmenter(VOCABULARY, EOS).split
    assert split([a, glued, rest, a]) == [(a, glued, rest), (a,)]
    assert split([a, END, PIECES.index(b"\xe2\x88")]) == [(a, END), (PIECES.index(b"\xe2\x88"),)], "half a character is not blank"


def test_row_16_eos_joins_the_last_closed_step():
    split = Segmenter(VOCABULARY, EOS).split
    assert split(encode("a|b|$")) == [encode("a|"), encode("b|$")]
    assert split(encode("a|b|")) == [encode("a|"), encode("b|")]
    assert split(encode("a|b$")) == [encode("a|"), encode("b$")]
    assert split((*encode("a|"), 1, EOS)) == [(*encode("a|"), 1, EOS)], "a blank tail is no step"
    assert split(encode("$")) == [(EOS,)]
    assert split((2, 2, EOS)) == [(2, 2, EOS)], "a blank response is one step"


def test_row_16_holds_when_eos_has_bytes(qwen):
    assert qwen.split([64, 271, QWEN_EOS]) == [(64, 271, QWEN_EOS)]


def test_unknown_ids_contribute_nothing():
    split = Segmenter(VOCABULARY, EOS).split
    assert split([UNKNOWN, -1, 10**9]) == [(UNKNOWN, -1, 10**9)]
    assert split([*encode("a|"), UNKNOWN, *encode("b")]) == [encode("a|"), (UNKNOWN, *encode("b"))]
    assert split([-1, 2, letter("a")]) == [(-1, 2, letter("a"))], "-1 must not wrap round to the last token"


def test_without_delimiter_or_without_eos():
    split = Segmenter(VOCABULARY, EOS).split
    assert split(encode("abab")) == [encode("abab")]
    assert split([1] * 50) == [(1,) * 50]


def test_other_delimiters():
    assert Segmenter(VOCABULARY, EOS, b"c").split(encode("acbca")) == [encode("ac"), encode("bc"), encode("a")]
    for bad in (b"", b"\xff"):
        with pytest.raises(ValueError):
            Segmenter(VOCABULARY, EOS, bad)


@st.composite
def cut_texts(draw) -> tuple[list[bytes], list[int]]:
    """A text cut into tokens at random bytes, characters included: (bytes of each token, ids)."""
    text = draw(st.text(alphabet="ab. \n\n\n\n∯é\u3000😀", max_size=24)).encode()
    cuts = sorted(draw(st.sets(st.integers(0, len(text))))) if text else []
    edges = [0, *cuts, len(text)]
    pieces = [text[i:j] for i, j in pairwise(edges) if i < j]
    return [b"", *pieces], list(range(1, len(pieces) + 1))


def decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None  # ends inside a character


@exact
@given(cut_texts(), st.booleans())
def test_the_rule_says_exactly_where_steps_end(tokens, finished):
    """Row 14 read literally, with joint decoding, on every prefix of every step."""
    token_bytes, ids = tokens
    ids = ids + [0] * finished
    steps = Segmenter(token_bytes, eos_id=0).split(ids)
    assert [token for step in steps for token in step] == ids
    for number, step in enumerate(steps):
        joined = [b"".join(token_bytes[token] for token in step[:end]) for end in range(len(step) + 1)]
        texts = [decode(data) for data in joined]
        closes = [text is not None and "\n\n" in text.lstrip() for text in texts]
        assert texts[-1] is not None, "cut inside a character"
        if number < len(steps) - 1:
            assert closes.index(True) == len(step), "a step ends where the rule first holds"
        elif True in closes:
            assert not texts[-1][len(texts[closes.index(True)]) :].strip(), "only a blank tail joins the last step"
        assert texts[-1].strip() or len(steps) == 1, "blank step"


tokens = st.sampled_from(range(1, UNKNOWN + 1))


@exact
@given(st.lists(tokens, max_size=12), st.lists(tokens, max_size=12))
def test_prefix_consistency(prefix, rest):
    """Steps before the last of a prefix stay as they are, whatever follows; so a branch continues the same tree."""
    split = Segmenter(VOCABULARY, EOS).split
    before, whole = split(prefix), split(prefix + rest)
    assert whole[: len(before[:-1])] == before[:-1]


@exact
@given(st.lists(tokens, max_size=16), st.lists(tokens, max_size=8))
def test_a_branch_splits_like_the_whole_response(ids, rest):
    """split(prefix) + split(continuation) == split(prefix + continuation) at every inner boundary."""
    split = Segmenter(VOCABULARY, EOS).split
    steps = split(ids)
    continuation = [*rest, letter("z")]  # not blank
    for number in range(len(steps)):
        prefix = [token for step in steps[:number] for token in step]
        assert steps[:number] + split(continuation) == split(prefix + continuation)


@exact
@given(st.lists(tokens, max_size=16), st.lists(tokens, max_size=12))
def test_behind_any_prefix_steps_end_where_those_of_the_whole_response_do(prefix, rest):
    """Also where the prefix ends inside a step, or inside a character (a fork of EPTree)."""
    segmenter = Segmenter(VOCABULARY, EOS)
    whole = segmenter.ends(prefix + rest)
    assert segmenter.ends(rest, prefix) == [end - len(prefix) for end in whole if end > len(prefix)]
    assert [token for step in segmenter.split(rest, prefix) for token in step] == rest
    closed = [end for end in whole if end <= len(prefix)]
    if closed:
        assert segmenter.ends(rest, prefix[closed[-1] :]) == segmenter.ends(rest, prefix), "only the open step counts"


def test_the_rest_of_a_step_behind_its_beginning():
    split = Segmenter(VOCABULARY, EOS).split
    assert split((2, letter("b")), encode("a")) == [(2,), encode("b")], "a delimiter after text that the prefix holds"
    assert split((2, letter("b")), encode("a|")) == [(2, letter("b"))], "leading white space"
    assert split((1, EOS), encode("a|")) == [(1, EOS)], "a blank tail cannot join a step of the prefix"


@exact
@given(st.lists(tokens, max_size=30), st.integers(0, 30), st.integers(1, 9))
def test_blocks_are_counted_from_the_root(ids, cut, size):
    split = BlockSegmenter(Segmenter(VOCABULARY, EOS), size).split
    blocks = split(ids)
    assert [token for block in blocks for token in block] == ids and all(len(block) == size for block in blocks[:-1])
    assert not blocks or 1 <= len(blocks[-1]) <= size
    cut = min(cut, len(ids))
    assert [len(b) for b in split(ids[cut:], ids[:cut])] == [
        b for b in np.diff([cut, *range(cut - cut % size + size, len(ids), size), len(ids)]) if b
    ]


def test_a_block_has_at_least_one_token():
    with pytest.raises(ValueError, match="give at least 1"):
        BlockSegmenter(Segmenter(VOCABULARY, EOS), 0)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE with merged newlines, as GPT-2's and Qwen's."""
    model = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(r" ?\w+| ?[^\s\w]+\n*|\s+"), behavior="isolated")
    model.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    model.decoder = decoders.ByteLevel()
    special = [AddedToken("<|end|>", special=True, normalized=False)]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    model.train_from_iterator(["x is 3.\n\ny is ∯.\n\n", "So we get é:\n\n1 = 1"] * 20, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=model, eos_token="<|end|>")
    fast.add_tokens([AddedToken("<think>∯", special=False)])
    return fast


@settings(derandomize=True, deadline=None, max_examples=100)
@given(text=st.text(max_size=30).map(lambda text: text.encode(errors="ignore").decode()))
def test_from_tokenizer_gives_the_bytes_of_every_text(tokenizer, text):
    segmenter = Segmenter.from_tokenizer(tokenizer)
    ids = tokenizer.encode(f"{text}<think>∯{text}", add_special_tokens=False)
    assert b"".join(segmenter.token_bytes[token] for token in ids).decode() == f"{text}<think>∯{text}"


def test_from_tokenizer_alphabet_specials_and_steps(tokenizer):
    segmenter = Segmenter.from_tokenizer(tokenizer)
    assert len(segmenter.token_bytes) == len(tokenizer)
    assert segmenter.eos_id == tokenizer.eos_token_id and segmenter.token_bytes[segmenter.eos_id] == b""
    for byte, character in bytes_to_unicode().items():
        assert segmenter.token_bytes[tokenizer.convert_tokens_to_ids(character)] == bytes([byte])
    ids = tokenizer.encode("x is 3.\n\ny is ∯.\n\nSo<|end|>", add_special_tokens=False)
    assert tokenizer.convert_tokens_to_ids("ĊĊ") not in ids, "the delimiter must be merged for this test to mean something"
    assert [tokenizer.decode(step) for step in segmenter.split(ids)] == ["x is 3.\n\n", "y is ∯.\n\n", "So<|end|>"]


def test_from_tokenizer_refuses_what_it_cannot_read(tokenizer):
    with pytest.raises(ValueError, match="no eos_token"):
        Segmenter.from_tokenizer(PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer))
    pieces = Tokenizer(models.BPE(vocab={"</s>": 0, "▁a": 1}, merges=[]))
    with pytest.raises(ValueError, match=r"token 1 .* byte-level"):
        Segmenter.from_tokenizer(PreTrainedTokenizerFast(tokenizer_object=pieces, eos_token="</s>"))
