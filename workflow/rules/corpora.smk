"""Real data: benchmarks and cleaned training sets (docs/data.md). No other rule needs them in the tiny preset.

Raw files are not declared: a job says itself which one is missing or has changed, and data that moved or went is no reason to train again.

INPUTS
    config/datasets.yaml            data sets and cleaning; a preset may override any of it under `corpora`
    <data_root>/<data set>/...      raw files, put there by hand or by `snakemake fetch` (with fetch_model the only rules with a network)
OUTPUTS
    results/corpora/<name>-<hash>/<name>.parquet, .json, .md    a benchmark or a cleaned training set, and its report
TARGETS
    snakemake fetch                 the data sets that a real preset needs, all in tiny; `snakemake <data_root>/<name>/origin.json` one
    snakemake corpora               build them
"""

CORPORA = CONFIG.corpora
USED = {*CONFIG.problems.train, *CONFIG.problems.validation, *CONFIG.evaluate.benchmarks}
if USED & {*CORPORA.trainings}:
    USED |= {*CORPORA.checked}  # what training data is cleaned against
NAMES = [name for name in CORPORA.sources if name in USED] or list(CORPORA.sources)
HASHES = "|".join(PATHS.corpus(name).parent.name.removeprefix(f"{name}-") for name in CORPORA.sources)
FETCHED = {str(CORPORA.folder(name)): name for name in CORPORA.sources if CORPORA.sources[name].hub}  # by folder; some sets share theirs


rule fetch:
    input:
        [CORPORA.folder(name) / "origin.json" for name in NAMES if CORPORA.sources[name].hub],


rule corpora:
    input:
        [PATHS.corpus(name) for name in NAMES],


rule fetch_one:
    output:
        "{folder}/origin.json",
    wildcard_constraints:
        folder=one_of(FETCHED),
    params:
        name=lambda wildcards: FETCHED[wildcards.folder],
    log:
        "results/corpora/logs/fetch/{folder}.log",
    message:
        "Fetching {params.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} fetch --name {params.name:q} > {log:q} 2>&1"


rule benchmark:
    output:
        problems="results/corpora/{name}-{hash}/{name}.parquet",
        report="results/corpora/{name}-{hash}/{name}.json",
        page="results/corpora/{name}-{hash}/{name}.md",
    wildcard_constraints:
        name=one_of(CORPORA.benchmarks),
        hash=HASHES,
    log:
        "results/corpora/logs/{name}-{hash}.log",
    message:
        "Building the benchmark {wildcards.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} benchmark --name {wildcards.name:q} --out {output.problems:q} > {log:q} 2>&1"


rule corpus:
    input:
        benchmarks=[PATHS.corpus(name) for name in CORPORA.checked],
    output:
        problems="results/corpora/{name}-{hash}/{name}.parquet",
        report="results/corpora/{name}-{hash}/{name}.json",
        page="results/corpora/{name}-{hash}/{name}.md",
    wildcard_constraints:
        name=one_of(CORPORA.trainings),
        hash=HASHES,
    log:
        "results/corpora/logs/{name}-{hash}.log",
    message:
        "Cleaning the training data {wildcards.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} corpus --name {wildcards.name:q} --benchmarks {input.benchmarks:q} --out {output.problems:q} > {log:q} 2>&1"
