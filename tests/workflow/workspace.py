"""Real Snakemake runs in a copy of what a fresh clone holds, in a folder with a space in its name."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from ibtpo.config import Paths, load
from ibtpo.config.paths import SHOWN
from ibtpo.io import write_parquet

REPOSITORY = Path(__file__).parents[2]
SOURCES = ("Snakefile", "workflow", "config", "profiles", "slurm")
TIMEOUT = 1200  # seconds; a guard against a hang, no expectation


class Project:
    """A fresh copy of the project. Paths of configurations are relative to `folder`."""

    command = (sys.executable, "-m", "snakemake")
    environment: ClassVar[dict[str, str]] = {}  # of Snakemake, over this process's own

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True)
        for name in SOURCES:
            source = REPOSITORY / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)

    def snakemake(self, *arguments: str, fails: bool = False) -> str:
        """Runs Snakemake, checks that it succeeds (or fails) and returns all that it says."""
        with self.start(*arguments) as process:
            said = process.communicate(timeout=TIMEOUT)[0]
        assert (process.returncode != 0) == fails, said
        return said

    @contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen]:
        """Starts Snakemake in a process group of its own; whatever is left of the group is killed at the end."""
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | self.environment
        process = subprocess.Popen(
            [*self.command, *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait_for(self, pattern: str, seconds: float = TIMEOUT) -> None:
        """Waits until a file is there, given as a glob pattern below the project."""
        deadline = time.monotonic() + seconds
        while not any(self.folder.glob(pattern)):
            assert time.monotonic() < deadline, f"waited in vain for {pattern}"
            time.sleep(0.05)

    def jobs(self, *arguments: str) -> dict[str, int]:
        """What a dry run would do: number of jobs of each rule. Nothing if everything is up to date."""
        return self.counts(self.snakemake("--dry-run", *arguments))

    @staticmethod
    def counts(said: str) -> dict[str, int]:
        table = re.search(r"^Job stats:\n.*\n-.*\n((?:.+\n)+?)total", said, re.MULTILINE)
        assert table or "Nothing to be done" in said, said
        return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table[1], re.MULTILINE)} if table else {}

    def paths(self, preset: str = "tiny", **overrides) -> Paths:
        return Paths(load(preset, overrides))

    def path(self, path: Path) -> Path:
        return self.folder / path

    def copy(self, folder: Path) -> Project:
        """The same project elsewhere, with its results and what Snakemake knows of them."""
        other = object.__new__(type(self))
        other.folder = shutil.copytree(self.folder, folder)
        return other

    def pretend(self) -> None:
        """Everything of the tiny preset as if it had been made: empty files, and Snakemake's records of how."""
        paths = self.paths()
        files = [paths.data / "done.json", *(paths.run(policy) / "done.json" for policy in paths.policies)]
        files += [paths.computed(f"trees-{strategy}") for strategy in paths.config.comparison.strategies]
        files += [paths.computed(f"{kind}-{policy}") for kind in ("samples", "scores", "offline") for policy in paths.policies]
        files += [paths.computed(f"metrics-{policy}") for policy in paths.runs]
        files += [paths.computed(f"costs-{measurement}") for measurement in paths.config.measurements]
        shown = [name for name in paths.shown("table9") if not name.startswith("scores-")]
        files += [paths.computed(artifact) for name in shown for artifact in (name, name.replace("scores", "samples", 1))]
        files += [paths.computed(name) for name in paths.forests]
        files += [path for name in SHOWN for path in paths.outputs(name)]
        for file in files:
            self.path(file).parent.mkdir(parents=True, exist_ok=True)
            self.path(file).write_text("{}" if file.suffix == ".json" else "")
        self.snakemake("--touch", "--forceall", "all", "forests")

    def publish_random_scores(self, seed: int = 0) -> None:
        """Published artifacts of Table 1, of the right hash and with random rewards."""
        paths, rng = self.paths(), np.random.default_rng(seed)
        evaluate = paths.config.evaluate
        for policy, (method, number) in paths.policies.items():
            index = pd.MultiIndex.from_product([evaluate.benchmarks, ["p0", "p1", "p2"], range(evaluate.samples)])
            frame = index.to_frame(index=False, name=["benchmark", "uid", "sample"])
            frame = frame.assign(reward=rng.integers(0, 2, len(frame)).astype(float), status="ok", tokens=9, method=method, seed=number)
            write_parquet(frame, self.path(paths.published(f"scores-{policy}")))
