"""The paper's own numbers, from reported.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

MODEL = "Qwen3-8B-Base"


@cache
def reported(table: str) -> dict:
    """Columns and models of a table of the paper, as in the file."""
    return yaml.safe_load(Path(__file__).with_name("reported.yaml").read_text())[table]
