"""Evaluation: samples of the benchmarks, their scores apart from them, the trees of each sampler, offline IB-Scores, trees to look at.

INPUTS
    results/<preset>/policy/<hash>/ or results/<preset>/runs/<method>-seed<k>-<hash>/final/, results/<preset>/data/<hash>/
OUTPUTS
    results/<preset>/artifacts/samples-<policy>-<hash>.parquet
    results/<preset>/artifacts/scores-<policy>-<hash>.parquet
    results/<preset>/artifacts/trees-<sampler>-<hash>.parquet
    results/<preset>/artifacts/offline-<policy>-<hash>.parquet
    results/<preset>/artifacts/forest-<policy>-<sampler>-<hash>.parquet
"""

COMPARED = {PATHS.key(f"trees-{name}").removeprefix("trees-"): name for name in CONFIG.comparison.strategies}
MEASURED = {PATHS.key(f"offline-{name}").removeprefix("offline-"): name for name in PATHS.policies}
FORESTS = {PATHS.key(name).removeprefix("forest-"): pair for name, pair in PATHS.forests.items()}  # with hash -> (policy, sampler)


rule sample:
    input:
        policy=lambda wildcards: PATHS.run(SAMPLED[wildcards.sampled]) / "done.json",
        data=PATHS.benchmarks / "done.json",
    output:
        ROOT / "artifacts" / "samples-{sampled}.parquet",
    params:
        policy=lambda wildcards: PATHS.model(SAMPLED[wildcards.sampled]),
        name=lambda wildcards: SAMPLED[wildcards.sampled],
        data=PATHS.benchmarks,
    log:
        LOGS / "sample" / "{sampled}.log",
    benchmark:
        BENCHMARKS / "sample" / "{sampled}.tsv"
    message:
        "Sampling the benchmarks with {params.name}"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    conda:
        HEAVY_ENV
    shell:
        "{CLI} sample --policy {params.policy:q} --name {params.name:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule score:
    input:
        samples=lambda wildcards: PATHS.computed(f"samples-{SCORED[wildcards.scored]}"),
        data=PATHS.benchmarks / "done.json",
    output:
        ROOT / "artifacts" / "scores-{scored}.parquet",
    params:
        data=PATHS.benchmarks,
        method=lambda wildcards: PATHS.policies[SCORED[wildcards.scored]][0],
        seed=lambda wildcards: PATHS.policies[SCORED[wildcards.scored]][1],
    log:
        LOGS / "score" / "{scored}.log",
    benchmark:
        BENCHMARKS / "score" / "{scored}.tsv"
    message:
        "Scoring the samples of {wildcards.scored}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} verdicts --samples {input.samples:q} --data {params.data:q} --method {params.method:q} --seed {params.seed}"
        " --out {output:q} > {log:q} 2>&1"


rule compare:
    input:
        policy=PATHS.policy / "done.json",
        data=PATHS.data / "done.json",
    output:
        ROOT / "artifacts" / "trees-{compared}.parquet",
    params:
        strategy=lambda wildcards: COMPARED[wildcards.compared],
        policy=PATHS.model(BASE),
        data=PATHS.data,
    log:
        LOGS / "compare" / "{compared}.log",
    benchmark:
        BENCHMARKS / "compare" / "{compared}.tsv"
    wildcard_constraints:
        compared=one_of(COMPARED),
    message:
        "Growing trees on the base policy with {params.strategy}"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    conda:
        HEAVY_ENV
    shell:
        "{CLI} compare --strategy {params.strategy:q} --policy {params.policy:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule offline:
    input:
        policy=lambda wildcards: PATHS.run(MEASURED[wildcards.measured]) / "done.json",
        data=PATHS.data / "done.json",
    output:
        ROOT / "artifacts" / "offline-{measured}.parquet",
    params:
        policy=lambda wildcards: PATHS.model(MEASURED[wildcards.measured]),
        name=lambda wildcards: MEASURED[wildcards.measured],
        data=PATHS.data,
    log:
        LOGS / "offline" / "{measured}.log",
    benchmark:
        BENCHMARKS / "offline" / "{measured}.tsv"
    wildcard_constraints:
        measured=one_of(MEASURED),
    message:
        "Measuring the offline IB-Score of {params.name}"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    conda:
        HEAVY_ENV
    shell:
        "{CLI} offline --policy {params.policy:q} --name {params.name:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule forest:
    input:
        policy=lambda wildcards: PATHS.run(FORESTS[wildcards.grown][0]) / "done.json",
        data=PATHS.data / "done.json",
    output:
        ROOT / "artifacts" / "forest-{grown}.parquet",
    params:
        policy=lambda wildcards: PATHS.model(FORESTS[wildcards.grown][0]),
        name=lambda wildcards: FORESTS[wildcards.grown][0],
        sampler=lambda wildcards: FORESTS[wildcards.grown][1],
        data=PATHS.data,
    log:
        LOGS / "forest" / "{grown}.log",
    benchmark:
        BENCHMARKS / "forest" / "{grown}.tsv"
    wildcard_constraints:
        grown=one_of(FORESTS),
    message:
        "Growing trees to look at with {params.name} and {params.sampler}"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    conda:
        HEAVY_ENV
    shell:
        "{CLI} forest --policy {params.policy:q} --name {params.name:q} --sampler {params.sampler:q} --data {params.data:q}"
        " --out {output:q} > {log:q} 2>&1"


rule forests:
    input:
        [PATHS.artifact(name) for name in PATHS.forests],
