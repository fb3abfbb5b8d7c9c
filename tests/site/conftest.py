"""One small site for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from artifacts import make_site, small


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Folder of a site with hostile titles."""
    return make_site(small(), tmp_path_factory.mktemp("site"))
