"""Fixtures of faults. (`undisturbed`, the run that every disturbed one must equal, is in tests/conftest.py.)"""

from __future__ import annotations

import pytest
from disk import small_disk


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        yield disk
