"""Bad input and bad luck: a mistake in the configuration, a failing job, two Snakemakes at once, a killed Snakemake (T26, T27)."""

import os
import signal

import pytest

SMOKE_DATA = ("data", "--config", "preset=smoke")
JOB_LOG = "results/smoke/logs/data/*.log"  # is there as soon as the job runs


@pytest.mark.parametrize(
    "config, words",
    [
        ("train={klcoef: 0.1}", ["train.klcoef", "Known keys there"]),
        ("train={learning_rate: 1e-6}", ["train.learning_rate", "Write 1.0e-6"]),
        ("preset=tinny", ["no preset 'tinny'", "tiny"]),
    ],
)
def test_mistake_in_the_configuration_is_told_before_anything_runs(project, config, words):
    said = project.snakemake("all", "--config", config, fails=True)
    assert all(word in said for word in words) and "Traceback" not in said
    assert not project.path("results").exists()


def test_failed_job_shows_why_and_leaves_no_output(finished):
    finished.path("results/tiny/tables/table3.md").unlink()
    said = finished.snakemake("table3", fails=True)  # its artifact is an empty file here
    assert "is not a readable Parquet file" in said and str(finished.paths().computed("trees-independent8")) in said
    assert not any(finished.path(path).exists() for path in finished.paths().outputs("table3"))


def test_second_snakemake_is_refused_and_the_first_goes_on(project):
    done = project.path(project.paths("smoke").data / "done.json")
    with project.start(*SMOKE_DATA) as first:
        project.wait_for(JOB_LOG)
        os.killpg(first.pid, signal.SIGSTOP)
        assert not done.exists()
        said = project.snakemake(*SMOKE_DATA, fails=True)
        assert "LockException" in said and "Directory cannot be locked" in said
        os.killpg(first.pid, signal.SIGCONT)
        assert "2 of 2 steps" in first.communicate(timeout=120)[0]
    assert done.exists()
    assert project.jobs(*SMOKE_DATA) == {}


def test_killed_snakemake_starts_again_after_unlocking(project):
    with project.start(*SMOKE_DATA) as first:
        project.wait_for(JOB_LOG)
        os.killpg(first.pid, signal.SIGKILL)
    assert "--unlock" in project.snakemake(*SMOKE_DATA, fails=True)
    project.snakemake("--unlock", *SMOKE_DATA)
    assert "2 of 2 steps" in project.snakemake(*SMOKE_DATA)
