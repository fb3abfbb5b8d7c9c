"""Figures, one rule each, named as the figure.

INPUTS
    results/<preset>/published/ or results/<preset>/artifacts/    the tidy artifacts of the figure
OUTPUTS
    results/<preset>/figures/<name>.{svg,pdf,png,caption.txt}
"""

for FIGURE in FIGURES:

    rule:
        name:
            FIGURE
        input:
            [PATHS.artifact(name) for name in PATHS.shown(FIGURE)],
        output:
            *PATHS.outputs(FIGURE)[1:],
            svg=report(PATHS.outputs(FIGURE)[0], category="Figures", labels={"figure": title(FIGURE)}, caption=f"../report/{FIGURE}.rst"),
        params:
            name=FIGURE,
            stem=PATHS.stem(FIGURE),
            slice=slices.slice_hash(slices.report(CONFIG)),
        log:
            LOGS / "figures" / f"{FIGURE}.log",
        benchmark:
            BENCHMARKS / "figures" / f"{FIGURE}.tsv"
        message:
            f"Drawing {FIGURE}"
        threads: LIGHT.threads
        resources:
            **reserve(LIGHT),
        conda:
            LIGHT_ENV
        shell:
            "{CLI} figure --name {params.name:q} --inputs {input:q} --out {params.stem:q} > {log:q} 2>&1"


rule figures:
    input:
        [path for name in PATHS.figures for path in PATHS.outputs(name)],
