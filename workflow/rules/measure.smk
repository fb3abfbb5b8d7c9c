"""Measurements: what sampling costs (Tables 7 and 8, Figure 8), policies with longer responses (Table 9), and the benchmarks.

A job whose result is a time takes all cores, so that no other job of this machine runs beside it, and on Slurm the whole node; it computes
on as many threads as training does.

INPUTS
    results/<preset>/policy/<hash>/, results/<preset>/data/<hash>/    unless a random model is measured
    results/<preset>/runs/<method>-seed<k>-<hash>/final/              Table 9
OUTPUTS
    results/<preset>/artifacts/costs-<measurement>-<hash>.parquet
    results/<preset>/artifacts/samples<tokens>-<policy>-<hash>.parquet
    results/<preset>/artifacts/scores<tokens>-<policy>-<hash>.parquet
    results/<preset>/measured/<benchmark>.md                          by `snakemake benchmarks`
TARGETS
    snakemake measurements    the costs of all measurements
    snakemake midsize         the tables that `all` leaves out, of a larger random model
    snakemake benchmarks      engines, training steps and growth side by side (docs/benchmarks.md)
"""

COSTS = {PATHS.key(f"costs-{name}").removeprefix("costs-"): name for name in CONFIG.measurements}  # with hash -> name
# tokens, policy and hash -> (tokens, policy)
LONGER, LONGER_SCORED = (
    {
        PATHS.key(f"{kind}{tokens}-{name}").removeprefix(kind): (tokens, name)
        for tokens in CONFIG.evaluate.longer
        for name in PATHS.policies
    }
    for kind in ("samples", "scores")
)
EXCLUSIVE = reserve(HEAVY) | {"slurm_extra": "--exclusive"}  # the whole node; without Slurm nobody reads it
ALONE = f"OMP_NUM_THREADS={HEAVY.threads} MKL_NUM_THREADS={HEAVY.threads}"  # Snakemake sets both to all cores, and torch takes the second


def of_policy(measurement):
    """Whether the base policy is measured."""
    return CONFIG.measurements[measurement].model == "policy"


rule measure:
    input:
        lambda wildcards: [PATHS.policy / "done.json", PATHS.data / "done.json"] if of_policy(COSTS[wildcards.cost]) else [],
    output:
        ROOT / "artifacts" / "costs-{cost}.parquet",
    params:
        name=lambda wildcards: COSTS[wildcards.cost],
        on=lambda wildcards: ["--policy", str(PATHS.model(BASE)), "--data", str(PATHS.data)] if of_policy(COSTS[wildcards.cost]) else [],
    log:
        LOGS / "measure" / "{cost}.log",
    benchmark:
        BENCHMARKS / "measure" / "{cost}.tsv"
    wildcard_constraints:
        cost=one_of(COSTS),
    message:
        "Measuring {params.name}"
    threads: workflow.cores or HEAVY.threads
    resources:
        **EXCLUSIVE,
    conda:
        HEAVY_ENV
    shell:
        "{ALONE} {CLI} measure --name {params.name:q} {params.on:q} --out {output:q} > {log:q} 2>&1"


rule measurements:
    input:
        [PATHS.artifact(f"costs-{name}") for name in CONFIG.measurements],


rule sample_longer:
    input:
        policy=lambda wildcards: PATHS.run(LONGER[wildcards.longer][1]) / "done.json",
        data=PATHS.benchmarks / "done.json",
    output:
        ROOT / "artifacts" / "samples{longer}.parquet",
    params:
        policy=lambda wildcards: PATHS.model(LONGER[wildcards.longer][1]),
        name=lambda wildcards: LONGER[wildcards.longer][1],
        tokens=lambda wildcards: LONGER[wildcards.longer][0],
        data=PATHS.benchmarks,
    log:
        LOGS / "sample" / "{longer}.log",
    benchmark:
        BENCHMARKS / "sample" / "{longer}.tsv"
    wildcard_constraints:
        longer=one_of(LONGER),
    message:
        "Sampling the benchmarks with {params.name}, at most {params.tokens} tokens"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    conda:
        HEAVY_ENV
    shell:
        "{CLI} sample --policy {params.policy:q} --name {params.name:q} --data {params.data:q} --max_tokens {params.tokens}"
        " --out {output:q} > {log:q} 2>&1"


use rule score as score_longer with:
    input:
        samples=lambda wildcards: PATHS.computed("samples{}-{}".format(*LONGER_SCORED[wildcards.longer_scored])),
        data=PATHS.benchmarks / "done.json",
    output:
        ROOT / "artifacts" / "scores{longer_scored}.parquet",
    params:
        data=PATHS.benchmarks,
        method=lambda wildcards: PATHS.policies[LONGER_SCORED[wildcards.longer_scored][1]][0],
        seed=lambda wildcards: PATHS.policies[LONGER_SCORED[wildcards.longer_scored][1]][1],
    log:
        LOGS / "score" / "{longer_scored}.log",
    benchmark:
        BENCHMARKS / "score" / "{longer_scored}.tsv"
    wildcard_constraints:
        longer_scored=one_of(LONGER_SCORED),
    message:
        "Scoring the samples of {wildcards.longer_scored}"


rule midsize:
    input:
        [path for name in EXTRA for path in PATHS.outputs(name)],


ON_POLICY = shlex.join(["--preset", str(PRESET), "--policy", str(PATHS.model(BASE)), "--problems", str(PATHS.data / "train.parquet")])
BENCHMARKED = {
    "rollout": f"rollout.py {ON_POLICY}",
    "rollout_random": f"rollout.py --preset {shlex.quote(str(PRESET))} --random --trees 4",
    "training_step": f"training_step.py {ON_POLICY}",
    "growth": f"growth.py --presets {shlex.quote(str(PRESET))}",
}

for BENCHMARKED_NAME, COMMAND in BENCHMARKED.items():

    rule:
        name:
            f"benchmark_{BENCHMARKED_NAME}"
        input:
            [PATHS.policy / "done.json", PATHS.data / "done.json"] if ON_POLICY in COMMAND else [],
        output:
            ROOT / "measured" / f"{BENCHMARKED_NAME}.md",
        params:
            command=COMMAND,
        log:
            LOGS / "measured" / f"{BENCHMARKED_NAME}.log",
        message:
            f"Running the benchmark {BENCHMARKED_NAME}"
        threads: workflow.cores or HEAVY.threads
        resources:
            **EXCLUSIVE,
        conda:
            HEAVY_ENV
        shell:
            "{ALONE} {PYTHON:q} benchmarks/{params.command} > {output:q} 2> {log:q}"


rule benchmarks:
    input:
        [ROOT / "measured" / f"{name}.md" for name in BENCHMARKED],
