"""TensorBoard and Weights & Biases, off unless train.trackers names them; what they write lies in the folder of the run.

They come from transformers and get TRL's logs by themselves, and every row of metrics.jsonl from `Session.record`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

from transformers.integrations import get_available_reporting_integrations

from ibtpo import IbtpoError


def check(trackers: Sequence[str]) -> None:
    """Raises IbtpoError, naming the remedy, for a tracker that is not installed."""
    missing = [name for name in trackers if name not in get_available_reporting_integrations()]
    if missing:
        raise IbtpoError(f"train.trackers names {missing[0]}, which is not installed: pip install {missing[0]}, or take it out of the list")


def in_folder(run: Path) -> AbstractContextManager:
    """The environment in which the trackers write into `run`, and go on there after a kill; what is set already stays as it is."""
    settings = {
        "TENSORBOARD_LOGGING_DIR": str(run / "tensorboard"),
        "WANDB_DIR": str(run),
        "WANDB_PROJECT": "ibtpo",
        "WANDB_RUN_ID": run.name,
        "WANDB_RESUME": "allow",
    }
    return patch.dict(os.environ, {name: value for name, value in settings.items() if name not in os.environ})
