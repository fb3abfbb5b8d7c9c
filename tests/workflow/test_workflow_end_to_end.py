"""The smoke preset from nothing to tables and figures, by the rules everybody uses; then what a kill leaves behind, and publishing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal

import pandas as pd
import pytest
from workspace import Project

from ibtpo.config.paths import FIGURES, TABLES

SMOKE = ("--profile", "profiles/local", "all", "--config", "preset=smoke")
TIMED = ("table7", "table8", "rollouts", "figure8")  # no two measurements take the same time
OUTPUTS = [*(f"tables/{name}" for name in TABLES), *(f"figures/{name}" for name in FIGURES)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """The whole smoke run, in a folder with a space and a letter outside ASCII in its name."""
    project = Project(tmp_path_factory.mktemp("whole") / "smoke tést")
    project.snakemake(*SMOKE)
    return project


def digests(project: Project) -> dict[str, str]:
    root = project.folder / "results" / "smoke"
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for stem in OUTPUTS
        for path in sorted(root.glob(f"{stem}.*"))
    }


def test_everything_is_made_once(finished):
    made = set(digests(finished))
    tables = {f"tables/{name}.{kind}" for name in TABLES for kind in ("md", "csv", "tex", "caption.txt", "sources.json")}
    assert made == tables | {f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "pdf", "png", "caption.txt")}
    assert finished.jobs(*SMOKE) == {}


def test_the_table_counts_what_was_sampled(finished):
    """Every cell's numbers can be recounted from the scores, which were not written by the table's code."""
    root = finished.folder / "results" / "smoke"
    table = pd.read_csv(root / "tables" / "table1.csv")
    measured = table[table["grid"].str.startswith("Measured")]
    config = finished.paths("smoke").config
    for method in config.tables["table1"]:
        frames = [pd.read_parquet(path) for path in root.glob(f"artifacts/scores-{method}-seed*.parquet")]
        scores = pd.concat(frames)
        assert len(frames) == len(config.seeds)
        for benchmark in config.evaluate.benchmarks:
            row = measured[(measured["row"] == config.methods[method].title) & (measured["column"] == benchmark)]
            assert row["value"].item() == pytest.approx(100 * scores["reward"][scores["benchmark"] == benchmark].mean())
            assert row["n_problems"].item() == config.world.benchmark and row["n_samples"].item() == config.evaluate.samples


def test_vllm_serves_the_same_rules(finished, tmp_path):
    """The smoke preset samples with plain transformers; here the other engine trains a method in the same workflow."""
    project = finished.copy(tmp_path / "vllm")
    run = project.path(project.paths("smoke", engine={"kind": "vllm"}).run("ibtpo-seed0"))
    assert not run.exists()
    project.snakemake(str(run.relative_to(project.folder) / "done.json"), "--config", "preset=smoke", "engine={kind: vllm}")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "train/loss" in row] == [1, 2]
    assert all(row["train/tokens"] > 0 for row in rows if "train/loss" in row)


def test_a_run_says_what_it_was_made_with(finished):
    for path in finished.folder.glob("results/smoke/runs/*/run.json"):
        record = json.loads(path.read_text())
        assert path.parent.name.endswith(record["config_hash"])
        assert {"seed", "packages", "python", "cores", "started", "method", "sampler", "train"} <= set(record)


def test_a_killed_workflow_goes_on_and_ends_in_the_same_bytes(finished, tmp_path):
    """SIGKILL to Snakemake and all its jobs in the middle of training; then unlock, run again, compare."""
    project = finished.copy(tmp_path / "killed")
    root = project.folder / "results" / "smoke"
    for name in ("runs", "artifacts", "tables", "figures"):
        shutil.rmtree(root / name)
    with project.start(*SMOKE) as process:
        project.wait_for("results/smoke/runs/ibtpo-*/checkpoints/checkpoint-2/trainer_state.json")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not list(root.glob("tables/table1.*"))  # it needs the run that was killed
    assert "LockException" in project.snakemake(*SMOKE, fails=True)
    project.snakemake("--unlock", *SMOKE)
    project.snakemake(*SMOKE)
    first, again = digests(finished), digests(project)
    assert first.keys() == again.keys()
    assert {name for name in first if first[name] != again[name]} <= {name for name in first if name.split("/")[1].split(".")[0] in TIMED}
    for log in root.glob("runs/*/metrics.jsonl"):
        steps = [row["step"] for row in map(json.loads, log.read_text().splitlines()) if "train/loss" in row]
        assert steps == [1, 2], "an iteration is missing or was counted twice"


def test_published_artifacts_rebuild_tables_and_figures_byte_for_byte(finished, tmp_path):
    project = finished.copy(tmp_path / "published")
    root = project.folder / "results" / "smoke"
    project.snakemake("publish", "--config", "preset=smoke")
    for path in [project.folder / ".snakemake", *(path for path in root.iterdir() if path.name != "published")]:
        shutil.rmtree(path)
    said = project.snakemake(*SMOKE)
    assert project.counts(said) == {"all": 1, **dict.fromkeys(TABLES | FIGURES, 1)}
    assert digests(project) == digests(finished)
    assert "train" in project.jobs("table1", "--config", "preset=smoke", "artifacts=fresh")
