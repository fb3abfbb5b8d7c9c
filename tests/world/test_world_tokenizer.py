"""The tokenizer: Qwen-like pieces, merged delimiters, ChatML, and a round trip for any text."""

import copy
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from ibtpo.config.models import World
from ibtpo.rollout.chat import encode_prompt
from ibtpo.world import DELIMITER
from ibtpo.world.build import stream
from ibtpo.world.tokenizer import train_tokenizer

SOLUTIONS = [
    DELIMITER.join(problem.steps)
    for name, options in World().in_domain.items()
    for problem in islice(stream(name, options, 0, World().max_steps), 100)
]
TOKENIZER = train_tokenizer(["user\nassistant\n", *SOLUTIONS], 272)


def tokens(text):
    return [TOKENIZER.decode([i]) for i in TOKENIZER.encode(text)]


def test_steps_end_in_bare_and_in_merged_delimiters():
    assert tokens("12+3=15\n\n15-4=11.\n\n") == [*"12+3=15", "\n\n", *"15-4=11", ".\n\n"]


def test_special_tokens():
    assert len(TOKENIZER) == 272
    assert TOKENIZER.eos_token == "<|im_end|>"
    assert TOKENIZER.pad_token == "<|endoftext|>"
    assert TOKENIZER.unk_token is None


def test_prompt_is_chatml_with_single_special_tokens():
    ids = encode_prompt(TOKENIZER, "1+2=")
    assert TOKENIZER.decode(ids) == "<|im_start|>user\n1+2=<|im_end|>\n<|im_start|>assistant\n"
    assert ids[0] == TOKENIZER.convert_tokens_to_ids("<|im_start|>")
    assert ids.count(TOKENIZER.eos_token_id) == 1


def test_a_template_that_knows_thinking_is_told_not_to():
    """D.2 row 35; Qwen3's own template closes an empty thought then."""
    thinking = copy.deepcopy(TOKENIZER)
    thinking.chat_template += "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    assert TOKENIZER.decode(encode_prompt(thinking, "1+2=")).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


@settings(derandomize=True, deadline=None)
@given(st.text() | st.lists(st.sampled_from(["\n", ".", " ", "9", "é", "∯", "make", "\r"])).map("".join))
def test_any_text_round_trips(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_a_saved_tokenizer_is_the_same(tmp_path):
    TOKENIZER.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert [loaded.encode(text) for text in SOLUTIONS] == [TOKENIZER.encode(text) for text in SOLUTIONS]
    assert encode_prompt(loaded, "1+2=") == encode_prompt(TOKENIZER, "1+2=")
    assert (loaded.eos_token_id, loaded.pad_token_id, loaded.padding_side) == (TOKENIZER.eos_token_id, TOKENIZER.pad_token_id, "left")


def test_a_vocabulary_that_cannot_be_reached_is_an_error():
    with pytest.raises(ValueError, match=r"policy.vocabulary is 400 but the demonstrations give \d+ tokens"):
        train_tokenizer(SOLUTIONS, 400)
