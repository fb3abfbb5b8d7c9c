"""The tiny world: problems with worked solutions, and the benchmarks.

INPUTS
    none
OUTPUTS
    results/<preset>/data/<hash>/    sft, train and validation.parquet, benchmarks/<name>.parquet, done.json last
"""


rule data:
    input:
        PATHS.data / "done.json",


rule build_data:
    output:
        done=PATHS.data / "done.json",
    params:
        out=PATHS.data,
    log:
        LOGS / "data" / f"{PATHS.data.name}.log",
    benchmark:
        BENCHMARKS / "data" / f"{PATHS.data.name}.tsv"
    message:
        "Building problems and benchmarks"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    shell:
        "{CLI} data --out {params.out:q} > {log:q} 2>&1"
