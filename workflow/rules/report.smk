"""What leaves the results folder: the published artifacts and the generated block of the README.

Neither rule declares what it writes. Published artifacts and the README are sources, committed and read; if a rule could produce
them, Snakemake would ask for its inputs first, and a fresh clone would train everything for one table.

INPUTS
    results/<preset>/artifacts/, results/<preset>/tables/, results/<preset>/figures/
OUTPUTS
    results/<preset>/published/    (undeclared)
    README.md                      (undeclared, the generated block only)
"""


rule publish:
    input:
        sorted({PATHS.artifact(artifact) for name in TABLES | FIGURES for artifact in PATHS.shown(name)}),
    log:
        LOGS / "publish.log",
    message:
        "Publishing the current artifacts"
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
    shell:
        "{CLI} readme > {log:q} 2>&1"
