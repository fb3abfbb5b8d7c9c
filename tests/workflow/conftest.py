"""Projects to run Snakemake in."""

from __future__ import annotations

import pytest
from workspace import Project


@pytest.fixture
def project(tmp_path) -> Project:
    """A fresh clone."""
    return Project(tmp_path / "smk dir")


@pytest.fixture(scope="session")
def _finished(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("finished") / "smk dir")
    project.pretend()
    return project


@pytest.fixture
def finished(_finished, tmp_path) -> Project:
    """A project in which everything of the tiny preset seems to have been made."""
    return _finished.copy(tmp_path / "finished dir")
