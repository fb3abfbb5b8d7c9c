"""A random Llama of a few thousand weights in the place of a real model: its folder, its card, and raw data sets beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
import yaml
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from ibtpo.world.tokenizer import train_tokenizer

TOKENS, LOGITS = 264, 272  # more logits than tokens, as in many real models
WORDS = ("apples", "pears", "plums", "figs", "nuts", "dates", "limes", "kiwis", "grapes", "olives", "beans", "peas")


def save_model(folder: Path) -> PreTrainedTokenizerBase:
    """Writes weights and tokenizer; returns the tokenizer."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer(["6-4=2.\n\n\\boxed{2}\n\nSo it is 2.\n\n"] * 4, TOKENS)
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(vocab_size=LOGITS, max_position_embeddings=4096, initializer_range=0.1, tie_word_embeddings=True, **shape)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def card(tokenizer: PreTrainedTokenizerBase, **changes) -> str:
    """The text of its card."""
    template = hashlib.sha256(tokenizer.chat_template.encode()).hexdigest()
    content = {"hub": None, "revision": None, "licence": "Apache-2.0", "eos_ids": [2, 0], "pad_id": 0}
    return yaml.safe_dump(content | {"vocabulary": TOKENS, "logits": LOGITS, "template_sha256": template} | changes)


def write_raw(folder: Path) -> dict[str, dict]:
    """Raw files of the six data sets of small-real, a few rows each, and the settings in which they differ from the real ones."""
    sums = [{"problem": f"Ada has {n} {word} and buys {n + 3} more {word}. How many {word} has she now?", "answer": str(2 * n + 3)}
            for n, word in enumerate(WORDS, start=2)]  # fmt: skip
    tests = "def check(candidate):\n    assert candidate(1) == 2\n"
    sets = {
        "dapo_math_17k": sums,
        "math500": [{"problem": f"What is ${n}$ squared?", "answer": str(n * n), "level": n % 5 + 1} for n in range(2, 8)],
        "aime24": [{"problem": f"Find the last digit of $7^{{{n}}}$.", "answer": str(7**n % 10)} for n in range(2, 6)],
        "ifeval": [
            {"key": n, "prompt": f"Name {n} birds without commas.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
            for n in range(3, 7)
        ],
        "humaneval": [
            {
                "task_id": f"HumanEval/{n}",
                "prompt": f'def add{n}(x):\n    """x + 1"""\n',
                "test": tests,
                "entry_point": f"add{n}",
                "canonical_solution": "    return x + 1\n",
            }
            for n in range(3)
        ],
    }
    for name, rows in sets.items():
        path = folder / name / "rows.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {name: {"rows": [len(rows)]} for name, rows in sets.items()}
