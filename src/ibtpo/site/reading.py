"""The YAML files beside this module: words and formulas of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def read_yaml(name: str) -> dict[str, Any]:
    return yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
