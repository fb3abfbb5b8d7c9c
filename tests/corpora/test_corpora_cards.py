"""Model cards and the preflight that holds a model against its card."""

from pathlib import Path

import pytest
import yaml

from ibtpo.config.cards import load_card
from ibtpo.config.load import ConfigError
from ibtpo.policy.preflight import PreflightError, differences, facts, main

CARDS = sorted(path.stem for path in Path("config/models").glob("*.yaml"))
QWEN = {
    text: [token] for text, token in {"\n\n": 271, ".\n\n": 382, ":\n\n": 1447, ")\n\n": 692, "]\n\n": 2533, "\n\n\n": 1406}.items()
}  # T14


def test_there_is_a_card_for_every_model():
    assert set(CARDS) == {
        *("qwen3-1.7b-base", "qwen3-8b-base", "qwen3-14b-base", "llama-3.1-8b-instruct"),
        *("qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b", "smollm2-135m-instruct", "tiny"),
    }


@pytest.mark.parametrize("name", CARDS)
def test_cards_make_sense(name):
    card = load_card(name)
    assert card.vocabulary <= card.logits and max(card.eos_ids) < card.vocabulary
    assert (card.hub is None) == (name == "tiny")
    if "qwen" in name:
        assert {text: [token] for text, token in card.delimiters.items()} == QWEN and card.delimiter_tokens == 565


RIGHT = {
    "eos_id": 151643,
    "pad_id": 151643,
    "vocabulary": 151669,
    "logits": 151936,
    "layers": 36,
    "width": 4096,
    "template_sha256": "a" * 64,
    "delimiter_tokens": 565,
    "delimiters": QWEN,
}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, None),
        ({"eos_id": 151645}, None),  # either of the card's
        ({"eos_id": 0}, "its tokenizer ends with token 0, the card with 151643 or 151645"),
        ({"pad_id": None}, "it pads with token None, the card with 151643"),
        ({"vocabulary": 151646}, "it has 151646 tokens, the card 151669"),
        ({"logits": 152064}, "it gives 152064 logits, the card 151936"),
        ({"layers": 28}, "it has 28 layers, the card 36"),
        ({"width": 2048}, "it is 2048 wide, the card 4096"),
        ({"delimiter_tokens": 3}, "it has 3 tokens with a blank line, the card 565"),
        ({"delimiters": QWEN | {".\n\n": [13, 271]}}, "it reads '.\\n\\n' as tokens [13, 271], the card as 382"),
    ],
)
def test_every_difference_is_a_sentence(change, sentence):
    assert differences(load_card("qwen3-8b-base"), RIGHT | change) == ([sentence] if sentence else [])


def test_the_sizes_of_a_family_are_told_apart():
    """Their tokenizers are the same, so the shape alone says that a folder holds another size."""
    for family in ("qwen3", "qwen2.5"):
        shapes = [(card.layers, card.width) for card in (load_card(name) for name in CARDS if name.startswith(family))]
        assert len(set(shapes)) == len(shapes) == 3 and all(all(shape) for shape in shapes)


def test_a_card_may_leave_the_shape_open():
    card = load_card("qwen3-8b-base").model_copy(update={"layers": None, "width": None})
    assert differences(card, RIGHT | {"layers": 1, "width": 1}) == []


def test_a_template_that_is_recorded_counts():
    card = load_card("qwen3-8b-base").model_copy(update={"template_sha256": "b" * 64})
    assert differences(card, RIGHT) == ["it has the chat template aaaaaaaaaaaa, the card bbbbbbbbbbbb"]


def test_more_tokens_than_logits():
    card = load_card("tiny").model_copy(update={"vocabulary": 330})
    found = RIGHT | {"eos_id": 2, "pad_id": 0, "vocabulary": 330, "logits": 320, "layers": 3, "width": 96}
    found |= {"template_sha256": card.template_sha256, "delimiter_tokens": 2, "delimiters": {"\n\n": [259], ".\n\n": [268]}}
    assert differences(card, found) == ["it has 330 tokens, but only 320 logits"]


def test_preflight_of_a_real_folder(world, tmp_path):
    """The smoke policy: its own card passes, another model's stops with a sentence."""
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(world.policy)
    tiny = load_card("tiny")
    own = yaml.safe_load(Path("config/models/tiny.yaml").read_text())
    found = facts(tokenizer, AutoConfig.from_pretrained(world.policy), tiny)
    assert found["template_sha256"] == own["template_sha256"] and found["eos_id"] == 2 and found["pad_id"] == 0
    delimiters = {text: ids[0] for text, ids in found["delimiters"].items() if len(ids) == 1}
    assert "\n\n" in delimiters  # a delimiter is a token here as in real vocabularies
    card = tmp_path / "smoke.yaml"
    shape = {key: found[key] for key in ("delimiter_tokens", "layers", "width")}
    card.write_text(yaml.safe_dump(own | {"delimiters": delimiters} | shape))
    assert main(str(card), world.policy) == found | {"delimiters": {text: [token] for text, token in delimiters.items()}}
    with pytest.raises(
        PreflightError, match=r"is not the model of card 'qwen3-8b-base': its tokenizer ends with token 2.*or correct the card"
    ):
        main("qwen3-8b-base", world.policy)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"vocabulry": 3}, "vocabulry"),
        ({"template_sha256": "abc"}, "template_sha256"),
        ({"eos_ids": []}, "eos_ids"),
        ({"vocabulary": "many"}, "vocabulary"),
    ],
)
def test_a_wrong_card_is_told(tmp_path, edit, message):
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(Path("config/models/tiny.yaml").read_text()) | edit))
    with pytest.raises(ConfigError, match=f"card.yaml.*{message}"):
        load_card(path)


def test_an_unknown_card_is_told():
    with pytest.raises(ConfigError, match=r"no model card 'qwen' .*Known cards: llama-3.1-8b-instruct, "):
        load_card("qwen")
