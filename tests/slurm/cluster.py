"""A one-node Slurm cluster from Debian's packages: munged, slurmctld and slurmd, with all their files in one folder.

No accounting, no control groups: memory and run time are enforced by the node's own looking, every second. Two GPUs are declared that do
not exist.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psutil

PACKAGES = ("slurm-wlm", "munge")
DAEMONS = ("munged", "slurmctld", "slurmd")
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
GPUS, CPUS, MEMORY_MB = 2, 4, 16000  # what the node says it has; nothing checks it
SECONDS = 300  # a guard against a hang, no expectation

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=2
MinJobAge=86400
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def unavailable() -> str | None:
    """Why there can be no cluster here, or None. Installs Slurm where it is missing and can be had."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    if all(map(shutil.which, DAEMONS)):
        return None
    if shutil.which("apt-get") is None:
        return "Slurm is not installed, and there is no apt-get to install it with"
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=quiet, capture_output=True, text=True, check=False)
    subprocess.run(["service", "munge", "stop"], capture_output=True, check=False)  # the package may have started it
    return f"Slurm cannot be installed: {done.stderr.strip()[-300:]}" if done.returncode else None


class Cluster:
    """The daemons run from `start` to `stop`. `environment`: what a process needs to use this cluster."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.daemons: list[subprocess.Popen] = []
        for name in ("state", "spool", "bin"):
            (folder / name).mkdir(parents=True)
        host = socket.gethostname().split(".")[0]
        values = {"folder": folder, "host": host, "ports": _free_ports(2), "cpus": CPUS, "memory": MEMORY_MB, "gpus": GPUS}
        (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
        (folder / "gres.conf").write_text(f"AutoDetect=off\nNodeName={host} Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
        for number in range(GPUS):
            (folder / f"gpu{number}").touch()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        srun = folder / "bin" / "srun"  # Snakemake's job step drops SLURM_CONF, as a real cluster keeps its configuration in /etc
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder / "slurm.conf"} exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)

    def start(self) -> None:
        munge = {
            option: self.folder / f"munge.{option.split('-')[0]}" for option in ("socket", "key-file", "log-file", "pid-file", "seed-file")
        }
        self._launch("munged", "--force", "--foreground", *(f"--{option}={path}" for option, path in munge.items()))
        self._wait(lambda: munge["socket"].exists(), "munged")
        self._launch("slurmctld", "-D", "-i")
        self._launch("slurmd", "-D")
        self._wait(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T", check=False), "an idle node")

    def stop(self) -> None:
        """Cancels all jobs, ends the daemons, and leaves no process behind."""
        if len(self.daemons) == len(DAEMONS):
            self.run("scancel", "--user=root", check=False)
            self._wait(lambda: not self.run("squeue", "--noheader", check=False), "the end of all jobs")
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(SECONDS)
        self._wait(lambda: not self.processes(), "the end of all processes")

    def run(self, *command: str, check: bool = True) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=check, timeout=SECONDS).stdout

    def jobs(self) -> list[dict[str, str]]:
        """All jobs since the start, oldest first, as Slurm describes them."""
        lines = self.run("scontrol", "show", "jobs", "--oneliner").splitlines()
        found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in lines if line.startswith("JobId=")]
        return sorted(found, key=lambda job: int(job["JobId"]))

    def active(self) -> list[dict[str, str]]:
        return [job for job in self.jobs() if job["JobState"] not in ENDED]

    def processes(self) -> list[psutil.Process]:
        """What still runs of the daemons and of all that they started, told by their configuration."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and str(self.folder) in f"{process.cmdline()} {process.environ().get('SLURM_CONF')}":
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
                continue
        return found

    def _launch(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.out").open("w") as out:
            self.daemons.append(subprocess.Popen([name, *arguments], env=self.environment, stdout=out, stderr=out, start_new_session=True))

    def _wait(self, there, what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not there():
            for daemon in self.daemons:
                said = "".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.[lo][ou][gt]"))
                assert not daemon.poll(), f"{daemon.args[0]} ended:\n{said}"
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
