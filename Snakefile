"""IB-TPO, from nothing to tables and figures. This file is the table of contents; `python -m ibtpo` does the work.

    snakemake all                              everything of the tiny preset
    snakemake table1                           one table, from the published artifacts where they fit the configuration
    snakemake all --config artifacts=fresh     everything, computed anew
    snakemake all --config preset=smoke        another preset; any other key of the configuration can be given in the same way
"""

from snakemake.utils import min_version

min_version("9.0")

report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/policy.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/evalscope.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/corpora.smk"


localrules: all, data, fetch_model, fetch_one, policy, publish, readme


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.forests.input,
