"""Tables of accuracies against hand-computed values; what is missing is named and nothing is written."""

import csv
import io
import re

import pandas as pd
import pytest
from reading import cells, markdown_rows

from ibtpo.config import load
from ibtpo.evaluation.statistics import Estimate
from ibtpo.io import write_parquet
from ibtpo.report import main_table
from ibtpo.report.render import latex, markdown, tidy_csv
from ibtpo.report.reported import model_of, reported
from ibtpo.report.table import Cell, Column, Grid, Table
from ibtpo.report.table1 import table1
from ibtpo.report.tables import TABLES

NASTY = "a|b_c & <script>alert(1)</script>\n$x^2$ 100% `q` {z} ~#\\ [l](u) *w*"


def test_table1_values(config, scores):
    found = cells(table1(config, [scores]))
    share = 100 * 5 / 6  # of problems that are ever solved
    for row, correct, seeds in [("base policy", 1 / 4, "1"), ("GRPO", 1.5 / 4, "2"), ("IB-TPO", 2.5 / 4, "2")]:
        for column, problems in [("chain-sum-5", "6"), ("gcd", "6"), ("Avg", "12")]:
            cell = found[row, column]
            assert float(cell["value"]) == pytest.approx(share * correct, abs=1e-4)
            assert float(cell["low"]) < float(cell["value"]) < float(cell["high"])
            assert (cell["n_problems"], cell["n_samples"], cell["n_seeds"]) == (problems, "4", seeds)
        assert float(found[row, "pass@4"]["value"]) == pytest.approx(share, abs=1e-4)
    gain = found["IB-TPO", "Avg - GRPO"]
    assert float(gain["value"]) == pytest.approx(share / 4, abs=1e-4)
    assert gain["note"] == "higher"
    assert gain["n_seeds"] == "2"
    base = found["base policy", "Avg - GRPO"]
    assert (float(base["value"]), base["note"]) == (pytest.approx(-share / 8, abs=1e-4), "not told apart")  # lower in one seed of two
    for row in ("base policy", "IB-TPO"):  # 10 of 12 problems differ, all one way: 2 of 2^10 sign flips, times 2 comparisons
        assert float(found[row, "p (Holm)"]["value"]) == pytest.approx(2 * 2 / 2**10, abs=1e-6)
    assert ("GRPO", "Avg - GRPO") not in found
    assert found["base policy", "Avg"]["se_seeds"] == "n/a"
    assert float(found["GRPO", "Avg"]["se_seeds"]) == pytest.approx(share / 8, abs=1e-4)


def test_table1_orders_rows_and_labels_what_is_reported(config, scores):
    table = table1(config, [scores])
    measured, passes, reported = table.grids
    assert measured.rows == passes.rows == reported.rows == ("base policy", "GRPO", "IB-TPO")
    assert "Reported" in reported.label
    assert "Qwen3-8B-Base" in reported.label
    assert {key: cell.reported for key, cell in reported.cells.items() if key[1] == "Avg of 7"} == {
        ("GRPO", "Avg of 7"): 40.7,
        ("IB-TPO", "Avg of 7"): 44.3,
    }
    assert all(cell.reported is None for cell in measured.cells.values())
    rows = markdown_rows(markdown(table))
    assert next(row for row in reversed(rows) if row[0] == "base policy")[1:] == [""] * 8  # not known stays empty


@pytest.mark.parametrize(
    ("table", "preset", "model"),
    [
        ("table1", "qwen3-1.7b", "Qwen3-1.7B-Base"),
        ("table1", "qwen3-8b", "Qwen3-8B-Base"),
        ("table1", "tiny", "Qwen3-8B-Base"),
        ("table2", "qwen3-1.7b", "Qwen3-8B-Base"),
    ],
)
def test_what_is_reported_is_of_the_presets_model_where_the_paper_has_it(table, preset, model):
    assert model_of(table, load(preset)) == model in reported(table)


def test_reported_averages_are_the_means_of_their_columns():
    complete = 0
    for model, rows in reported("table1").items():
        for row in rows.values() if model != "columns" else []:
            assert set(row) <= set(reported("table1")["columns"])
            if len(row) == 8:
                complete += 1
                assert sum(row.values()) - row["Avg of 7"] == pytest.approx(7 * row["Avg of 7"], abs=0.36)  # Avg is rounded to 0.1
    assert complete == 2


