"""How a training command is started: by Python, or by accelerate's launcher in several processes at once."""

from __future__ import annotations

import sys

from ibtpo.config.load import FOLDER
from ibtpo.config.models import Train


def launcher(train: Train, python: str = sys.executable) -> list[str]:
    """What goes before `-m ibtpo train ...` on the command line. One start, whatever the number of processes; the port is a free one."""
    if train.processes == 1:
        return [python]
    settings = FOLDER / "accelerate" / f"{train.parallel}.yaml"
    numbers = ["--num_processes", str(train.processes), "--main_process_port", "0"]
    return [python, "-m", "accelerate.commands.launch", "--config_file", str(settings), *numbers]
