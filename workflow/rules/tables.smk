"""Tables, one rule each, named as the table.

INPUTS
    results/<preset>/published/ or results/<preset>/artifacts/    the tidy artifacts of the table
OUTPUTS
    results/<preset>/tables/<name>.{md,csv,tex,caption.txt}
"""

for TABLE in TABLES | EXTRA:

    rule:
        name:
            TABLE
        input:
            [PATHS.artifact(name) for name in PATHS.shown(TABLE)],
        output:
            *PATHS.outputs(TABLE)[1:],
            csv=report(PATHS.outputs(TABLE)[0], category="Tables", labels={"table": title(TABLE)}, caption=f"../report/{TABLE}.rst"),
        params:
            name=TABLE,
            stem=PATHS.stem(TABLE),
            slice=slices.slice_hash(slices.report(CONFIG)),
        log:
            LOGS / "tables" / f"{TABLE}.log",
        benchmark:
            BENCHMARKS / "tables" / f"{TABLE}.tsv"
        message:
            f"Making {TABLE}"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} table --name {params.name:q} --inputs {input:q} --out {params.stem:q} > {log:q} 2>&1"


rule tables:
    input:
        [path for name in PATHS.tables for path in PATHS.outputs(name)],
