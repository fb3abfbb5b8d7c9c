"""Evaluation: samples of the benchmarks, their scores apart from them, and the comparison of samplers.

INPUTS
    results/<preset>/policy/<hash>/ or results/<preset>/runs/<method>-seed<k>-<hash>/final/, results/<preset>/data/<hash>/
OUTPUTS
    results/<preset>/artifacts/samples-<policy>-<hash>.parquet
    results/<preset>/artifacts/scores-<policy>-<hash>.parquet
    results/<preset>/artifacts/samplers-<hash>.parquet
"""


rule sample:
    input:
        policy=lambda wildcards: PATHS.run(SAMPLED[wildcards.sampled]) / "done.json",
        data=PATHS.data / "done.json",
    output:
        ROOT / "artifacts" / "samples-{sampled}.parquet",
    params:
        policy=lambda wildcards: PATHS.model(SAMPLED[wildcards.sampled]),
        name=lambda wildcards: SAMPLED[wildcards.sampled],
        data=PATHS.data,
    log:
        LOGS / "sample" / "{sampled}.log",
    benchmark:
        BENCHMARKS / "sample" / "{sampled}.tsv"
    message:
        "Sampling the benchmarks with {params.name}"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    shell:
        "{CLI} sample --policy {params.policy:q} --name {params.name:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule score:
    input:
        samples=ROOT / "artifacts" / "samples-{sampled}.parquet",
        data=PATHS.data / "done.json",
    output:
        ROOT / "artifacts" / "scores-{sampled}.parquet",
    params:
        data=PATHS.data,
        method=lambda wildcards: PATHS.policies[SAMPLED[wildcards.sampled]][0],
        seed=lambda wildcards: PATHS.policies[SAMPLED[wildcards.sampled]][1],
    log:
        LOGS / "score" / "{sampled}.log",
    benchmark:
        BENCHMARKS / "score" / "{sampled}.tsv"
    message:
        "Scoring the samples of {wildcards.sampled}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    shell:
        "{CLI} score --samples {input.samples:q} --data {params.data:q} --method {params.method:q} --seed {params.seed}"
        " --out {output:q} > {log:q} 2>&1"


rule compare:
    input:
        policy=PATHS.policy / "done.json",
        data=PATHS.data / "done.json",
    output:
        PATHS.computed("samplers"),
    params:
        policy=PATHS.model(BASE),
        data=PATHS.data,
    log:
        LOGS / "compare" / f"{PATHS.key('samplers')}.log",
    benchmark:
        BENCHMARKS / "compare" / f"{PATHS.key('samplers')}.tsv"
    message:
        "Comparing samplers on the base policy"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    shell:
        "{CLI} compare --policy {params.policy:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"
