"""ERPO's two tables and the ablations of IB-TPO: what is shown, compared and reported."""

import pytest
from reading import cells

from ibtpo.evaluation.statistics import format_rate
from ibtpo.report.erpo1 import erpo1
from ibtpo.report.erpo2 import erpo2
from ibtpo.report.reported import reported
from ibtpo.report.studies import studies
from ibtpo.report.table2 import table2
from ibtpo.report.table4 import table4
from ibtpo.report.table5 import table5


def test_erpo1_has_accuracy_and_format_rate(config, all_scores):
    accuracy, form, paper = erpo1(config, [all_scores]).grids
    assert accuracy.rows == form.rows == ("base policy", "GRPO", "ERPO")
    for method, row in [("base", "base policy"), ("grpo", "GRPO"), ("erpo", "ERPO")]:
        rows = all_scores[all_scores["method"] == method]
        assert form.cells[row, "Avg"].estimate.value == pytest.approx(format_rate(rows))
        assert accuracy.cells[row, "Avg"].estimate.value == pytest.approx(rows["reward"].mean())
        assert form.cells[row, "Avg"].estimate.value >= accuracy.cells[row, "Avg"].estimate.value
    assert form.cells["ERPO", "Avg"].estimate.value == 0.75  # the fourth sample is never right and has no readable answer
    assert form.cells["ERPO", "Avg - GRPO"].estimate.value == 0
    assert form.cells["ERPO", "p (Holm)"].number == 1
    assert paper.cells["Qwen2.5-1.5B: ERPO", "AMC23 Acc"].reported == 27.19
    assert paper.cells["Qwen2.5-7B: base policy", "Average Fmt"].reported == 82.29
    assert len(paper.rows) == 9


def test_erpo1_needs_the_status(config, all_scores):
    with pytest.raises(ValueError, match=r"^erpo1: an input has no column status; score the samples again"):
        erpo1(config, [all_scores.drop(columns="status")])


def test_erpo2_has_pass_at_k_by_benchmark(config, all_scores):
    table = erpo2(config, [all_scores])
    assert [grid.label.split(": ")[1] for grid in table.grids[:3]] == ["chain-sum-5", "gcd", "difference to GRPO, Avg of the benchmarks"]
    assert [column.name for column in table.grids[0].columns] == ["pass@4"]  # k = 1 is the accuracy
    for grid in table.grids[:2]:
        assert grid.cells["ERPO", "pass@4"].estimate.value == pytest.approx(5 / 6)
        assert grid.cells["ERPO", "pass@4"].problems == 6
    assert table.grids[2].rows == ("base policy", "ERPO")
    assert table.grids[2].cells["ERPO", "pass@4"].estimate.value == 0
    amc = table.grids[3]
    assert amc.label == "Reported by ERPO, not measured here: AMC23"
    assert [amc.cells["Qwen2.5-3B: GRPO", f"pass@{k}"].reported for k in (2, 4, 8, 16)] == [46.00, 59.57, 71.73, 80.00]
    assert len(table.grids) == 3 + 4
    assert "no correction" in table.caption and "Holm" not in table.caption, "there is no p in this table"


def test_erpo2_without_a_k_above_1_says_what_to_do(config, all_scores):
    plan = config.evaluate.model_copy(update={"pass_at": (1,)})
    with pytest.raises(ValueError, match=r"add such a k to evaluate\.pass_at"):
        erpo2(config.model_copy(update={"evaluate": plan}), [all_scores])


def test_erpos_averages_are_means_of_what_is_reported():
    for model, rows in reported("erpo1").items():
        for row in rows.values() if model != "columns" else []:
            for what in ("Acc", "Fmt"):
                parts = [value for column, value in row.items() if column.endswith(what) and not column.startswith("Average")]
                assert sum(parts) / len(parts) == pytest.approx(row[f"Average {what}"], abs=0.011)


def test_pass_at_k_grows_with_k_in_what_is_reported():
    for name in ("AMC23", "Minerva", "AIME24", "AIME25"):
        for model, rows in reported(f"erpo2-{name}").items():
            for row in rows.values() if model != "columns" else []:
                assert list(row.values()) == sorted(row.values())


@pytest.mark.parametrize(
    ("builder", "reference", "rows", "said"),
    [
        (table2, "GRPO", ("base policy", "GRPO", "+ IBTree", "IB-TPO"), "Components of IB-TPO"),
        (table4, "IB-TPO", ("base policy", "IB-TPO lambda 0", "IB-TPO"), "IB-TPO itself has 0.1."),
        (table5, "IB-TPO", ("base policy", "GRPO", "IB-TPO", "IB-TPO 10% delimiter noise"), "moved: 10% (IB-TPO 10% delimiter noise)."),
        (studies, "IB-TPO", ("base policy", "IB-TPO", "IB-TPO with r squared"), "Estimator studies, not in the paper"),
    ],
)
def test_ablations_are_held_against_their_reference(config, all_scores, builder, reference, rows, said):
    table = builder(config, [all_scores])
    measured = table.grids[0]
    assert measured.rows == rows
    gain = f"Avg - {reference}"
    assert {row for row, column in measured.cells if column == gain} == set(rows) - {reference}
    assert said in table.caption
    assert f"{gain}: " in table.caption
    found = cells(table)
    expected = {"base policy": 1 / 4, "GRPO": 1.5 / 4}  # all others 2.5 / 4
    gap = expected.get(rows[-1], 2.5 / 4) - expected.get(reference, 2.5 / 4)
    if rows[-1] != reference:
        assert float(found[rows[-1], gain]["value"]) == pytest.approx(100 * 5 / 6 * gap, abs=1e-3)
    assert len(table.grids) == (3 if builder is table2 else 2)  # values of tables 4 and 5 are not known


def test_table2_reports_what_is_known(config, all_scores):
    paper = table2(config, [all_scores]).grids[2]
    assert [paper.cells["+ IBTree", name].reported for name in ("AIME25", "AMC24", "GPQA-D")] == [15.0, 43.8, 40.8]
    assert not any(row == "base policy" for row, _ in paper.cells)
