"""docs/adding-a-method.md is true: its blocks, applied to a copy of the project as they stand, make a method that trains."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ibtpo.config import load
from ibtpo.config.load import ConfigError
from ibtpo.io import read_jsonl

REPOSITORY = Path(__file__).parents[2]
GUIDE = REPOSITORY / "docs" / "adding-a-method.md"
BLOCKS = re.findall(r"^```(\w+)\n# (\S+)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
ROWS = [text.replace("extends: tiny", "extends: smoke") for kind, _, text in BLOCKS if kind == "yaml"]  # smoke: what `world` holds
QUICK = {
    "engine": {"kind": "transformers", "mode": "lockstep"},
    "train": {"iterations": 1, "problems_per_iteration": 2, "minibatches": 1, "probe_problems": 0},
}


class Copy:
    """The project elsewhere; commands run in it and import its package."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("Snakefile", "workflow", "config", "profiles", "slurm", "src"):
            source = REPOSITORY / name
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy(source, folder / name)

    def apply(self, kind: str, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(patched(path.read_text(encoding="utf-8"), text) if kind == "diff" else text, encoding="utf-8")

    def python(self, *arguments: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def patched(text: str, patch: str) -> str:
    """`text` with each run of `-` lines replaced by the `+` lines after it; what is replaced must occur exactly once."""
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", patch, re.MULTILINE):
        before, after = ("\n".join(line[1:] for line in lines.splitlines()) for lines in (old, new))
        assert text.count(f"\n{before}") == 1, f"the guide replaces {before!r}, which occurs {text.count(before)} times"
        text = text.replace(f"\n{before}", f"\n{after}")
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy in which everything that the guide says has been done."""
    copy = Copy(tmp_path_factory.mktemp("guide"))
    for kind, name, text in BLOCKS:
        if kind != "yaml":
            copy.apply(kind, name, text)
    copy.apply("yaml", "config/mine.yaml", ROWS[-1])
    return copy


def test_the_guide_is_short_and_its_blocks_are_all_seen():
    text = GUIDE.read_text(encoding="utf-8")
    assert len(BLOCKS) == text.count("\n```\n") == 9 and len(ROWS) == 2
    assert {name for _, name, _ in BLOCKS} >= {"src/ibtpo/advantages/sign.py", "src/ibtpo/samplers/greedy.py", "config/mine.yaml"}
    assert len(text.splitlines()) < 200
    for name in re.findall(r"`((?:config|docs|tests|src)/[\w./-]+)`", text):
        assert (REPOSITORY / name).exists(), f"the guide names {name}, which is not there"


def test_one_row_makes_a_method_of_known_parts(tmp_path):
    for name in ("methods.yaml", "smoke.yaml", "tiny.yaml"):
        shutil.copy(REPOSITORY / "config" / name, tmp_path / name)
    (tmp_path / "mine.yaml").write_text(ROWS[0], encoding="utf-8")
    config = load(tmp_path / "mine.yaml")
    assert config.methods["ibtpo-clip-higher"].regulariser.clip_high == 0.26 and "ibtpo-clip-higher" in config.tables["table1"]
    (tmp_path / "mine.yaml").write_text(ROWS[0].replace("clip_high", "clip_hihg"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"unknown key .*clip_hihg.* Did you mean .*clip_high"):
        load(tmp_path / "mine.yaml")


def test_without_the_patches_the_parts_are_unknown(tmp_path):
    for name in ("methods.yaml", "smoke.yaml", "tiny.yaml"):
        shutil.copy(REPOSITORY / "config" / name, tmp_path / name)
    (tmp_path / "mine.yaml").write_text(ROWS[1], encoding="utf-8")
    with pytest.raises(ConfigError, match="should be one of"):
        load(tmp_path / "mine.yaml")


def test_the_rows_are_read_and_the_table_asks_for_the_new_method(project):
    config = json.loads(project.python("-m", "ibtpo", "--preset", "mine", "config"))
    assert config["methods"]["sign-greedy"]["advantage"]["name"] == "sign" and config["samplers"]["greedy12"]["name"] == "greedy"
    plan = project.python("-m", "snakemake", "--dry-run", "--config", "preset=mine", "artifacts=fresh", "--", "table1")
    assert re.search(r"runs/sign-greedy-seed0-\w+/done.json", plan) and "scores-sign-greedy-seed0" in plan


def test_the_tests_of_the_toys_pass(project):
    shutil.copy(REPOSITORY / "tests" / "helpers.py", project.folder / "tests" / "helpers.py")
    said = project.python("-m", "pytest", "-q", "-o", "pythonpath=tests", "-p", "no:cacheprovider", "tests/advantages")
    assert "2 passed" in said


def test_the_new_method_trains(project, world, tmp_path):
    quick, out = json.dumps(QUICK), tmp_path / "sign-greedy-seed0"
    where = ("--policy", str(world.policy), "--data", str(world.data), "--out", str(out))
    project.python("-m", "ibtpo", "--preset", "mine", "--set", quick, "train", "--method", "sign-greedy", "--seed", "0", *where)
    assert json.loads((out / "done.json").read_text()) == {"iterations": 1, "optimiser_steps": 1}
    row = next(row for row in read_jsonl(out / "metrics.jsonl") if "train/loss" in row)
    assert row["step"] == 1 and row["train/depth_max"] > 1
    assert (out / "final" / "model.safetensors").is_file()
