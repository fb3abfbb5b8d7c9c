"""The chat prompt of a problem, as the tokenizer's own template has it."""

from __future__ import annotations


def encode_prompt(tokenizer, prompt: str) -> list[int]:
    """Ids of a one-turn chat up to where the assistant starts."""
    text = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
    return tokenizer.encode(text, add_special_tokens=False)
