"""The chat prompt of a problem, as the tokenizer's own template has it."""

from __future__ import annotations

from collections.abc import Sequence

from ibtpo import IbtpoError


def encode_prompt(tokenizer, prompt: str, system: str = "", examples: Sequence[tuple[str, str]] = ()) -> list[int]:
    """Ids of a chat up to where the assistant starts to answer `prompt`.

    Without `system` it has the template's own system prompt, if there is one. examples: earlier turns, prompts with their responses. A
    template that knows thinking, such as Qwen3's, is told not to (D.2 row 35); others ignore that. Raises IbtpoError without a template.
    """
    if not tokenizer.chat_template:
        raise IbtpoError("the tokenizer has no chat template: set tokenizer.chat_template and save it, or take the template of a relative")
    turns = [("system", system)] * bool(system)
    for question, response in examples:
        turns += [("user", question), ("assistant", response)]
    messages = [{"role": role, "content": content} for role, content in (*turns, ("user", prompt))]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    return tokenizer.encode(text, add_special_tokens=False)
