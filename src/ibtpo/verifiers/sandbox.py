"""The sandbox for strange programs, seen from outside: starts `jail.py`, keeps the time, believes only the nonce.

Refuses (SandboxError) where it cannot isolate; nothing is ever run without isolation. It needs Linux >= 5.12 and either root or user
namespaces that anyone may make; it checks at its first use, by trying to break out, that it holds.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path

from ibtpo import IbtpoError

_JAIL, _SUSPECT = Path(__file__).with_name("jail.py"), Path(__file__).with_name("suspect.py")
_VISIBLE = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom")
_GRACE = 2.0  # seconds for the jail itself
_users = count()


class SandboxError(IbtpoError):
    """Programs cannot be isolated here."""


@dataclass(frozen=True)
class Limits:
    """seconds: wall and CPU, of one run or of all calls of functions. total: seconds of all runs. memory, output, file: bytes.

    Memory holds for each process and for all together; file for each file, all together may have twice as much. processes: how many
    (threads count too).
    """

    seconds: float = 4.0
    total: float = 60.0
    memory: int = 512 << 20
    output: int = 4 << 20
    file: int = 10 << 20
    processes: int = 16


DEFAULT = Limits()


@dataclass(frozen=True)
class Job:
    """A program and its tests. `stdin`: each case is a text on standard input and the expected output.

    Otherwise each case is a list of arguments of the function `entry` and its expected value; or `test` is a program of assertions in
    which the functions of the program can be called, and whose `check(entry)`, if any, is called (HumanEval).
    """

    program: str
    cases: tuple[dict, ...] = ()
    stdin: bool = False
    entry: str | None = None
    test: str = ""


def run(job: Job, limits: Limits = DEFAULT) -> str:
    """passed, failed, syntax (the program does not compile), timeout or memory. Raises SandboxError where it cannot isolate."""
    _require()
    return _run(job, limits)


@lru_cache(maxsize=1)
def _require() -> None:
    """Tries to break out once. Raises SandboxError if the jail cannot be made, or does not hold."""
    outcome = _run(Job(_ESCAPE, ({"input": "", "output": "contained"},), stdin=True), Limits(processes=8))
    if outcome != "passed":
        raise SandboxError(f"the sandbox does not hold on this machine (its test: {outcome}): programs are not run here")


def _run(job: Job, limits: Limits, again: bool = True) -> str:
    nonce = secrets.token_hex(16)
    order = {"nonce": nonce, "job": asdict(job), "limits": asdict(limits), "suspect": _SUSPECT.read_text()}
    order |= {"visible": [*_VISIBLE, str(Path(sys.base_prefix).resolve())], "outside": 20_000 + (os.getpid() + next(_users) * 97) % 40_000}
    command = [os.path.realpath(sys.executable), "-I", "-S", "-c", _JAIL.read_text()]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/", start_new_session=True
    )
    try:
        result, _ = process.communicate(json.dumps(order).encode(), timeout=limits.total + _GRACE)
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        process.kill()  # the jail dies with its keeper
        process.wait()
    report = {}
    with suppress(ValueError):
        report = json.loads(result)
    if report.get("nonce") != nonce:
        if process.returncode < 0 and again:  # a program cannot reach the keeper: somebody else killed it
            return _run(job, limits, again=False)
        return "failed"  # what is not reported has failed
    if report["outcome"] == "unavailable":
        raise SandboxError(
            f"programs cannot be isolated on this machine ({report['reason']}), so they are not run. Code needs Linux >= 5.12 and either "
            "root or unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0; in a container: a seccomp profile that allows unshare and mount)"
        )
    return report["outcome"]


_ESCAPE = """
import os, socket
def fails(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
def fork():
    for _ in range(8):
        if os.fork() == 0:
            os.kill(os.getpid(), 19)
folders = ("/", "/usr", "/etc", "/bin", "/dev")
writes = all(fails(open, os.path.join(folder, "x"), "w") for folder in folders if os.path.isdir(folder))
reads = fails(os.listdir, "/home") and fails(open, "/etc/passwd") and fails(open, "/proc/1/environ") and fails(os.listdir, "/proc/1/fd")
connects = fails(socket.create_connection, ("127.0.0.1", 22), 1) and fails(socket.create_connection, ("8.8.8.8", 53), 1)
signals = fails(os.kill, 1, 9) or os.path.exists("/proc/1")
hides = not fails(os.memfd_create, "x")
print("contained" if writes and reads and connects and signals and not hides and os.getuid() and fails(fork) else "not contained")
"""
