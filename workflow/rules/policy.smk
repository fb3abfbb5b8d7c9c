"""The base policy, trained from scratch on worked solutions.

INPUTS
    results/<preset>/data/<hash>/
OUTPUTS
    results/<preset>/policy/<hash>/    weights and tokenizer in the usual files, done.json last
"""


rule policy:
    input:
        PATHS.policy / "done.json",


rule train_policy:
    input:
        data=PATHS.data / "done.json",
    output:
        done=PATHS.policy / "done.json",
    params:
        data=PATHS.data,
        out=PATHS.policy,
    log:
        LOGS / "policy" / f"{PATHS.policy.name}.log",
    benchmark:
        BENCHMARKS / "policy" / f"{PATHS.policy.name}.tsv"
    message:
        "Training the base policy on worked solutions"
    threads: HEAVY.threads
    resources:
        **reserve(HEAVY),
    shell:
        "{CLI} policy --data {params.data:q} --out {params.out:q} > {log:q} 2>&1"
