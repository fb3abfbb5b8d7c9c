"""What all rules share: the configuration, the paths, the command line and what a job reserves.

INPUTS
    config/<preset>.yaml                         the preset, "tiny" unless --config preset=...
    config/methods.yaml, config/datasets.yaml    layers below all presets
    --config, --configfile                       any key of the configuration, over the preset
OUTPUTS
    none
"""

import json
import shlex
import sys

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from ibtpo.config import ConfigError, Paths, load, slices
from ibtpo.config.paths import BASE, EXTRA, FIGURES, TABLES
from ibtpo.progress import relay
from ibtpo.site.titles import title

OVERRIDES = {key: value for key, value in config.items() if key != "preset"}
PRESET = config.get("preset", "tiny")

try:
    CONFIG = load(PRESET, OVERRIDES)
    PATHS = Paths(CONFIG)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

ROOT = PATHS.root
LOGS = ROOT / "logs"
BENCHMARKS = ROOT / "benchmarks"

# A global and no param: only what is in the name of a file, or in a slice, makes a job run again.
MODULE = ["-m", "ibtpo", "--preset", str(PRESET), "--set", json.dumps(OVERRIDES)]
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
PYTHON = "python" if CONDA else sys.executable  # a conda environment (envs/*.yaml) has its own
CLI = shlex.join([PYTHON, *MODULE])

RUNS = {PATHS.run(name).name: name for name in PATHS.runs}  # name of the folder of a run -> name of its policy
# with hash -> name of the policy; samples and their scores have hashes of their own
SAMPLED, SCORED = ({PATHS.key(f"{kind}-{name}").removeprefix(f"{kind}-"): name for name in PATHS.policies} for kind in ("samples", "scores"))


def one_of(names):
    """Constraint of a wildcard: one of these names; without names it matches nothing."""
    return "|".join(map(re.escape, names)) or "(?!)"


def reserve(job):
    """Resources of a job of one class of `resources`. A retry gets more memory and time; a scheduler without GPUs is asked for none.

    A job is one task on one node and starts once, however many GPUs it has: what it runs starts the processes. Slurm's executor would ask
    for a task a GPU, on any number of nodes.
    """
    wanted = {
        "mem_mb": lambda wildcards, attempt: attempt * job.memory_mb,
        "runtime": lambda wildcards, attempt: attempt * job.minutes,
        "cpus_per_task": job.threads,
    }
    return wanted | ({"gpu": job.gpus, "tasks_per_gpu": 0, "nodes": 1} if job.gpus else {})


LEARN, HEAVY, LIGHT = CONFIG.resources.train, CONFIG.resources.heavy, CONFIG.resources.light
# none unless it is asked for: Snakemake would record the environment all the same, and run again what was made without
LIGHT_ENV, HEAVY_ENV = (f"../../envs/{device}.yaml" if CONDA else None for device in ("cpu", CONFIG.engine.device))


wildcard_constraints:
    run=one_of(RUNS),
    sampled=one_of(SAMPLED),
    scored=one_of(SCORED),


onstart:
    relay(LOGS)  # what the jobs say of their progress, in Snakemake's own output
