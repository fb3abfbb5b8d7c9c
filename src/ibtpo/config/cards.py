"""Model cards: what is known about a model before it is loaded, so that a wrong tokenizer is told in a sentence and not in wrong numbers.

One YAML file per model in config/models/. A value that is not known is null: the preflight prints what it finds there, to be filled in.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from ibtpo.config.load import ConfigError, explain, read_yaml
from ibtpo.config.strict import Strict

FOLDER = Path("config") / "models"  # relative to the working directory


class Card(Strict):
    """One model. Ids are of its own tokenizer."""

    hub: str | None = Field(description="id on the Hugging Face hub; null: the workflow trains it")
    revision: str | None = Field(description="commit of the hub's repository")
    package: str | None = Field(default=None, description="Python package that ships it as GGUF, and from which it is taken")
    licence: str
    eos_ids: tuple[NonNegativeInt, ...] = Field(
        min_length=1, description="tokens that may end a response; the tokenizer's own is one of them"
    )
    pad_id: NonNegativeInt | None
    vocabulary: PositiveInt = Field(description="tokens of the tokenizer, added ones included")
    logits: PositiveInt = Field(description="width of the model's output; ids from `vocabulary` on are padding, and must never be sampled")
    layers: PositiveInt | None = Field(default=None, description="transformer blocks; with the width they tell the sizes of a family apart")
    width: PositiveInt | None = Field(default=None, description="of the residual stream (hidden_size)")
    template_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$", description="of the chat template's text")
    delimiter_tokens: PositiveInt | None = Field(default=None, description='entries of the vocabulary whose text contains "\\n\\n"')
    delimiters: dict[str, NonNegativeInt] = Field(default={}, description="texts that end a step, and the one token that each is")


def load_card(model: str | Path) -> Card:
    """The card of a name in config/models, or of a YAML file. Raises ConfigError for a missing file or a wrong key, with the remedy."""
    path = Path(model) if Path(model).suffix in (".yaml", ".yml") else FOLDER / f"{model}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise ConfigError(f"there is no model card {path.stem!r} ({path} does not exist). Known cards: {known}.")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> Card:
    """The card in a file, read once while the file does not change: every name of an artifact depends on it."""
    try:
        return Card.model_validate_json(json.dumps(read_yaml(path), default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error)}") from None
