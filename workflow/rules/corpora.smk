"""Real data: benchmarks and cleaned training sets (docs/data.md). No other rule needs them in the tiny preset.

INPUTS
    config/datasets.yaml                 data sets and cleaning; another file by the environment variable IBTPO_DATASETS
    <data_root>/<data set>/...           raw files, put there by hand or by `snakemake fetch` (the only rule with a network)
OUTPUTS
    results/corpora/benchmarks/<name>.parquet, .json, .md    a benchmark and its report
    results/corpora/training/<name>.parquet, .json, .md      a cleaned training set and its report
TARGETS
    snakemake fetch                      fetch all data sets; `snakemake <data_root>/<name>/origin.json` one
    snakemake corpora                    build all data sets
"""

import os

from ibtpo.corpora.settings import load_settings

DATASETS = os.environ.get("IBTPO_DATASETS", "config/datasets.yaml")
CORPORA = Path("results/corpora")

try:
    REAL = load_settings(DATASETS)
except ConfigError as error:
    raise WorkflowError(str(error)) from None


def raw_files(wildcards):
    """The raw files that are there; none is no error here: the job itself says what to do."""
    folder = REAL.folder(wildcards.name)
    named = [folder / file for file in REAL.sources[wildcards.name].files if (folder / file).is_file()]
    return named or sorted(path for path in folder.glob("*.*") if path.suffix in (".jsonl", ".json", ".csv", ".parquet"))


rule fetch:
    input:
        [REAL.folder(name) / "origin.json" for name in REAL.sources],


rule corpora:
    input:
        [CORPORA / "benchmarks" / f"{name}.parquet" for name in REAL.benchmarks],
        [CORPORA / "training" / f"{name}.parquet" for name in REAL.trainings],


rule fetch_one:
    output:
        f"{REAL.data_root}/{{folder}}/origin.json",
    wildcard_constraints:
        folder="[^/]+",
    params:
        name=lambda wildcards: next(name for name in REAL.sources if REAL.folder(name).name == wildcards.folder),
    log:
        CORPORA / "logs" / "fetch" / "{folder}.log",
    message:
        "Fetching {params.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    shell:
        "{CLI} fetch --settings {DATASETS:q} --name {params.name:q} > {log:q} 2>&1"


rule benchmark:
    input:
        raw_files,
        settings=DATASETS,
    output:
        problems=CORPORA / "benchmarks" / "{name}.parquet",
        report=CORPORA / "benchmarks" / "{name}.json",
        page=CORPORA / "benchmarks" / "{name}.md",
    wildcard_constraints:
        name="|".join(map(re.escape, REAL.benchmarks)),
    log:
        CORPORA / "logs" / "benchmarks" / "{name}.log",
    message:
        "Building the benchmark {wildcards.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    shell:
        "{CLI} benchmark --settings {input.settings:q} --name {wildcards.name:q} --out {output.problems:q} > {log:q} 2>&1"


rule corpus:
    input:
        raw_files,
        settings=DATASETS,
        benchmarks=[CORPORA / "benchmarks" / f"{name}.parquet" for name in (REAL.benchmarks if REAL.against is None else REAL.against)],
    output:
        problems=CORPORA / "training" / "{name}.parquet",
        report=CORPORA / "training" / "{name}.json",
        page=CORPORA / "training" / "{name}.md",
    wildcard_constraints:
        name="|".join(map(re.escape, REAL.trainings)),
    log:
        CORPORA / "logs" / "training" / "{name}.log",
    message:
        "Cleaning the training data {wildcards.name}"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    shell:
        "{CLI} corpus --settings {input.settings:q} --name {wildcards.name:q} --benchmarks {input.benchmarks:q} --out {output.problems:q} > {log:q} 2>&1"
