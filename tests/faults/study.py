"""The smallest whole study: one method and one seed of the smoke preset, from a base policy to Table 1, by the commands of the rules.

A command runs in a process forked from one that has imported everything: it starts at once, and a signal kills it for good.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from workspace import TIMEOUT, Project

from ibtpo.io import read_jsonl, read_parquet

OVERRIDES = {"train": {"iterations": 4, "problems_per_iteration": 2, "probe_problems": 0}, "tables": {"table1": ["ibtpo"]}}
CONFIG = ("--config", "preset=smoke", *(f"{key}={json.dumps(value)}" for key, value in OVERRIDES.items()))
ITERATIONS, POLICY = OVERRIDES["train"]["iterations"], "ibtpo-seed0"
ORDER = ("train", "sample", "verdicts", "table")

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ibtpo.training.run", "ibtpo.evaluation.sample", "ibtpo.evaluation.verdicts", "ibtpo.report.tables"])


@dataclass(frozen=True)
class Command:
    """What a job of the workflow runs: arguments of `python -m ibtpo`, and where what it says goes, relative to the project."""

    arguments: tuple[str, ...]
    log: str

    @property
    def name(self) -> str:
        return next(word for word in self.arguments if word in ORDER)


class Study:
    """A project with the commands that make its Table 1."""

    def __init__(self, project: Project, commands: list[Command]):
        self.project, self.commands = project, commands
        self.paths = project.paths("smoke", **OVERRIDES)
        self.folder = project.folder
        self.run_folder = project.path(self.paths.run(POLICY))

    @classmethod
    def made(cls, world, folder: Path) -> Study:
        """From the data and the base policy of the fixture `world` to Table 1."""
        project = Project(folder)
        paths = project.paths("smoke")
        for source, place in ((world.data, paths.data), (world.policy, paths.policy)):
            shutil.copytree(source, project.path(place))
        study = cls.planned(project)
        study.finish()
        study.check_counts()
        return study

    @classmethod
    def planned(cls, project: Project) -> Study:
        """The commands are those that a dry run prints."""
        said = project.snakemake("--dry-run", "--printshellcmds", "table1", *CONFIG)
        found = re.findall(r"^Shell command: .+? -m ibtpo (.+) > (.+) 2>&1$", said, re.MULTILINE)
        commands = [Command(tuple(shlex.split(arguments)), *shlex.split(log)) for arguments, log in found]
        assert {command.name for command in commands} == {*ORDER}, said
        return cls(project, sorted(commands, key=lambda command: ORDER.index(command.name)))

    def copy(self, folder: Path, *, keep: str = "") -> Study:
        """The same study elsewhere, without its table, the samples and scores of the trained policy, and (unless kept: "train") its run."""
        study = Study(self.project.copy(folder), self.commands)
        root = study.folder / study.paths.root
        shutil.rmtree(root / "tables")
        for path in root.glob(f"artifacts/*{POLICY}*"):
            path.unlink()
        if keep != "train":
            shutil.rmtree(study.run_folder)
        return study

    def command(self, name: str) -> Command:
        """The command of the trained policy."""
        return next(command for command in self.commands if command.name == name and POLICY in " ".join(command.arguments))

    def start(self, command: Command, prepare: Callable[[], None] | None = None) -> multiprocessing.Process:
        """prepare: called in the new process before the command."""
        (self.folder / command.log).parent.mkdir(parents=True, exist_ok=True)
        process = CONTEXT.Process(target=_run, args=(self.folder, command, prepare), daemon=True)
        process.start()
        return process

    def run(self, command: Command, prepare: Callable[[], None] | None = None, fails: bool = False) -> str:
        """Runs a command to its end, checks that it succeeds (or fails) and returns what it says."""
        process = self.start(command, prepare)
        process.join(TIMEOUT)
        said = (self.folder / command.log).read_text()
        assert (process.exitcode != 0) == fails, said
        return said

    def finish(self) -> None:
        """Runs every command whose output is not there yet, as Snakemake would."""
        for command in self.commands:
            out = self.folder / command.arguments[command.arguments.index("--out") + 1]
            if not (out.is_file() or (out / "done.json").is_file() or out.with_suffix(".csv").is_file()):
                self.run(command)

    def outcome(self) -> dict[str, str | list]:
        """What has to be the same after any fault: the bytes of samples, scores and tables, and the metrics but for the seconds."""
        root = self.folder / self.paths.root
        files = [*root.glob("artifacts/*.parquet"), *root.glob("tables/*")]
        found: dict = {path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
        rows = read_jsonl(self.run_folder / "metrics.jsonl")
        found["metrics"] = [{key: value for key, value in row.items() if not key.startswith("seconds/")} for row in rows]
        return found

    def check_counts(self) -> None:
        """Every iteration was trained on once, and every problem of the benchmarks sampled as often as was asked for."""
        steps = [row["step"] for row in read_jsonl(self.run_folder / "metrics.jsonl") if "train/loss" in row]
        assert steps == list(range(1, ITERATIONS + 1))
        config = self.paths.config
        for kind in ("samples", "scores"):
            frame = read_parquet(self.project.path(self.paths.computed(f"{kind}-{POLICY}")))
            assert not frame.duplicated(["benchmark", "uid", "sample"]).any()
            assert len(frame) == len(config.evaluate.benchmarks) * config.world.benchmark * config.evaluate.samples


def _run(folder: Path, command: Command, prepare: Callable[[], None] | None) -> None:
    from ibtpo.__main__ import main

    os.chdir(folder)
    log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if prepare is not None:
        prepare()
    code = main(list(command.arguments))
    sys.stdout.flush()
    sys.exit(code)
