"""Byte-level BPE tokenizer of the tiny policy, trained on its demonstrations, with the traits of Qwen3's that matter to the method.

Digits stand alone and punctuation takes the newlines after it along, so that a step may end in "\\n\\n" or in a merged token such as
".\\n\\n" (D.2 rows 13-14). Any text can be encoded (256 byte tokens, no unknown token); EOS is <|im_end|>, padding is another token.
The chat format is ChatML as in Qwen3's non-thinking mode, without its empty think block.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ibtpo import IbtpoError

PAD, START, EOS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

# Letters with one leading mark | one digit | punctuation with its newlines | newlines | other blanks.
_PIECES = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+")

_CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer of exactly `vocabulary` tokens. Raises IbtpoError if the texts do not have that many merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(_PIECES, behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True, normalized=False) for token in (PAD, START, EOS)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocabulary:
        raise IbtpoError(
            f"policy.vocabulary is {vocabulary} but the demonstrations give {tokenizer.get_vocab_size()} tokens: set it to that"
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        chat_template=_CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
