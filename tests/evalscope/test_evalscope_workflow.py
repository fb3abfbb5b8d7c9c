"""With evaluate.runner: evalscope the same artifacts come from EvalScope."""

from __future__ import annotations

import pytest
from workspace import Project

from ibtpo.evaluation.verdicts import COLUMNS
from ibtpo.io import read_parquet

EVALSCOPE = {
    "evaluate": {"runner": "evalscope", "samples": 2, "pass_at": [1], "benchmarks": ["gcd"], "longer": []},
    "evalscope": {"engine": "in-process"},
}
GIVEN = ("--config", "preset=smoke", *(f"{key}={value}" for key, value in EVALSCOPE.items()))


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "smk dir")


def test_its_rules_are_in_the_place_of_ours(project):
    jobs = project.jobs("table1", *GIVEN)
    assert jobs["evalscope"] == jobs["judge"] == jobs["train"] + 1
    assert not {"sample", "score"} & set(jobs)


def test_its_artifacts_have_names_of_their_own(project):
    ours, theirs = project.paths("smoke", evaluate=EVALSCOPE["evaluate"] | {"runner": "own"}), project.paths("smoke", **EVALSCOPE)
    assert ours.key("scores-base") != theirs.key("scores-base")
    assert ours.run("grpo-seed0") == theirs.run("grpo-seed0")
    faster = project.paths("smoke", **EVALSCOPE | {"evalscope": {"engine": "in-process", "concurrency": 1, "start_minutes": 1.0}})
    assert faster.key("scores-base") == theirs.key("scores-base")


@pytest.mark.slow
def test_a_policy_is_evaluated_by_the_rules(project):
    paths = project.paths("smoke", **EVALSCOPE)
    scores = paths.computed("scores-base")
    project.snakemake("--cores", "1", str(scores), *GIVEN)
    frame = read_parquet(project.path(scores))
    assert list(frame) == COLUMNS and len(frame) == 2 * paths.config.world.benchmark
    assert set(frame["method"]) == {"base"} and frame["reward"].between(0, 1).all()
    assert any(project.folder.glob("results/smoke/disagreements/base-*.md"))
    assert project.jobs(str(scores), *GIVEN) == {}
