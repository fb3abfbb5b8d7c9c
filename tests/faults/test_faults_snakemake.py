"""Snakemake itself in trouble. (Refused second one, stale lock, a kill of everything at once: tests/workflow.)"""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from disk import small_disk
from study import CONFIG
from workspace import TIMEOUT, Project

STARTED = "results/smoke/runs/*/metrics.jsonl"


def training(snakemake) -> psutil.Process:
    """The process that trains, below a running Snakemake."""
    below = psutil.Process(snakemake.pid).children(recursive=True)
    return next(process for process in below if {"ibtpo", "train"} <= {*process.cmdline()} and "python" in process.name())


def assert_same(study, undisturbed) -> None:
    study.check_counts()
    assert study.outcome() == undisturbed.outcome()


def test_terminated_snakemake_ends_its_job_starts_no_other_and_goes_on(undisturbed, tmp_path):
    study = undisturbed.copy(tmp_path / "terminated")
    with study.project.start("table1", *CONFIG) as snakemake:
        study.project.wait_for(STARTED)
        os.kill(snakemake.pid, signal.SIGTERM)
        said = snakemake.communicate(timeout=TIMEOUT)[0]
    assert snakemake.returncode != 0 and "Will exit after finishing currently running jobs" in said
    assert (study.run_folder / "done.json").exists() and not list(study.folder.glob("results/smoke/tables/*"))
    said = study.project.snakemake("table1", *CONFIG)  # no lock was left
    assert study.project.counts(said) == {"sample": 1, "score": 1, "table1": 1}
    assert_same(study, undisturbed)


def test_interrupted_snakemake_ends_its_jobs_and_leaves_no_lock(tmp_path):
    """Ctrl-C in a terminal, which goes to all of its processes. (On a cluster: tests/slurm.)"""
    project, target = Project(tmp_path / "interrupted"), ("data", "--config", "preset=smoke")
    with project.start(*target) as snakemake:
        project.wait_for("results/smoke/logs/data/*.log")
        jobs = psutil.Process(snakemake.pid).children(recursive=True)
        os.killpg(snakemake.pid, signal.SIGINT)
        snakemake.communicate(timeout=TIMEOUT)
    assert snakemake.returncode != 0 and jobs and not any(job.is_running() for job in jobs)
    assert "2 of 2 steps" in project.snakemake(*target)


def test_job_that_outlives_its_killed_snakemake_is_not_disturbed(undisturbed, tmp_path):
    """Only Snakemake was killed (by the out-of-memory killer, say), or the driver on a cluster: its job is still at work."""
    study = undisturbed.copy(tmp_path / "orphan")
    target = str((study.run_folder / "done.json").relative_to(study.folder))
    with study.project.start(target, *CONFIG) as snakemake:
        study.project.wait_for(STARTED)
        orphan = training(snakemake)
        orphan.suspend()
        try:
            snakemake.kill()
            snakemake.wait()
            study.project.snakemake("--unlock", *CONFIG)
            said = study.project.snakemake(target, *CONFIG, fails=True)
            assert "ibtpo train: another process is at work on" in said
            orphan.resume()
            orphan.wait(TIMEOUT)
        finally:
            if orphan.is_running():
                orphan.kill()
    assert (study.run_folder / "done.json").exists()
    study.finish()
    assert_same(study, undisturbed)


def test_full_disk_stops_snakemake_and_it_goes_on_when_there_is_space(undisturbed, disk):
    study = undisturbed.copy(disk.folder / "full", keep="train")
    disk.resize(disk.used)
    assert "No space left on device" in study.project.snakemake("table1", *CONFIG, fails=True)
    disk.resize(1 << 30)
    study.project.snakemake("table1", *CONFIG)
    assert_same(study, undisturbed)


@pytest.fixture(scope="module")
def homeless(undisturbed, tmp_path_factory):
    """A study that Snakemake made in a home, and with caches, in which nobody may write."""
    folder = tmp_path_factory.mktemp("homeless")
    study = undisturbed.copy(folder / "study")
    with small_disk(folder / "home") as home:
        home.make_read_only()
        names = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "MPLCONFIGDIR")
        study.project.environment = {"HOME": str(home.folder)} | {name: str(home.folder / name.lower()) for name in names}
        study.project.snakemake("table1", *CONFIG)
    return study


def test_read_only_home_is_not_needed(homeless, undisturbed):
    """Nor is any place outside the project but the system's folder for temporary files."""
    assert_same(homeless, undisturbed)


def test_output_from_a_time_when_the_clock_was_ahead_is_not_made_again(homeless):
    """Its date is later than that of all that was made of it; but Snakemake knows that it holds what it held then."""
    done = homeless.run_folder / "done.json"
    os.utime(done, times=(done.stat().st_mtime + 86400,) * 2)
    assert homeless.project.jobs("table1", *CONFIG) == {}
