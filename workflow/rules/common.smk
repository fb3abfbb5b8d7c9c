"""What all rules share: the configuration, the paths, the command line and what a job reserves.

INPUTS
    config/<preset>.yaml, config/methods.yaml    the preset, "tiny" unless --config preset=...
    --config, --configfile                       any key of the configuration, over the preset
OUTPUTS
    none
"""

import json
import shlex
import sys

from snakemake.exceptions import WorkflowError

from ibtpo.config import ConfigError, Paths, load, slices
from ibtpo.config.paths import BASE, FIGURES, TABLES

OVERRIDES = {key: value for key, value in config.items() if key != "preset"}
PRESET = config.get("preset", "tiny")

try:
    CONFIG = load(PRESET, OVERRIDES)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

PATHS = Paths(CONFIG)
ROOT = PATHS.root
LOGS = ROOT / "logs"
BENCHMARKS = ROOT / "benchmarks"

# A global and no param: only what is in the name of a file, or in a slice, makes a job run again.
CLI = shlex.join([sys.executable, "-m", "ibtpo", "--preset", str(PRESET), "--set", json.dumps(OVERRIDES)])

RUNS = {PATHS.run(name).name: name for name in PATHS.runs}  # name of the folder of a run -> name of its policy
SAMPLED = {PATHS.key(f"samples-{name}").removeprefix("samples-"): name for name in PATHS.policies}  # with hash -> name of the policy


def reserve(job):
    """Resources of a job of one class of `resources`. A retry gets more memory and time; a scheduler without GPUs is asked for none."""
    wanted = {
        "mem_mb": lambda wildcards, attempt: attempt * job.memory_mb,
        "runtime": lambda wildcards, attempt: attempt * job.minutes,
        "cpus_per_task": job.threads,
    }
    return wanted | ({"gpu": job.gpus} if job.gpus else {})


HEAVY, LIGHT = CONFIG.resources.heavy, CONFIG.resources.light


wildcard_constraints:
    run="|".join(map(re.escape, RUNS)),
    sampled="|".join(map(re.escape, SAMPLED)),
