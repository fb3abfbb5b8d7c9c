"""What Snakemake would do for a configuration: every job, with the command line that would run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ibtpo import IbtpoError

SNAKEFILE = Path("Snakefile")


@dataclass(frozen=True)
class Job:
    """benchmark: where its run time is recorded, or None; shell: its command line, "" if it has none; waiting: still to be done."""

    rule: str
    benchmark: Path | None
    shell: str
    waiting: bool

    @property
    def arguments(self) -> list[str]:
        """What follows `-m ibtpo` in the command line, whatever starts it and up to where the output goes; else nothing."""
        words = shlex.split(re.split(r" 2?> ", self.shell)[0])
        starts = [i for i, pair in enumerate(pairwise(words)) if pair == ("-m", "ibtpo")]
        return words[starts[0] + 2 :] if starts else []


def jobs(preset: str, overrides: Mapping[str, Any], target: str = "all") -> list[Job]:
    """All jobs below a target, done or not, of the workflow in the working directory: a dry run, whose graph is read.

    The graph is no part of Snakemake's public interface; a test holds this against what a dry run prints. Raises IbtpoError if there is
    no workflow here; Snakemake itself says what is wrong with one.
    """
    from snakemake.api import SnakemakeApi  # a second to import
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings

    if not SNAKEFILE.is_file():
        raise IbtpoError("there is no Snakefile here: run this in the project's folder")
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        settings = {"preset": preset, **overrides}
        workflow = api.workflow(ResourceSettings(cores=1), ConfigSettings(settings), snakefile=SNAKEFILE)
        workflow.dag(DAGSettings(targets={target})).execute_workflow(pseudo_executor="dryrun")
        graph = workflow._workflow.dag
        return [Job(job.rule.name, job.benchmark and Path(job.benchmark), job.shellcmd or "", graph.needrun(job)) for job in graph.jobs]
