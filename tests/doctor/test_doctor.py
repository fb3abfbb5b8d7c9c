"""The doctor's findings: versions against a lock, what a job needs against what there is, and the verdict."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from ibtpo import IbtpoError
from ibtpo.__main__ import main
from ibtpo.config import load
from ibtpo.operations import doctor
from ibtpo.operations.doctor import FAIL, OK, WARN, Finding, differences, examine, locked, report

GPU = "NVIDIA A100-SXM4-80GB, 81920 MiB, 580.1"


def lines(findings):
    return {finding.what: finding for finding in findings}


@pytest.fixture
def machine(monkeypatch):
    """Function: a machine of 100 GiB without Slurm that has everything of a lock, with some GPUs."""

    def make(gpus=(), memory=100.0, version="2.13.0+cpu", sinfo=""):
        monkeypatch.setattr(doctor, "hardware", lambda: {"cpu": "Test CPU", "memory_gib": memory, "gpus": list(gpus)})
        monkeypatch.setattr(doctor, "slurm", lambda: sinfo)
        monkeypatch.setattr(doctor, "_packages", lambda config: [Finding("packages", "all", "lock")])
        monkeypatch.setattr(doctor.metadata, "version", lambda name: version)
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**15))
        monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(64)))

    return make


def test_locks_of_the_project_are_read():
    for path in doctor.LOCKS.values():
        assert locked(path)["torch"] == "2.13.0"


def test_differences_name_both_versions_and_ignore_spelling_and_build():
    wanted = {"a-b": "1", "torch": "2.0", "gone": "3", "old": "2"}
    assert differences(wanted, {"a-b": "1", "torch": "2.0+cpu", "old": "1"}) == ["gone missing (lock: 3)", "old 1 (lock: 2)"]


@pytest.mark.parametrize("text, words", [("a==1\nb\n", "'b' pins no version"), (None, "cannot read")])
def test_a_lock_that_is_none(tmp_path, text, words):
    path = tmp_path / "x.lock"
    if text:
        path.write_text(text)
    with pytest.raises(IbtpoError, match=words):
        locked(path)


def test_packages_are_compared_with_the_lock(tmp_path, monkeypatch):
    numpy = metadata.version("numpy")
    lock = tmp_path / "cpu.lock"
    monkeypatch.setitem(doctor.LOCKS, "cpu", lock)
    lock.write_text(f"# comment\nNumPy=={numpy}\n")
    (count,) = doctor._packages(load("tiny"))
    assert (count.found, count.verdict) == ("1 of 1 as locked", OK)
    lock.write_text("".join(f"nosuch{i}==1\n" for i in range(10)) + f"numpy=={numpy}\n")
    count, *named = doctor._packages(load("tiny"))
    assert (count.found, count.verdict) == ("1 of 11 as locked", FAIL)
    assert named[0].found == "nosuch0 missing (lock: 1)" and named[-1].found == "and 2 more"


def test_tiny_needs_no_gpu(machine):
    machine()
    found = lines(examine(load("tiny")))
    assert {finding.verdict for name, finding in found.items() if name != "workflow"} == {OK}
    assert found["GPUs"].found == "none"


def test_the_papers_scale_needs_its_gpus_memory_and_another_torch(machine):
    machine(gpus=[GPU] * 4)
    found = lines(examine(load("qwen3-8b")))
    assert [found[name].verdict for name in ("GPUs", "memory", "torch")] == [FAIL, FAIL, FAIL]
    assert found["GPUs"].found == f"4 x {GPU}" and found["GPUs"].wanted == "8 for the largest job"
    machine(gpus=[GPU] * 8, memory=1000.0, version="2.13.0")
    found = lines(examine(load("qwen3-8b")))
    assert [found[name].verdict for name in ("GPUs", "memory", "torch")] == [OK, OK, OK]


def test_where_there_is_slurm_the_nodes_may_have_what_this_machine_has_not(machine):
    machine(version="2.13.0", sinfo="slurm 23.11, gpu 4 nodes gpu:8")
    found = lines(examine(load("qwen3-8b")))
    assert [found[name].verdict for name in ("GPUs", "memory", "torch")] == [WARN, WARN, OK]


def test_disk_for_the_runs_of_the_outputs(machine, monkeypatch):
    machine()
    found = lines(examine(load("qwen3-14b")))["disk"]
    runs = 3
    assert found.wanted == f"{1 + (runs * 28 + 4) * 14.8e9 / 2**30:,.0f} GiB for 3 runs"
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**11))
    assert lines(examine(load("qwen3-14b")))["disk"].verdict == FAIL


def test_sinfo_is_asked(tmp_path, monkeypatch):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text('#!/bin/sh\ncase "$1" in --version) echo slurm 23.11.4;; *) echo "gpu* 4 nodes gpu:a100:8";; esac\n')
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert doctor.slurm() == "slurm 23.11.4, gpu* 4 nodes gpu:a100:8"
    sinfo.write_text("#!/bin/sh\nexit 1\n")
    assert doctor.slurm() == doctor.SILENT
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert doctor.slurm() == ""


def test_a_locked_workflow_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctor._workflow_lock().verdict == OK
    Path(".snakemake/locks").mkdir(parents=True)
    Path(".snakemake/locks/0.input.lock").touch()
    assert doctor._workflow_lock().verdict == WARN


def test_the_report_and_the_exit_code(machine, capsys):
    text = report([Finding("a", "b", "c"), Finding("d", "e", "f", FAIL)])
    assert text.splitlines()[-1] == "Not ready: d." and "FAIL" in text
    machine(gpus=[GPU])
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Ready."
    assert main(["--preset", "qwen3-8b", "doctor"]) == 1
    assert "Not ready: torch" in capsys.readouterr().out
