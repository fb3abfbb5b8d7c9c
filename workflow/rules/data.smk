"""Problems to train on and benchmarks: of the tiny world, or (with problems.train) of real data sets and procedural tasks.

INPUTS
    results/corpora/<name>-<hash>/<name>.parquet    built data sets, of a real preset only
OUTPUTS
    results/<preset>/data/<hash>/    train and validation.parquet, benchmarks/<name>.parquet, done.json last; of the tiny world also sft.parquet.
                                     A real preset has a folder of its own for benchmarks, so that they never touch training.
"""


rule data:
    input:
        PATHS.data / "done.json",
        PATHS.benchmarks / "done.json",


if CONFIG.problems.train:

    SPLITS = {
        PATHS.data.name: ("training", PATHS.corpora([*CONFIG.problems.train, *CONFIG.problems.validation])),
        PATHS.benchmarks.name: ("benchmarks", PATHS.corpora(CONFIG.evaluate.benchmarks)),
    }

    rule build_problems:
        input:
            corpora=lambda wildcards: SPLITS[wildcards.problems][1],
        output:
            done=ROOT / "data" / "{problems}" / "done.json",
        wildcard_constraints:
            problems="|".join(SPLITS),
        params:
            split=lambda wildcards: SPLITS[wildcards.problems][0],
            out=subpath(output.done, parent=True),
        log:
            LOGS / "data" / "{problems}.log",
        benchmark:
            BENCHMARKS / "data" / "{problems}.tsv"
        message:
            "Putting together the problems of {params.split}"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} problems --split {params.split} --corpora {input.corpora:q} --out {params.out:q} > {log:q} 2>&1"

else:

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
        conda:
            LIGHT_ENV
        shell:
            "{CLI} data --out {params.out:q} > {log:q} 2>&1"
