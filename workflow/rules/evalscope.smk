"""Benchmarks through EvalScope, with evaluate.runner: evalscope (docs/evaluation.md). Without it there is nothing here.

INPUTS
    results/<preset>/policy/<hash>/ or results/<preset>/runs/<method>-seed<k>-<hash>/final/, results/<preset>/data/<hash>/
OUTPUTS
    results/<preset>/artifacts/samples-<policy>-<hash>.parquet, reviews-<policy>-<hash>.parquet    answers, EvalScope's verdicts
    results/<preset>/artifacts/scores-<policy>-<hash>.parquet
    results/<preset>/disagreements/<policy>-<hash>.csv, .md    where our verifiers say otherwise
    results/<preset>/evalscope/<policy>-<hash>/    EvalScope's own files and the server's log; not declared, for a killed job goes on there
"""

if CONFIG.evaluate.runner == "evalscope":

    ruleorder: evalscope > sample
    ruleorder: judge > score

    rule evalscope:
        input:
            policy=lambda wildcards: PATHS.run(SAMPLED[wildcards.sampled]) / "done.json",
            data=PATHS.benchmarks / "done.json",
        output:
            samples=ROOT / "artifacts" / "samples-{sampled}.parquet",
            reviews=ROOT / "artifacts" / "reviews-{sampled}.parquet",
        params:
            policy=lambda wildcards: PATHS.model(SAMPLED[wildcards.sampled]),
            name=lambda wildcards: SAMPLED[wildcards.sampled],
            data=PATHS.benchmarks,
            work=lambda wildcards: ROOT / "evalscope" / wildcards.sampled,
        log:
            LOGS / "evalscope" / "{sampled}.log",
        benchmark:
            BENCHMARKS / "evalscope" / "{sampled}.tsv"
        message:
            "Evaluating {params.name} with EvalScope"
        threads: HEAVY.threads
        resources:
            **reserve(HEAVY),
        conda:
            HEAVY_ENV
        shell:
            "{CLI} evalscope --policy {params.policy:q} --name {params.name:q} --data {params.data:q} --work {params.work:q}"
            " --out {output.samples:q} --reviews {output.reviews:q} > {log:q} 2>&1"

    rule judge:
        input:
            samples=ROOT / "artifacts" / "samples-{sampled}.parquet",
            reviews=ROOT / "artifacts" / "reviews-{sampled}.parquet",
            data=PATHS.benchmarks / "done.json",
        output:
            scores=ROOT / "artifacts" / "scores-{sampled}.parquet",
            rows=ROOT / "disagreements" / "{sampled}.csv",
            page=ROOT / "disagreements" / "{sampled}.md",
        params:
            data=PATHS.benchmarks,
            method=lambda wildcards: PATHS.policies[SAMPLED[wildcards.sampled]][0],
            seed=lambda wildcards: PATHS.policies[SAMPLED[wildcards.sampled]][1],
            report=lambda wildcards: ROOT / "disagreements" / wildcards.sampled,
        log:
            LOGS / "judge" / "{sampled}.log",
        benchmark:
            BENCHMARKS / "judge" / "{sampled}.tsv"
        message:
            "Comparing EvalScope's verdicts on {wildcards.sampled} with ours"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} judge --samples {input.samples:q} --reviews {input.reviews:q} --data {params.data:q} --method {params.method:q}"
            " --seed {params.seed} --out {output.scores:q} --report {params.report:q} > {log:q} 2>&1"
