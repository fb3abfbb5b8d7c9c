"""The base policy: trained from scratch on worked solutions, or (with policy.card) a model that lies in a local folder.

INPUTS
    results/<preset>/data/<hash>/      or, for a model of a card, its local folder (`snakemake fetch_model`)
OUTPUTS
    results/<preset>/policy/<hash>/    weights (links to those of the local folder) and tokenizer in the usual files, done.json last
TARGETS
    snakemake fetch_model              fetch the model of policy.card: with `fetch` the only rule with a network
"""


rule policy:
    input:
        PATHS.policy / "done.json",


if CONFIG.policy.card:

    rule fetch_model:
        output:
            CONFIG.policy.place / "origin.json",
        params:
            card=CONFIG.policy.card,
            out=CONFIG.policy.place,
        log:
            LOGS / "fetch" / f"{CONFIG.policy.card}.log",
        message:
            "Fetching {params.card}"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} fetch-model --card {params.card:q} --out {params.out:q} > {log:q} 2>&1"

    rule link_model:
        output:
            done=PATHS.policy / "done.json",  # the local model is not declared: the job says itself what is missing
        params:
            out=PATHS.policy,
            folder=str(CONFIG.policy.place),  # another one is linked again; Snakemake compares text, and no path
            card=CONFIG.policy.card,
        log:
            LOGS / "policy" / f"{PATHS.policy.name}.log",
        benchmark:
            BENCHMARKS / "policy" / f"{PATHS.policy.name}.tsv"
        message:
            "Comparing the model with its card {params.card}"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} model --out {params.out:q} > {log:q} 2>&1"

else:

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
        conda:
            HEAVY_ENV
        shell:
            "{CLI} policy --data {params.data:q} --out {params.out:q} > {log:q} 2>&1"
