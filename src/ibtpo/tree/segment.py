"""Cut a response into reasoning steps, on token ids.

IB-TPO (arXiv 2605.28109): a step ends at a blank line ("\\n\\n"). The paper does not say how the cut falls on tokens; the rule is [OURS]
(D.2 rows 13-16): close a step after token t iff the text since the last boundary, without its leading white space, contains the delimiter.
The rule looks only backwards, so the prefix of a branch always splits in the same way, whatever follows it.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise, repeat

from ibtpo import IbtpoError

WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())  # all that str.strip knows
BLANK = re.compile(b"(?:" + b"|".join(re.escape(character.encode("utf-8")) for character in WHITE_SPACE) + b")*")


class Segmenter:
    """Splits token ids into steps; text is used to decide, never to re-tokenise.

    token_bytes: the bytes of each token id (shape: vocabulary; an id outside contributes nothing). eos_id: the end-of-sequence id; it
    contributes nothing either. delimiter: UTF-8 bytes. Raises ValueError when the delimiter is empty or not UTF-8.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_id: int, delimiter: bytes = b"\n\n") -> None:
        if not delimiter:
            raise ValueError("the step delimiter is empty; give at least one byte, such as b'\\n\\n'")
        self.token_bytes = token_bytes
        self.eos_id = eos_id
        delimiter.decode("utf-8")  # a UnicodeDecodeError is a ValueError
        self.delimiter = delimiter
        self._pieces = {token: piece for token, piece in enumerate(token_bytes) if token != eos_id}

    @classmethod
    def from_tokenizer(cls, tokenizer, delimiter: bytes = b"\n\n") -> Segmenter:
        """The segmenter of a Hugging Face tokenizer with a byte-level BPE vocabulary (GPT-2, Qwen, Llama 3).

        Special tokens contribute nothing, other added tokens their literal text. Raises ValueError when the tokenizer has no EOS or when
        its vocabulary is not byte-level.
        """
        if tokenizer.eos_token_id is None:
            raise IbtpoError("the tokenizer has no eos_token; set one before building a Segmenter")
        added = tokenizer.added_tokens_decoder
        vocabulary = {index: token for token, index in tokenizer.get_vocab().items() if index not in added}
        token_bytes = [b""] * (1 + max([*vocabulary, *added]))
        for index, token in vocabulary.items():
            try:
                token_bytes[index] = bytes(BYTE_OF_CHARACTER[character] for character in token)
            except KeyError as error:
                hint = "take a model with byte-level BPE, or give Segmenter the bytes of each token"
                raise IbtpoError(f"token {index} ({token!r}) is not byte-level: {hint}") from error
        for index, token in added.items():
            token_bytes[index] = b"" if token.special else token.content.encode("utf-8")
        return cls(token_bytes, tokenizer.eos_token_id, delimiter)

    def split(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """The steps of a response behind `prefix` (response ids from the root; it may end inside a step).

        Non-empty tuples of ids whose concatenation is `ids`; no ids give no steps. A blank tail (EOS, white space) joins the last step
        that `ids` closes, so that no step is EOS alone with pi ~ 1 (D.2 row 16).
        """
        ids = tuple(map(int, ids))
        edges = [0, *self.ends(ids, prefix)]
        steps, tail = [ids[start:end] for start, end in pairwise(edges)], ids[edges[-1] :]
        if tail and steps and not self.text(tail).strip():
            steps[-1] += tail
        elif tail:
            steps.append(tail)
        return steps

    def ends(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> list[int]:
        """Where in `ids` behind `prefix` a step ends: rising numbers of tokens, from 1 to len(ids)."""
        pieces = list(map(self._pieces.get, chain(prefix, ids), repeat(b"")))
        data, edges = b"".join(pieces), list(accumulate(map(len, pieces)))  # the text so far, and the byte at which each token ends
        found, start = [], 0
        while (at := data.find(self.delimiter, BLANK.match(data, start).end())) >= 0:
            token = bisect_left(edges, at + len(self.delimiter))  # the first one to hold the whole delimiter
            while token < len(edges) and _inside_character(data, edges[token]):
                token += 1
            if token == len(edges):
                break
            start = edges[token]
            found.append(token + 1 - len(prefix))
        return [end for end in found if end > 0]

    def piece(self, token: int) -> bytes:
        """The bytes of a token; none for EOS and for an id outside the vocabulary."""
        return self._pieces.get(token, b"")

    def text(self, ids: Sequence[int]) -> str:
        """The text of `ids`, to be read, never to be tokenised again; bytes that are no whole character become U+FFFD."""
        return b"".join(map(self._pieces.get, ids, repeat(b""))).decode("utf-8", "replace")


class BlockSegmenter(Segmenter):
    """Cuts every `size` tokens of a response, whatever they say (TreePO, C.6). Raises ValueError unless size >= 1."""

    def __init__(self, plain: Segmenter, size: int) -> None:
        if size < 1:
            raise ValueError(f"a block of {size} tokens; give at least 1")
        vars(self).update(vars(plain))
        self.size = size

    def split(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """The blocks of `ids` behind `prefix`, counted from the root; the last one may be shorter."""
        ids = tuple(map(int, ids))
        edges = [0, *range(self.size - len(prefix) % self.size, len(ids), self.size), len(ids)]
        return [ids[start:end] for start, end in pairwise(edges) if start < end]


def _inside_character(data: bytes, edge: int) -> bool:
    """Whether the bytes before `edge` end with the beginning of a UTF-8 character."""
    last = data[max(0, edge - 3) : edge]  # such a beginning has at most three bytes
    return not last.isascii() and codecs.utf_8_decode(last, "replace", False)[1] < len(last)


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others for the characters from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + rank): byte for rank, byte in enumerate(others)}


BYTE_OF_CHARACTER = _byte_of_character()
