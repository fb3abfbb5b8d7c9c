"""Presets of the paper's scale as Snakemake sees them: the right jobs, whose command lines all parse; and conda's environments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from workspace import REPOSITORY, Project

from ibtpo.config import load

SHELLS = """
import json, sys
from ibtpo.__main__ import _parser
from ibtpo.operations.workflow import jobs
found = [job for job in jobs(sys.argv[1], {}, sys.argv[2]) if job.shell]
print(json.dumps([[job.rule, vars(_parser().parse_args(job.arguments))] for job in found]))
"""
REAL = {"link_model": 1, "build_problems": 2, "corpus": 1, "benchmark": 11}  # training data is checked against every benchmark


def trained(runs, curves):
    """Jobs for policies that EvalScope measures, the base policy too."""
    return REAL | {"train": runs, "evalscope": runs + 1, "judge": runs + 1, "metrics": curves}


# Without tables and figures. 25 methods of qwen3-8b: 8 of Table 1, 4 more of Table 2, 4 of Table 4, 1 of Table 5, 1 of Table 7, 7 studies;
# curves of the 8 and of entropy-strong; 14 samplers of Tables 3 and 6
PRESETS = {
    "qwen3-8b": trained(25, 9) | {"offline": 9, "compare": 14, "measure": 3, "forest": 4 * 3},
    "qwen3-1.7b": trained(8, 8) | {"forest": 3 * 3},
    **dict.fromkeys(("qwen3-14b", "qwen3-8b-4k", "qwen3-8b-8k", "llama3.1-8b-code"), trained(3, 3) | {"forest": 3 * 3}),
    **{f"erpo-qwen2.5-{size}": REAL | {"train": 2, "sample": 3, "score": 3, "metrics": 2} for size in ("1.5b", "3b", "7b")},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("presets") / "a project")


def commands(project, preset, target="all"):
    """Rule and arguments of every job below a target that runs a command; a line that does not parse ends this with its error."""
    command = [sys.executable, "-c", SHELLS, preset, target]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_right_jobs_with_command_lines_that_parse(project, preset):
    found = commands(project, preset)
    assert Counter(rule for rule, _ in found) == PRESETS[preset] | dict.fromkeys(load(preset).outputs, 1)
    assert {arguments["preset"] for _, arguments in found} == {preset}
    trainings = [arguments for rule, arguments in found if rule == "train"]
    assert len({(arguments["method"], arguments["seed"]) for arguments in trainings}) == len(trainings)


@pytest.mark.parametrize("preset", ["qwen3-8b", "llama3.1-8b-code", "erpo-qwen2.5-1.5b", "small-real"])
def test_what_is_fetched_is_all_that_is_needed(project, preset):
    """Training data is cleaned against benchmarks that are never measured, and nothing fetches them later."""
    corpora = load(preset).corpora
    needed = {arguments["name"] for rule, arguments in commands(project, preset) if rule in ("benchmark", "corpus")}
    fetched = {arguments["name"] for rule, arguments in commands(project, preset, "fetch") if rule == "fetch_one"}
    assert {corpora.folder(name) for name in fetched} == {corpora.folder(name) for name in needed if corpora.sources[name].hub}


@pytest.mark.parametrize("preset", ["smoke", "small-real"])
def test_the_plan_has_the_jobs_of_a_dry_run(project, preset):
    counts = project.jobs("all", "--config", f"preset={preset}")
    assert Counter(rule for rule, _ in commands(project, preset)) == {rule: n for rule, n in counts.items() if rule != "all"}


def test_the_plan_is_printed_by_a_rule_and_runs_nothing(project):
    said = project.snakemake("plan", "--config", "preset=qwen3-1.7b")
    row = next(line.split() for line in said.splitlines() if line.startswith("train "))
    assert row[1:3] == ["8", "8"] and row[-1] == "model" and float(row[4].replace(",", "")) > 100  # GPU hours
    assert not project.path("results").exists()


CONDA = """#!/bin/sh
# answers what Snakemake asks of conda before it makes environments
case "$*" in
    "info --json") echo '{"conda_prefix": "/nowhere", "platform": "linux-64"}';;
    --version) echo conda 24.7.1;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}';;
    *) exit 1;;
esac
"""


def test_conda_is_used_where_it_is_asked_for_and_nowhere_else(project, tmp_path, monkeypatch):
    """No conda here: a stand-in answers what a dry run asks. It would make an environment for the device, and run that one's Python."""
    conda = tmp_path / "conda"
    conda.write_text(CONDA)
    conda.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(REPOSITORY / "envs", project.folder / "envs")
    flags = ("--dry-run", "--printshellcmds", "all")
    with_conda = project.snakemake("--software-deployment-method", "conda", *flags, "--config", "preset=qwen3-1.7b")
    made = {line.rsplit("/", 1)[-1].split()[0] for line in with_conda.splitlines() if "Conda environment" in line}
    assert made == {"cpu.yaml", "cuda.yaml"}
    assert "python -m ibtpo --preset qwen3-1.7b" in with_conda and sys.executable not in with_conda
    tiny = project.snakemake("--software-deployment-method", "conda", *flags)
    assert "cpu.yaml" in tiny and "cuda.yaml" not in tiny
    assert "onda" not in project.snakemake(*flags).replace("miniconda", "") and sys.executable in project.snakemake(*flags)


def test_every_rule_that_runs_something_has_an_environment():
    for path in (REPOSITORY / "workflow" / "rules").glob("*.smk"):
        for rule in path.read_text().split("rule ")[1:]:
            assert rule.count("shell:") == rule.count("conda:"), (path.name, rule.split(":")[0])
