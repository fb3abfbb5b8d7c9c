"""Whether this machine can run a preset: versions against the lock, processors, memory, disk, GPUs, Slurm; a table and a verdict."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from ibtpo import IbtpoError
from ibtpo.config import Config, Paths
from ibtpo.config.resources import Job
from ibtpo.io import hardware
from ibtpo.operations.text import aligned

OK, WARN, FAIL = "ok", "warning", "FAIL"
LOCKS = {"cpu": Path("envs/cpu.lock"), "cuda": Path("envs/cuda.lock")}
SHOWN = 8  # packages that are named
PYTHON = (3, 11)
SILENT = "sinfo does not answer"
BYTES = 2 * 12 + 4  # a parameter: two checkpoints with AdamW's state, and the final weights, in float32


@dataclass(frozen=True)
class Finding:
    """One line of the table."""

    what: str
    found: str
    wanted: str
    verdict: Literal["ok", "warning", "FAIL"] = OK


def examine(config: Config) -> list[Finding]:
    """All findings. What a cluster's nodes may have although this machine does not is a warning where there is Slurm."""
    cluster = slurm()
    elsewhere = WARN if cluster not in ("", SILENT) else FAIL
    here = hardware()
    return [
        _python(),
        *_packages(config),
        _torch(config),
        _cores(config, here, elsewhere),
        _memory(config, here, elsewhere),
        _gpus(config, here, elsewhere),
        _disk(config),
        _results(config),
        _workflow_lock(),
        Finding("Slurm", cluster or "none", "optional: snakemake --profile slurm"),
    ]


def locked(path: Path) -> dict[str, str]:
    """Versions in a lock, by normalised name. Raises IbtpoError if it is not there or a line pins no version."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise IbtpoError(f"cannot read {path}: {error.strerror}; run this in the project's folder") from None
    pins = [line.partition("==") for line in lines if line and not line.startswith("#")]
    loose = [name for name, _, version in pins if not version]
    if loose:
        raise IbtpoError(f"{path}: {loose[0]!r} pins no version")
    return {plain(name): version for name, _, version in pins}


def plain(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def differences(wanted: dict[str, str], installed: dict[str, str]) -> list[str]:
    """Packages of a lock that are missing or of another version; a build's tag (+cpu, +cu130) is no part of the version."""
    there = {name: version.split("+")[0] for name, version in installed.items()}
    return [f"{name} {there.get(name, 'missing')} (lock: {version})" for name, version in wanted.items() if there.get(name) != version]


def slurm() -> str:
    """Slurm's version and partitions as sinfo tells; empty without Slurm, SILENT where there is no cluster behind it."""
    if not shutil.which("sinfo"):
        return ""
    version, partitions = _said("sinfo", "--version"), _said("sinfo", "--noheader", "--format=%P %D nodes %G").replace("\n", "; ")
    return f"{version}, {partitions}" if partitions else SILENT


def report(findings: Iterable[Finding]) -> str:
    """The table and the verdict as text."""
    lines = [("what", "found", "wanted", "verdict"), *((f.what, f.found, f.wanted, f.verdict) for f in findings)]
    rows = aligned(lines)
    failed = dict.fromkeys(what for what, _, _, verdict in lines if what and verdict == FAIL)
    verdict = f"Not ready: {', '.join(failed)}." if failed else "Ready."
    return "\n".join([rows[0], "-" * max(map(len, rows)), *rows[1:], "", verdict])


def main(config: Config) -> int:
    """Prints the report; the exit code is 1 if anything failed."""
    findings = examine(config)
    print(f"Preset {config.preset}, device {config.engine.device}.")
    print(report(findings))
    return int(any(finding.verdict == FAIL for finding in findings))


def _python() -> Finding:
    here = tuple(map(int, platform.python_version_tuple()[:2]))
    return Finding("Python", platform.python_version(), f"{PYTHON[0]}.{PYTHON[1]}", OK if here == PYTHON else FAIL)


def _packages(config: Config) -> list[Finding]:
    lock = LOCKS[config.engine.device]
    wanted = locked(lock)
    off = differences(wanted, {plain(found.name): found.version for found in metadata.distributions()})
    shown = off[:SHOWN] + [f"and {len(off) - SHOWN} more"] * (len(off) > SHOWN)
    count = Finding("packages", f"{len(wanted) - len(off)} of {len(wanted)} as locked", str(lock), FAIL if off else OK)
    return [count, *(Finding("", text, "", FAIL) for text in shown)]


def _torch(config: Config) -> Finding:
    """The build is told by the version's tag: CPU builds carry +cpu, and PyPI's for Linux, with CUDA, none."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding("torch", "missing", "installed", FAIL)
    build = "cpu" if version.endswith("+cpu") else "cuda"
    right = build == config.engine.device
    return Finding("torch", f"{version}, {build} build", f"{config.engine.device} build", OK if right else FAIL)


def _jobs(config: Config) -> list[Job]:
    return [config.resources.train, config.resources.heavy, config.resources.light]


def _cores(config: Config, here: dict[str, Any], short: str) -> Finding:
    cores, wanted = len(os.sched_getaffinity(0)), max(job.threads for job in _jobs(config))
    return Finding("CPU cores", f"{cores}, {here['cpu']}", f"{wanted} for the largest job", OK if cores >= wanted else short)


def _memory(config: Config, here: dict[str, Any], short: str) -> Finding:
    memory, wanted = here["memory_gib"] or 0.0, max(job.memory_mb for job in _jobs(config)) / 1024
    return Finding("memory", f"{memory:.1f} GiB", f"{wanted:.1f} GiB for the largest job", OK if memory >= wanted else short)


def _gpus(config: Config, here: dict[str, Any], short: str) -> Finding:
    names, wanted = here["gpus"], max(job.gpus for job in _jobs(config))
    found = "; ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"
    return Finding("GPUs", found, f"{wanted} for the largest job" if wanted else "none", OK if len(names) >= wanted else short)


def _disk(config: Config) -> Finding:
    """Checkpoints and final weights of all runs of the outputs, and what the base policy and the artifacts take."""
    paths = Paths(config)
    shown = {name for output in [*paths.tables, *paths.figures] for name in paths.shown(output)}
    runs = {run for run in paths.runs if any(name.partition("-")[2] == run for name in shown)}
    wanted = 1 + (len(runs) * BYTES + 4) * config.plan.parameters * 1e9 / 2**30
    free = shutil.disk_usage(_existing(paths.root)).free / 2**30
    return Finding("disk", f"{free:,.0f} GiB free", f"{wanted:,.0f} GiB for {len(runs)} runs", OK if free >= wanted else FAIL)


def _results(config: Config) -> Finding:
    folder = _existing(Paths(config).root)
    writable = os.access(folder, os.W_OK)
    return Finding("results", f"{folder} is {'' if writable else 'not '}writable", "writable", OK if writable else FAIL)


def _workflow_lock() -> Finding:
    held = any(Path(".snakemake/locks").glob("*"))
    remedy = "not locked; if no other Snakemake runs: snakemake --unlock"
    return Finding("workflow", "locked", remedy, WARN) if held else Finding("workflow", "not locked", "not locked")


def _existing(path: Path) -> Path:
    """The nearest folder above that is there."""
    return next(place for place in (path, *path.parents) if place.is_dir())


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
