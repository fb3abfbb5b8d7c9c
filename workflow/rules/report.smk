"""The report, and what leaves the results folder: the published artifacts and the generated block of the README.

`publish` and `readme` do not declare what they write. Published artifacts and the README are sources, committed and read; if a rule could produce
them, Snakemake would ask for its inputs first, and a fresh clone would train everything for one table.

INPUTS
    results/<preset>/artifacts/, results/<preset>/tables/, results/<preset>/figures/
OUTPUTS
    results/report/index.html      the site's first page; of another preset than the default: results/<preset>/report/index.html
    results/<preset>/published/    (undeclared)
    README.md                      (undeclared, the generated block only)
"""


rule publish:
    input:
        [PATHS.artifact(name) for name in PATHS.report_inputs()],
    log:
        LOGS / "publish.log",
    message:
        "Publishing the current artifacts"
    conda:
        LIGHT_ENV
    shell:
        "{CLI} publish > {log:q} 2>&1"


rule readme:
    input:
        rules.tables.input,
        rules.figures.input,
    log:
        LOGS / "readme.log",
    message:
        "Renewing the generated block of README.md"
    conda:
        LIGHT_ENV
    shell:
        "{CLI} readme > {log:q} 2>&1"


rule report:
    input:
        rules.tables.input,
        rules.figures.input,
        [PATHS.artifact(name) for name in PATHS.report_inputs()],
    output:
        PATHS.site / "index.html",
    params:
        out=PATHS.site,
        slice=slices.slice_hash(slices.site(CONFIG)),
    log:
        LOGS / "report.log",
    benchmark:
        BENCHMARKS / "report.tsv"
    message:
        "Writing the report"
    threads: LIGHT.threads
    resources:
        **reserve(LIGHT),
    conda:
        LIGHT_ENV
    shell:
        "{CLI} report --out {params.out:q} > {log:q} 2>&1"


rule plan:
    localrule: True
    message:
        "Planning preset {PRESET}"
    conda:
        LIGHT_ENV
    shell:
        "{CLI} plan"
