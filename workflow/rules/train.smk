"""Reinforcement learning: one job a method and seed.

Checkpoints are not declared: Snakemake deletes the declared outputs of a failed job, and a killed job goes on from its last checkpoint.
With train.processes > 1 a job is one start of accelerate's launcher, which starts the processes (docs/multi-gpu.md).

INPUTS
    results/<preset>/policy/<hash>/, results/<preset>/data/<hash>/
OUTPUTS
    results/<preset>/runs/<method>-seed<k>-<hash>/                       run.json, metrics.jsonl, checkpoints/, final/, done.json last
    results/<preset>/artifacts/metrics-<method>-seed<k>-<hash>.parquet
"""

from ibtpo.training.launch import launcher

TRAINING = shlex.join([*launcher(CONFIG.train, PYTHON), *MODULE, "train"])


rule train:
    input:
        policy=PATHS.policy / "done.json",
        data=PATHS.data / "done.json",
    output:
        done=ROOT / "runs" / "{run}" / "done.json",
    params:
        policy=PATHS.model(BASE),
        data=PATHS.data,
        out=subpath(output.done, parent=True),
        method=lambda wildcards: PATHS.runs[RUNS[wildcards.run]][0],
        seed=lambda wildcards: PATHS.runs[RUNS[wildcards.run]][1],
    log:
        LOGS / "train" / "{run}.log",
    benchmark:
        BENCHMARKS / "train" / "{run}.tsv"
    message:
        "Training {wildcards.run}"
    threads: LEARN.threads
    resources:
        **reserve(LEARN),
    conda:
        HEAVY_ENV
    shell:
        "{TRAINING} --method {params.method:q} --seed {params.seed} --policy {params.policy:q} --data {params.data:q}"
        " --out {params.out:q} > {log:q} 2>&1"


rule metrics:
    input:
        done=ROOT / "runs" / "{run}" / "done.json",
    output:
        ROOT / "artifacts" / "metrics-{run}.parquet",
    params:
        run=subpath(input.done, parent=True),
        method=lambda wildcards: PATHS.runs[RUNS[wildcards.run]][0],
        seed=lambda wildcards: PATHS.runs[RUNS[wildcards.run]][1],
    log:
        LOGS / "metrics" / "{run}.log",
    benchmark:
        BENCHMARKS / "metrics" / "{run}.tsv"
    message:
        "Collecting the metrics of {wildcards.run}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} metrics --run {params.run:q} --method {params.method:q} --seed {params.seed} --out {output:q} > {log:q} 2>&1"
