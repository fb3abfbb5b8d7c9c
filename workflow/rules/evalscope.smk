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

    def reviews_of(policy):
        """EvalScope's verdicts, named as the samples are."""
        return ROOT / "artifacts" / f"{PATHS.key(f'samples-{policy}').replace('samples', 'reviews', 1)}.parquet"

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
            samples=lambda wildcards: PATHS.computed(f"samples-{SCORED[wildcards.scored]}"),
            reviews=lambda wildcards: reviews_of(SCORED[wildcards.scored]),
            data=PATHS.benchmarks / "done.json",
        output:
            scores=ROOT / "artifacts" / "scores-{scored}.parquet",
            rows=ROOT / "disagreements" / "{scored}.csv",
            page=ROOT / "disagreements" / "{scored}.md",
        params:
            data=PATHS.benchmarks,
            method=lambda wildcards: PATHS.policies[SCORED[wildcards.scored]][0],
            seed=lambda wildcards: PATHS.policies[SCORED[wildcards.scored]][1],
            report=lambda wildcards: ROOT / "disagreements" / wildcards.scored,
        log:
            LOGS / "judge" / "{scored}.log",
        benchmark:
            BENCHMARKS / "judge" / "{scored}.tsv"
        message:
            "Comparing EvalScope's verdicts on {wildcards.scored} with ours"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} judge --samples {input.samples:q} --reviews {input.reviews:q} --data {params.data:q} --method {params.method:q}"
            " --seed {params.seed} --out {output.scores:q} --report {params.report:q} > {log:q} 2>&1"
