"""The report as a rule, and Snakemake's own report of tables and figures."""

from __future__ import annotations

from html import unescape

import pytest

from ibtpo.config.paths import EXTRA, FIGURES, TABLES

# what the scores of Table 1 are enough for
CHOICE = ("--config", "outputs=[table1, figure7]", "forest={policies: [], samplers: []}")


@pytest.fixture
def scored(project):
    project.publish_random_scores()
    return project


def test_the_report_is_made_once_and_follows_its_tables(scored):
    assert scored.jobs("report", *CHOICE) == {"report": 1, "table1": 1, "figure7": 1}
    scored.snakemake("--cores", "1", "report", *CHOICE)
    site = scored.folder / "results" / "report"
    first = (site / "index.html").read_text(encoding="utf-8")
    assert "The claims" in first and (site / "assets" / "tables" / "table1.csv").is_file()
    assert scored.jobs("report", *CHOICE) == {}
    changed = (*CHOICE, "evaluate={confidence: 0.9}")
    assert scored.jobs("report", *changed) == {"report": 1, "table1": 1, "figure7": 1}


def test_snakemakes_own_report_has_captions_categories_and_labels(scored):
    made = ("table1", "figure7", *CHOICE)
    scored.snakemake("--cores", "1", *made)
    scored.snakemake(*made, "--report", "report.html")
    page = unescape((scored.folder / "report.html").read_text(encoding="utf-8"))
    for text in ("Tables", "Table 1", "Figures", "Figure 7", "Accuracy of the base policy", "pass@k"):
        assert text in page, text


def test_every_table_and_figure_has_a_caption_for_it(scored):
    folder = scored.folder / "workflow" / "report"
    for name in TABLES | EXTRA | FIGURES:
        text = (folder / f"{name}.rst").read_text(encoding="utf-8")
        assert text.rstrip().endswith("."), name
