"""Evaluations of made-up problems against a fake server."""

from __future__ import annotations

from functools import partial

import pytest
from evalscope_helpers import evaluated, make


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """bench(problems, ...): see `make`."""
    return partial(make, tmp_path / "bench marks", monkeypatch)


@pytest.fixture
def run(bench):
    """run(problems, ...) makes them and evaluates `base`."""
    return lambda *arguments, **options: evaluated(bench(*arguments, **options))


@pytest.fixture(scope="module")
def module_run(tmp_path_factory):
    """As `run`, once for a module."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("bench marks")
        yield lambda *arguments, **options: evaluated(make(folder, patch, *arguments, **options))
