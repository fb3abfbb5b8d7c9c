"""The committed README shows what the committed artifacts say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ibtpo.config import Paths, load
from ibtpo.report import main_figure, main_table
from ibtpo.report.readme_block import FIGURE, TABLE, stale

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """What a fresh clone holds of it: README, pictures, presets and published artifacts."""
    for name in ("config", "docs/figures", "results/tiny/published"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    shutil.copy(REPOSITORY / "README.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_table_and_figure_of_the_readme_are_rebuilt_byte_for_byte_from_the_published_artifacts(clone):
    config = load("tiny")
    paths = Paths(config)
    for name, build in ((TABLE, main_table), (FIGURE, main_figure)):
        inputs = [paths.artifact(artifact) for artifact in paths.shown(name)]
        assert all(path.parent.name == "published" for path in inputs), "publish the artifacts of the current configuration"
        build(name, config, inputs, paths.stem(name))
    assert stale(config) == []


def test_the_words_of_the_readme_count_right():
    config, text = load("tiny"), (REPOSITORY / "README.md").read_text()
    assert len(config.evaluate.benchmarks) == 4 and "four procedural benchmarks (two in-domain, two that measure transfer)" in " ".join(
        text.split()
    )
    assert len(config.world.in_domain) == len(config.world.out_of_domain) == 2
    assert len(config.seeds) == 3 and "three seeds" in text
    assert len(text.splitlines()) <= 120
