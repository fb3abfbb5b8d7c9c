"""What jobs reserve: the GPUs of one machine, and a node of their own for what is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from workspace import REPOSITORY, TIMEOUT, Project

GPU_JOBS = """
rule all:
    input:
        "a.txt",
        "b.txt",


rule job:
    output:
        "{name,[ab]}.txt",
    resources:
        gpu=8,
        mem_mb=100,
    shell:
        "mkdir running && sleep 1 && echo $CUDA_VISIBLE_DEVICES > {output} && rmdir running"
"""  # a folder can be made once: a job beside another one fails
LIMITS = {"given": ["--resources", "gpu=1"], "profile": ["--profile", str(REPOSITORY / "profiles" / "local")]}


@pytest.mark.parametrize("limit", LIMITS)
def test_jobs_with_gpus_run_one_after_the_other_on_one_machine(tmp_path, limit):
    """A request above what there is counts as all there is, and no job is told which GPUs are its own."""
    (tmp_path / "Snakefile").write_text(GPU_JOBS)
    devices = ",".join(map(str, range(8)))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--retries", "0", *LIMITS[limit]]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": devices}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"{name}.txt").read_text().strip() for name in "ab"] == [devices] * 2


RESOURCES = """
import json, pathlib
from snakemake.api import SnakemakeApi
from snakemake.settings.types import DAGSettings, OutputSettings, Quietness, ResourceSettings
with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
    workflow = api.workflow(ResourceSettings(cores=1), snakefile=pathlib.Path("Snakefile"))
    workflow.dag(DAGSettings(targets={"measurements", "benchmarks"})).execute_workflow(pseudo_executor="dryrun")
    print(json.dumps({job.rule.name: job.resources.get("slurm_extra") for job in workflow._workflow.dag.jobs}))
"""


def test_what_is_measured_has_its_node_alone(tmp_path):
    folder = Project(tmp_path / "smk dir").folder
    done = subprocess.run([sys.executable, "-c", RESOURCES], cwd=folder, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    extra = json.loads(done.stdout)
    alone = {rule for rule, value in extra.items() if value}
    assert alone == {"measure", *(f"benchmark_{name}" for name in ("rollout", "rollout_random", "training_step", "growth"))}
    assert {"train_policy", "build_data"} <= set(extra) - alone
    validate_slurm_extra(SimpleNamespace(resources=SimpleNamespace(slurm_extra=extra["measure"])))  # raises for what the executor sets
