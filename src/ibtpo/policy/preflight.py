"""Preflight: compares a model folder with its card (config/models) before anything long starts, and stops with a sentence.

Every check is one that has cost somebody a run: a base model's EOS that chat-tuned prompts never produce, pad equal to EOS by accident,
logits wider than the vocabulary, another chat template, a vocabulary in which the step delimiter hides in other tokens (D.2 rows 13-14).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ibtpo import IbtpoError
from ibtpo.config.cards import Card, load_card
from ibtpo.tree import Segmenter

DELIMITER = b"\n\n"


class PreflightError(IbtpoError):
    """A model that is not what its card says."""


def main(card_name: str, model: str | Path, eos: str | None = None) -> dict[str, Any]:
    """Checks the model folder `model` against a card and returns what was found. Loads the tokenizer and the configuration, no weights.

    eos: the token that is to end a response, if not the tokenizer's own. Raises PreflightError that names every difference, or the
    remedy if there is no model in the folder.
    """
    from transformers import AutoConfig, AutoTokenizer

    card = load_card(card_name)
    if not (Path(model) / "config.json").is_file() or not next(Path(model).glob("*.safetensors"), None):
        raise PreflightError(
            f"{model} holds no model (config.json and *.safetensors): put it there, fetch it with "
            f"`python -m ibtpo fetch-model --card {card_name} --out {model}`, or set policy.folder"
        )
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    if eos:
        if eos not in tokenizer.get_vocab():
            raise PreflightError(f"policy.eos is {eos!r}, which is no token of {model}: write one of its special tokens")
        tokenizer.eos_token = eos
    found = facts(tokenizer, AutoConfig.from_pretrained(str(model)), card)
    if wrong := differences(card, found):
        raise PreflightError(
            f"{model} is not the model of card {card_name!r}: {'; '.join(wrong)}. Take the right folder, or correct the card"
        )
    return found


def facts(tokenizer: Any, config: Any, card: Card) -> dict[str, Any]:
    """What a card says, as it is: of a Hugging Face tokenizer and the configuration of a model."""
    template = tokenizer.chat_template
    pieces = Segmenter.from_tokenizer(tokenizer).token_bytes
    return {
        "eos_id": tokenizer.eos_token_id,
        "pad_id": tokenizer.pad_token_id,
        "vocabulary": len(tokenizer),
        "logits": config.vocab_size,
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "template_sha256": hashlib.sha256(template.encode()).hexdigest() if template else None,
        "delimiter_tokens": sum(DELIMITER in piece for piece in pieces),
        "delimiters": {text: tokenizer.encode(text, add_special_tokens=False) for text in card.delimiters},
    }


def differences(card: Card, found: dict[str, Any]) -> list[str]:
    """A part of a sentence for each difference; what the card leaves null differs from nothing."""
    wrong = []
    if found["eos_id"] not in card.eos_ids:
        wrong.append(f"its tokenizer ends with token {found['eos_id']}, the card with {' or '.join(map(str, card.eos_ids))}")
    for name, text in (
        ("pad_id", "pads with token {}, the card with {}"),
        ("vocabulary", "has {} tokens, the card {}"),
        ("logits", "gives {} logits, the card {}"),
        ("layers", "has {} layers, the card {}"),
        ("width", "is {} wide, the card {}"),
        ("template_sha256", "has the chat template {:.12}, the card {:.12}"),
        ("delimiter_tokens", "has {} tokens with a blank line, the card {}"),
    ):
        expected = getattr(card, name)
        if expected is not None and found[name] != expected:
            wrong.append(f"it {text.format(str(found[name]), str(expected))}")
    if found["template_sha256"] is None:
        wrong.append("it has no chat template")
    for text, token in card.delimiters.items():
        if found["delimiters"].get(text) != [token]:
            wrong.append(f"it reads {text!r} as tokens {found['delimiters'].get(text)}, the card as {token}")
    if found["logits"] < found["vocabulary"]:
        wrong.append(f"it has {found['vocabulary']} tokens, but only {found['logits']} logits")
    return wrong
