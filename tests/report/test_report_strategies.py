"""Tables 3 and 6 against hand-computed values; what is missing is named."""

import pytest
from reading import cells, markdown_rows

from ibtpo.report.render import markdown
from ibtpo.report.table3 import table3
from ibtpo.report.table6 import table6


def test_table3_values(config, trees):
    table = table3(config, [trees])
    found = cells(table)
    for row, size, tokens, ratio, reported in [
        ("independent, G = 8", 8, 800, 200 / 3, ("54.7", "19.6", "7469", "62.1")),
        ("independent, G = 12", 12, 1200, 100, ("59.8", "20.1", "12035", "100.0")),
        ("random tree, G = 12", 12, 720, 60, ("48.4", "20.0", "7579", "63.0")),
        ("IBTree, G = 12, beta = 5", 12, 720, 60, ("60.2", "23.2", "7592", "63.1")),
    ]:
        columns = ["Eff-Rate", "Avg-Rate", "tokens / problem", "tokens vs. independent, G = 12"]
        values = [100 * 5 / 6, 100 * 15 / 6 / size, tokens, ratio]
        assert [float(found[row, column]["value"]) for column in columns] == pytest.approx(values, abs=1e-3)
        assert tuple(found[row, column]["reported"] for column in columns) == reported
        assert {found[row, column]["n_samples"] for column in columns} == {str(size)}
        assert {found[row, column]["n_seeds"] for column in columns} == {"1"}


def test_table3_differences_are_paired(config, trees):
    table = table3(config, [trees])
    assert [grid.label for grid in table.grids[1:]] == ["Difference to independent, G = 12", "Difference to independent, G = 8"]
    equal, smaller = table.grids[1:]
    same = equal.cells["IBTree, G = 12, beta = 5", "Eff-Rate"].estimate
    assert (same.value, same.low, same.high) == (0, 0, 0)  # the same groups differ
    assert equal.cells["IBTree, G = 12, beta = 5", "tokens / problem"].estimate.value == -480
    assert equal.cells["IBTree, G = 12, beta = 5", "tokens / problem"].note == "lower"
    assert smaller.cells["independent, G = 12", "Avg-Rate"].estimate.value == pytest.approx(15 / 6 / 12 - 15 / 6 / 8)
    assert ("independent, G = 8", "Eff-Rate") not in smaller.cells


def test_table3_header_labels_the_papers_numbers(config, trees):
    header = markdown_rows(markdown(table3(config, [trees])))[0]
    assert header.count("reported") == 4


def test_table3_skips_unscorable_trajectories(config, trees):
    trees.loc[(trees["uid"] == "p5") & (trees["trajectory"] >= 5), "reward"] = None
    found = cells(table3(config, [trees]))
    assert float(found["IBTree, G = 12, beta = 5", "Eff-Rate"]["value"]) == pytest.approx(100 * 4 / 6, abs=1e-3)
    assert float(found["IBTree, G = 12, beta = 5", "Avg-Rate"]["value"]) == pytest.approx(100 * (10 / 12 + 1) / 6, abs=1e-3)


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("strategy == 'random12'", r"^no rows for table3: missing random12 \(strategy\)"),
        ("strategy == 'ibtree12' and uid == 'p2' and trajectory == 7", r"ibtree12, seed 0, problem p2 has 11 trajectories, not 12"),
        ("strategy == 'ibtree12' and uid == 'p2'", r"ibtree12 and independent8 were not run on the same problems and seeds"),
    ],
)
def test_table3_names_what_is_missing(config, trees, dropped, message):
    with pytest.raises(ValueError, match=message):
        table3(config, [trees.query(f"not ({dropped})")])


def test_table3_needs_every_problem_for_every_seed_and_a_score(config, trees):
    second = trees[trees["uid"] != "p1"].assign(seed=1)
    with pytest.raises(ValueError, match="independent8 has problems that are missing for a seed"):
        table3(config, [trees, second])
    trees.loc[trees["uid"] == "p1", "reward"] = None
    with pytest.raises(ValueError, match="no scored trajectory"):
        table3(config, [trees])


def test_table3_shows_the_papers_numbers_only_for_the_papers_settings(config, trees):
    paper = {"ibtree12": "60.2", "eptree12": "57.8", "fixed12": "", "ibtree12-beta1": "", "ibtree12-r2": "", "ibtree12-b6k1b1": ""}
    chosen = config.comparison.model_copy(update={"table3": tuple(paper)})
    one = trees[trees["strategy"] == "ibtree12"]
    table = table3(config.model_copy(update={"comparison": chosen}), [one.assign(strategy=name) for name in paper])
    assert [grid.label for grid in table.grids] == ["Measured, preset tiny; reported: Qwen3-8B-Base"]  # nothing independent to compare with
    found = [table.grids[0].cells[row, "Eff-Rate"].reported for row in table.grids[0].rows]
    assert ["" if value is None else f"{value:.1f}" for value in found] == list(paper.values())
    assert table.grids[0].cells["fixed width, G = 12", "Avg-Rate"].reported == 19.9


def test_table6_shows_the_shape_and_holds_it_against_the_methods_own(config, trees):
    table = table6(config, [trees])
    measured, difference, _ = table.grids
    assert measured.rows == ("ibtree12-b2k1b1", "ibtree12", "ibtree12-b4k2b2")
    found = cells(table)
    shapes = {row: [float(found[row, name]["value"]) for name in ("B0", "K", "B", "L")] for row in measured.rows}
    assert shapes == {"ibtree12-b2k1b1": [2, 1, 1, 11], "ibtree12": [4, 1, 1, 9], "ibtree12-b4k2b2": [4, 2, 2, 3]}
    assert all(b0 + (levels - 1) * k * b == 12 for b0, k, b, levels in shapes.values())
    assert difference.rows == ("ibtree12-b2k1b1", "ibtree12-b4k2b2")
    assert float(found["ibtree12-b2k1b1", "tokens vs. ibtree12"]["value"]) == 100
    assert [float(found["ibtree12", name]["value"]) for name in ("mean IB-Score", "root picked", "picked before")] == [1.5, 25, 50]
    row = markdown_rows(markdown(table))[2]
    assert row[:5] == ["ibtree12-b2k1b1", "2", "1", "1", "11"] and row[5].startswith("83.3 [")
    assert all(cell.reported is None for grid in table.grids for cell in grid.cells.values())


def test_table6_without_picks_or_a_reference(config, trees):
    chosen = config.comparison.model_copy(update={"table6": ("independent8", "independent12")})
    measured, search = table6(config.model_copy(update={"comparison": chosen}), [trees]).grids
    assert [column.name for column in measured.columns] == ["B0", "K", "B", "L", "Eff-Rate", "Avg-Rate", "tokens / problem"]
    assert {column for _, column in search.cells} == {"mean IB-Score"}
    with pytest.raises(ValueError, match=r"^table6: an input has no column root_repicked"):
        table6(config, [trees.drop(columns="root_repicked")])