def test_table1_base_seed_may_be_any(config, scores):
    other = scores.assign(seed=scores["seed"].replace(-1, 0))
    assert tidy_csv(table1(config, [other])) == tidy_csv(table1(config, [scores]))


def test_table1_takes_no_other_rows(config, scores):
    more = scores[scores["method"] == "grpo"].assign(method="other")
    assert tidy_csv(table1(config, [scores, more])) == tidy_csv(table1(config, [scores]))


def test_table1_caption_states_what_is_shown(config, scores):
    caption = table1(config, [scores]).caption
    for part in [
        "avg@4",
        "Preset tiny",
        "(chain-sum-5 6, gcd 6) x 4 x 2",
        "95% interval from the spreads over problems and over seeds",
        "Holm-corrected",
        "p is at most 0.05",
        "Avg - GRPO: higher for IB-TPO; not told apart for base policy.",
    ]:
        assert part in caption


def test_an_interval_without_0_is_not_enough(scores):
    """4 problems that all gain: the interval leaves out 0, but 2 of 2^4 sign flips are as far, so p = 0.125 (times 2 comparisons)."""
    evaluate = {"samples": 4, "pass_at": [1], "benchmarks": ["gcd"]}
    few = load("tiny", {"seeds": [0], "evaluate": evaluate, "tables": {"table1": ["grpo", "ibtpo"]}})
    table = table1(few, [scores[~scores["uid"].isin(["gcd/0", "gcd/5"])]])
    gain, p = (table.grids[0].cells["IB-TPO", name] for name in ("Avg - GRPO", "p (Holm)"))
    assert gain.estimate.low > 0
    assert (gain.note, p.number) == ("not told apart", 0.25)
    assert "Avg - GRPO: not told apart for base policy, IB-TPO." in table.caption


def test_one_seed_says_so(scores):
    evaluate = {"samples": 4, "pass_at": [1], "benchmarks": ["gcd"]}
    table = table1(load("tiny", {"seeds": [0], "evaluate": evaluate, "tables": {"table1": ["grpo", "ibtpo"]}}), [scores])
    assert {row["se_seeds"] for row in cells(table).values() if row["low"]} == {"n/a"}
    assert "from the spread over problems, with one seed" in table.caption


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        (
            "method == 'ibtpo'",
            r"^no rows for table1: missing ibtpo/0/chain-sum-5, ibtpo/0/gcd, ibtpo/1/chain-sum-5, ibtpo/1/gcd \(method/seed/",
        ),
        ("method == 'grpo' and seed == 1 and benchmark == 'gcd'", r"^no rows for table1: missing grpo/1/gcd "),
        ("method == 'base'", r"^no rows for table1: missing base/-1/chain-sum-5, base/-1/gcd "),
        ("seed > -9", r"^no rows for table1: missing base/-1/chain-sum-5, .* and 5 more "),
        ("method == 'grpo' and seed == 1 and benchmark == 'gcd' and sample == 3", r"^table1, grpo/1/gcd: 18 of 24 samples present"),
        ("method == 'grpo' and seed == 1 and uid == 'gcd/5'", r"^table1, grpo/1/gcd: 20 of 24 samples present"),
    ],
)
def test_table1_names_what_is_missing_and_writes_nothing(config, scores, tmp_path, dropped, message):
    write_parquet(scores.query(f"not ({dropped})"), tmp_path / "scores.parquet")
    with pytest.raises(ValueError, match=message):
        main_table("table1", config, [tmp_path / "scores.parquet"], tmp_path / "out" / "table1")
    assert not (tmp_path / "out").exists()


def test_table1_refuses_unscored_and_double_samples(config, scores):
    unscored = scores.copy()
    unscored.loc[5, "reward"] = float("nan")
    with pytest.raises(ValueError, match=r"base/-1/chain-sum-5: the verifier failed on 1 answers, e.g. sample \d of .*/\d: delete"):
        table1(config, [unscored])
    with pytest.raises(ValueError, match=r"base/-1/chain-sum-5: 24 samples occur twice.*listed twice"):
        table1(config, [scores, scores])
    with pytest.raises(ValueError, match=r"expected 6 problems x 4 samples, but there is also sample 4"):
        table1(config, [scores, scores[scores["sample"] == 0].assign(sample=4)])


