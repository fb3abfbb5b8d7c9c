"""The small-real preset as a workflow, on a random double of the real model and a few rows of every data set."""

from __future__ import annotations

import json
from pathlib import Path

import double
import pandas as pd
import pytest
import yaml
from workspace import Project

JOBS = {"benchmark": 5, "corpus": 1, "build_problems": 2, "link_model": 1, "train": 2, "table1": 1, "all": 1}


class Real:
    """A project with a model and raw data, and the arguments that point Snakemake to them."""

    def __init__(self, folder: Path):
        self.project = Project(folder)
        tokenizer = double.save_model(folder / "models" / "double")
        (folder / "config" / "models" / "double.yaml").write_text(double.card(tokenizer))
        overrides = {
            "policy": {"card": str(folder / "config" / "models" / "double.yaml"), "folder": "models/double"},
            "corpora": {"data_root": "raw", "sources": double.write_raw(folder / "raw")},
            "sampling": {"max_tokens": 16},
            "engine": {"kv_cache_gib": 0.1},
            "samplers": {"treepo12": {"segment": 8, "depth": 8}},
        }
        (folder / "mine.yaml").write_text(yaml.safe_dump({"preset": "small-real", **overrides}))
        self.arguments = ("all", "--configfile", "mine.yaml")
        self.paths = self.project.paths("small-real", **overrides)

    def jobs(self, *arguments: str) -> dict[str, int]:
        return self.project.jobs(*self.arguments, *arguments)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    return Real(tmp_path_factory.mktemp("real") / "real dir")


def test_what_would_run(real):
    jobs = real.jobs()
    assert {rule: jobs.get(rule) for rule in JOBS} == JOBS
    assert not {"build_data", "train_policy", "fetch_model", "fetch_one"} & set(jobs), "nothing is fetched by itself"


def test_a_corrected_folder_is_linked_again_and_the_same_weights_leave_the_rest_alone(real, tmp_path):
    """`snakemake policy` by itself: another call then finds the done.json that it knows."""
    project, given = real.project.copy(tmp_path / "a copy"), ("--configfile", "mine.yaml")
    project.snakemake("policy", *given)
    trained = real.paths.run("grpo-seed0") / "done.json"
    for path in (real.paths.data / "done.json", trained):
        project.path(path).parent.mkdir(parents=True, exist_ok=True)
        project.path(path).write_text("{}")
    project.snakemake("--touch", str(trained), "--forcerun", "train", *given)
    assert project.jobs(str(trained), *given) == {}

    place = project.folder / "models" / "double"
    moved = (*given, "--config", "policy={folder: models/elsewhere}")
    place.rename(place.with_name("elsewhere"))
    assert project.jobs(str(trained), *moved) == {"link_model": 1, "train": 1}, "in one go nobody knows yet that the content stays"
    assert project.jobs("policy", *moved) == {"link_model": 1, "policy": 1}
    project.snakemake("policy", *moved)
    assert project.jobs(str(trained), *moved) == {}


def test_missing_data_and_models_are_told_by_the_job_that_needs_them(real, tmp_path):
    """A fresh clone with nothing in it but the preset: each log says what to fetch."""
    project = Project(tmp_path / "bare")
    project.snakemake("--keep-going", "all", "--config", "preset=small-real", fails=True)
    logs = {path.name: path.read_text() for path in (project.folder / "results").rglob("*.log")}
    said = "\n".join(logs.values())
    assert "data/raw/math500 holds no data (test.jsonl): fetch it, or point data_root" in said
    assert "fetch-model --card smollm2-135m-instruct" in said


@pytest.mark.slow
def test_from_raw_files_to_the_table(real):
    project = real.project
    project.snakemake("--profile", "profiles/local", *real.arguments)
    table = pd.read_csv(project.path(real.paths.root / "tables" / "table1.csv"))
    measured = table[table["grid"].str.startswith("Measured")]
    config = real.paths.config
    assert set(measured["row"]) == {"base policy", "GRPO", "IB-TPO"}
    assert set(config.evaluate.benchmarks) <= set(measured["column"])
    cells = measured[measured["column"].isin(config.evaluate.benchmarks)]
    assert (cells["n_problems"].dropna() == 3).all() and (cells["n_samples"].dropna() == 4).all()
    for policy in real.paths.runs:
        if policy in ("grpo-seed0", "ibtpo-seed0"):
            run = project.path(real.paths.run(policy))
            rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            assert [row["step"] for row in rows if "train/loss" in row] == [1, 2, 3]
            assert (run / "final" / "config.json").is_file()
    report = json.loads(project.path(real.paths.corpus("dapo_math_17k")).with_suffix(".json").read_text())
    assert {row["benchmark"] for row in report["contamination"]} == set(config.corpora.checked)
    assert real.jobs() == {}
    (project.folder / "raw").rename(project.folder / "elsewhere")
    assert real.jobs() == {}, "what was made of raw data needs it no more"
