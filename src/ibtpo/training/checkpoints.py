"""Which checkpoint a run goes on from.

A checkpoint counts if every file it needs is there and whole; one that was torn by a kill or lost a file is moved aside (nothing is
deleted) and the one before it is used.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from safetensors import SafetensorError, safe_open

STATE = ("optimizer.pt", "scheduler.pt", "rng_state.pth")


def last_complete(folder: Path) -> Path | None:
    """Newest whole checkpoint-N of `folder`, or None. Broken newer ones are renamed to broken-checkpoint-N and reported."""
    found = sorted(folder.glob("checkpoint-*[0-9]"), key=lambda path: int(path.name.split("-")[1]), reverse=True)
    for path in found:
        fault = defect(path)
        if fault is None:
            return path
        aside = path.with_name(f"broken-{path.name}")  # a name that the rotation of old checkpoints does not count
        while aside.exists():
            aside = aside.with_name(f"broken-{aside.name}")
        path.rename(aside)
        print(f"checkpoint {path} is not usable ({fault}); moved to {aside.name}, going on from the one before it")
    return None


def defect(path: Path) -> str | None:
    """What is wrong with a checkpoint, in words; None if it is whole."""
    weights = [*path.glob("*model.safetensors"), *path.glob("model-*.safetensors")]
    if not weights:
        return "no weights (*.safetensors)"
    try:
        json.loads((path / "trainer_state.json").read_text())
        for file in weights:
            with safe_open(file, framework="pt"):
                pass
    except (OSError, ValueError, SafetensorError) as error:
        return str(error)
    return next((f"{name} is missing or cut off" for name in STATE if not zipfile.is_zipfile(path / name)), None)