def test_no_input_and_a_missing_column_are_named(config, trees):
    for builder in TABLES.values():
        with pytest.raises(ValueError, match=rf"^no rows for {builder.__name__}: missing "):
            builder(config, [])
    with pytest.raises(ValueError, match=r"^table1: an input has no column method, benchmark, sample \(it has: strategy"):
        table1(config, [trees])


def test_unknown_table(config, tmp_path):
    with pytest.raises(ValueError, match="there is no table 'table11'; known: table1, table2, "):
        main_table("table11", config, [], tmp_path / "table11")


def test_names_are_escaped_and_equal_ones_kept_apart(config, scores):
    content = {name: method.model_copy(update={"title": NASTY}) for name, method in config.methods.items()}
    table = table1(config.model_copy(update={"methods": content}), [scores])
    text = markdown(table)
    rows = markdown_rows(text)
    assert {len(row) for row in rows} == {6, 1 + len(config.evaluate.pass_at), 9}  # columns of the three grids, and no bar too many
    assert "<script" not in text
    assert r"a\|b\_c &amp; &lt;script&gt;alert(1)" in text
    assert r"\[l\](u) \*w\*" in text
    tex = latex(table)
    assert (
        r"a\textbar{}b\_c \& \textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{} \$x\textasciicircum{}2\$ 100\%" in tex
    )
    body = [line for line in tex.splitlines() if line.endswith(r"\\")]
    assert {len(re.split(r"(?<!\\)&", line)) for line in body} == {6, 1 + len(config.evaluate.pass_at), 9}
    assert f"{' '.join(NASTY.split())} (grpo)" in {" ".join(row["row"].split()) for row in csv.DictReader(io.StringIO(tidy_csv(table)))}


def test_formats_of_one_small_table():
    estimate = Estimate(-0.0312, -0.05, 0.01, None, 0.02)
    column, tokens = Column("x_1", "points", 100, 1, True), Column("tokens")
    table_cells = {
        ("a", "x_1"): Cell(estimate, 3, 4, 2, note="not told apart"),
        ("b", "tokens"): Cell(Estimate(1234.5, 1000, 2000), reported=7469),
    }
    table = Table("t", "All 100%.", (Grid("Measured", "method", ("a", "b"), (column, tokens), table_cells),))
    assert markdown(table).splitlines() == [
        "**Measured**",
        "",
        "| method |                     x\\_1, points |               tokens | reported |",
        "| ------ | -------------------------------: | -------------------: | -------: |",
        "| a      | -3.1 [-5.0, +1.0] not told apart |                      |          |",
        "| b      |                                  | 1,234 [1,000, 2,000] |    7,469 |",
        "",
        "All 100%.",
    ]
    assert r"a & $-$3.1 [$-$5.0, +1.0] not told apart &  &  \\" in latex(table)
    assert r"\caption{All 100\%.}" in latex(table)
    assert tidy_csv(table).splitlines()[1:] == [
        "Measured,a,x_1,points,-3.1200,-5.0000,1.0000,n/a,2.0000,3,4,2,,not told apart",
        "Measured,b,tokens,,1234.500,1000.000,2000.000,n/a,n/a,,,,7469,",
    ]


def test_main_table_writes_every_format_and_the_caption(config, scores, tmp_path):
    for method, rows in scores.groupby("method"):
        write_parquet(rows, tmp_path / f"{method}.parquet")
    inputs = [str(tmp_path / f"{method}.parquet") for method in ("base", "grpo", "ibtpo")]
    main_table("table1", config, inputs, tmp_path / "out" / "table1")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"table1.{kind}" for kind in ("caption.txt", "csv", "md", "sources.json", "tex")
    ]
    tidy = pd.read_csv(tmp_path / "out" / "table1.csv")
    assert len(tidy) == 3 * 3 + 2 * 2 + 3 * len(config.evaluate.pass_at) + 16
    caption = (tmp_path / "out" / "table1.caption.txt").read_text().strip()
    assert caption.split(".")[0] in (tmp_path / "out" / "table1.md").read_text()
