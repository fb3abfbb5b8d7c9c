"""Which checkpoint a run goes on from.

A checkpoint counts if every file it needs is there and as it was written; one that was torn by a kill, lost a file or rotted is moved
aside (nothing is deleted) and the one before it is used.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ibtpo import IbtpoError
from ibtpo.io import checksums, write_json

OPTIMISER = {"ddp": "optimizer.pt", "fsdp": "optimizer.bin", "deepspeed-zero3": "global_step*/*optim_states.pt"}  # by train.parallel
SEAL = "checksums.json"  # written last; a checkpoint that was killed before it is judged by its files alone
RANDOM = ("rng_state.pth", "rng_state_*.pth")  # of one process, of each of several


def last_complete(folder: Path, parallel: str = "ddp") -> Path | None:
    """Newest whole checkpoint-N of `folder`, or None. Broken newer ones are renamed to broken-checkpoint-N and reported.

    Raises IbtpoError if it was written with another train.parallel, whose optimiser cannot be read.
    """
    found = sorted(folder.glob("checkpoint-*[0-9]"), key=lambda path: int(path.name.split("-")[1]), reverse=True)
    for path in found:
        fault = defect(path)
        if fault is None:
            kind = next(kind for kind, name in OPTIMISER.items() if any(path.glob(name)))
            if kind != parallel:
                raise IbtpoError(f"{path} was written with train.parallel: {kind}, not {parallel}; go on with {kind} or move it away")
            return path
        aside = path.with_name(f"broken-{path.name}")  # a name that the rotation of old checkpoints does not count
        while aside.exists():
            aside = aside.with_name(f"broken-{aside.name}")
        path.rename(aside)
        print(f"checkpoint {path} is not usable ({fault}); moved to {aside.name}, going on from the one before it")
    return None


def seal(path: Path) -> None:
    """Records what a finished checkpoint holds."""
    write_json(_contents(path), path / SEAL)


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
    if (path / SEAL).is_file():
        return next((f"{name} is not as it was written" for name in _changed(path)), None)
    for names in (("scheduler.pt",), tuple(OPTIMISER.values()), RANDOM):
        if not any(any(path.glob(name)) for name in names):
            return f"{names[0]} is missing"
    written = (file for pattern in ("*.pt", "*.pth", "*.bin", "global_step*/*.pt") for file in path.glob(pattern))
    return next((f"{file.name} is cut off" for file in written if not zipfile.is_zipfile(file)), None)


def _changed(path: Path) -> list[str]:
    """Files of a sealed checkpoint that are missing or hold something else."""
    written, found = json.loads((path / SEAL).read_text()), _contents(path)
    return [name for name, checksum in written.items() if found.get(name) != checksum]


def _contents(path: Path) -> dict[str, str]:
    return {name: checksum for name, checksum in checksums(path, "**/*").items() if name != SEAL}
