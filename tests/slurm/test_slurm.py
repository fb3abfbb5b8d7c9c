"""`snakemake --profile slurm` on a real Slurm: the smallest study as jobs, with a driver that is interrupted and a job that is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from types import SimpleNamespace

import psutil
import pytest
from cluster import GPUS, SECONDS
from study import OVERRIDES, POLICY, Study
from workspace import TIMEOUT, Project

HEAVY, LIGHT = {"memory_mb": 1500, "minutes": 7, "gpus": GPUS}, {"memory_mb": 700, "minutes": 3}
SCARCE, SHORT = {"memory_mb": 120, "minutes": 3}, {"memory_mb": 700, "minutes": 1}
RULES = {"build_data", "train_policy", "train", "sample", "score", "table1"}
# This cluster has no accounting and one file system. Real ones need none of these.
PROFILE = ("--profile", "slurm", "--slurm-status-command", "squeue", "--latency-wait", "5")
EAGER = """
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
from snakemake.cli import main
main()
"""  # a driver that looks after its jobs every second: the executor's waits, meant for jobs of hours, grow by ten seconds each


def config(light: dict[str, int] = LIGHT) -> list[str]:
    others = {"resources": {"heavy": HEAVY, "light": light}, "policy": {"checkpoint_every": 50}}  # they change no number
    return ["--config", "preset=smoke", *(f"{key}={json.dumps(value)}" for key, value in (OVERRIDES | others).items())]


class Driven(Project):
    """A project on the cluster."""

    command = (sys.executable, "-c", EAGER)


def rule(job: dict[str, str]) -> str:
    return job["Comment"].removeprefix("rule_").partition("_wildcards_")[0]


def wait_for_job(cluster, name: str) -> dict[str, str]:
    """A running job of a rule."""
    deadline = time.monotonic() + SECONDS
    while not (found := [job for job in cluster.active() if rule(job) == name and job["JobState"] == "RUNNING"]):
        assert time.monotonic() < deadline, f"waited in vain for a job of {name}"
        time.sleep(0.1)
    return found[0]


def is_of(words: list[str], command: str) -> bool:
    return words[1:3] == ["-m", "ibtpo"] and command in words


def wait_for_process(cluster, command: str) -> psutil.Process:
    """The process of a command of ours in a job."""
    deadline = time.monotonic() + SECONDS
    while not (found := [process for process in cluster.processes() if is_of(process.cmdline(), command)]):
        assert time.monotonic() < deadline, f"waited in vain for a process of {command}"
        time.sleep(0.05)
    return found[0]


@pytest.fixture(scope="module")
def journey(cluster, tmp_path_factory):
    """From nothing to Table 1. `jobs`: all of it; `interrupted`: those before the driver was interrupted; `left`: still there after it."""
    project = Driven(tmp_path_factory.mktemp("journey") / "smoke")
    project.environment = cluster.environment
    project.snakemake(*PROFILE, "policy", *config())

    project.command = Project.command  # waits 40 s before it looks: it would not cancel a job that it is just looking after
    with project.start(*PROFILE, "table1", *config()) as driver:
        project.wait_for("results/smoke/runs/*/checkpoints/checkpoint-2/checksums.json")
        os.kill(driver.pid, signal.SIGINT)
        said = driver.communicate(timeout=SECONDS)[0]
    assert driver.returncode != 0 and "Terminating processes on user request" in said
    interrupted, left = cluster.jobs(), cluster.active()
    deadline = time.monotonic() + SECONDS
    while cluster.active() and time.monotonic() < deadline:
        time.sleep(0.1)

    project.command = Driven.command
    with project.start(*PROFILE, "table1", *config()) as driver:
        lost = wait_for_job(cluster, "train")["JobId"]
        cluster.run("scancel", lost)
        said = driver.communicate(timeout=TIMEOUT)[0]
    assert driver.returncode == 0, said
    study = Study(project, [])
    return SimpleNamespace(project=project, study=study, jobs=cluster.jobs(), interrupted=interrupted, left=left, lost=lost, said=said)


@pytest.fixture
def table(journey):
    """Table 1 of the journey, which is to be made again."""
    path = journey.project.path(journey.study.paths.root) / "tables" / "table1.csv"
    content = path.read_bytes()
    path.unlink()
    yield path
    assert path.read_bytes() == content


def test_every_rule_is_a_job_that_is_named_after_the_project_and_its_rule(journey):
    assert all(job["JobName"].startswith("ibtpo_") for job in journey.jobs)
    ended = Counter(rule(job) for job in journey.jobs if job["JobState"] == "COMPLETED")
    assert set(ended) == {rule(job) for job in journey.jobs} == RULES
    assert ended["train_policy"] == ended["train"] == ended["table1"] == 1
    assert any(job["Comment"] == f"rule_train_wildcards_{journey.study.run_folder.name}" for job in journey.jobs)


def test_every_job_asks_for_what_its_rule_says(journey):
    """One task, so one process start, however many GPUs; a retry asks for more."""
    for job in journey.jobs:
        wanted = HEAVY if rule(job) in ("train_policy", "train", "sample") else LIGHT
        attempt = int(job["MinMemoryNode"].removesuffix("M")) // wanted["memory_mb"]
        assert job["MinMemoryNode"] == f"{attempt * wanted['memory_mb']}M" and job["TimeLimit"] == f"00:{attempt * wanted['minutes']:02}:00"
        if job["NumTasks"] != "N/A":  # what was cancelled before it started has no number of tasks yet
            assert (job["NumNodes"], job["NumTasks"], job["CPUs/Task"]) == ("1", "1", "1")
        assert job.get("TresPerJob") == (f"gres:gpu:{GPUS}" if "gpus" in wanted else None)


def test_every_job_has_a_log_of_its_rule(journey):
    logs = journey.project.folder / "results" / "smoke" / "logs"
    assert {path.parent.name for path in logs.glob("*/*.log")} >= {"data", "policy", "train", "sample", "score", "tables"}
    assert "IB-TPO seed 0" in (logs / "train" / f"{journey.study.run_folder.name}.log").read_text()
    (lost,) = journey.project.folder.glob(f".snakemake/slurm_logs/rule_train/*/{journey.lost}.log")
    assert "CANCELLED" in lost.read_text(), "Slurm's own log of a lost job stays"


def test_interrupted_driver_cancels_its_jobs(journey):
    assert all(job["JobState"] == "COMPLETING" for job in journey.left)
    assert [job["JobState"] for job in journey.interrupted if rule(job) == "train"] in (["CANCELLED"], ["COMPLETING"])


def test_lost_job_is_tried_again_with_more_memory_and_time(journey):
    tries = [(job["JobState"], job["MinMemoryNode"], job["TimeLimit"]) for job in journey.jobs if rule(job) == "train"]
    assert tries[-2:] == [("CANCELLED", "1500M", "00:07:00"), ("COMPLETED", "3000M", "00:14:00")]
    assert "Trying to restart job" in journey.said


def test_next_driver_goes_on_and_ends_in_the_bytes_of_a_local_run(journey, undisturbed):
    """What was made stays; training went on from its checkpoint; no sample twice."""
    assert Counter(rule(job) for job in journey.jobs)["train_policy"] == 1
    assert journey.study.paths.run(POLICY) == undisturbed.paths.run(POLICY)
    journey.study.check_counts()
    assert journey.study.outcome() == undisturbed.outcome()


def test_job_that_takes_too_much_memory_is_killed_and_tried_again_with_more(cluster, journey, table):
    """By Slurm, which looks every second; a try gets 120 MB more than the last."""
    known = len(cluster.jobs())
    journey.project.snakemake(*PROFILE, "--retries", "9", "table1", *config(SCARCE))
    *killed, last = cluster.jobs()[known:]
    said = (cluster.folder / "slurmd.log").read_text()
    assert killed and all(re.search(rf"StepId={job['JobId']}\.\w+ exceeded memory limit", said) for job in killed)
    assert {job["JobState"] for job in killed} == {"FAILED"}, "OUT_OF_MEMORY where control groups look after memory"
    assert last["JobState"] == "COMPLETED" and last["MinMemoryNode"] == f"{SCARCE['memory_mb'] * (len(killed) + 1)}M"


def test_job_that_hangs_is_killed_when_its_time_is_up_and_tried_again_with_more(cluster, journey, table):
    """Its process is stopped, as by a file system that does not answer. A minute is the shortest limit that Slurm knows."""
    known = len(cluster.jobs())
    with journey.project.start(*PROFILE, "table1", *config(SHORT)) as driver:
        hanging = wait_for_process(cluster, "table")
        os.kill(hanging.pid, signal.SIGSTOP)
        said = driver.communicate(timeout=TIMEOUT)[0]
    assert driver.returncode == 0, said
    assert [(job["JobState"], job["TimeLimit"]) for job in cluster.jobs()[known:]] == [("TIMEOUT", "00:01:00"), ("COMPLETED", "00:02:00")]
    assert not hanging.is_running()
