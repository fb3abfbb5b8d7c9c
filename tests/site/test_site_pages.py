"""What pages show: cells of tables, lines of figures, curves of runs, parts of methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from artifacts import STEPS, small, working_in
from helpers import hang, make_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.advantages import ADVANTAGES
from ibtpo.config.methods import Regulariser
from ibtpo.evaluation.statistics import Estimate
from ibtpo.report.table import Cell, Column, Grid
from ibtpo.samplers import SAMPLERS
from ibtpo.site.build import math
from ibtpo.site.figures import chart, plain
from ibtpo.site.inputs import Inputs
from ibtpo.site.methods import SYMBOLS, methods
from ibtpo.site.overview import duration, magnitude
from ibtpo.site.provenance import provenance
from ibtpo.site.reading import read_yaml
from ibtpo.site.runs import runs
from ibtpo.site.strip import Strip
from ibtpo.site.tables import view
from ibtpo.site.titles import MINUS, TIMES, lead, title
from ibtpo.training.metrics import rollout_metrics


@pytest.fixture(scope="module")
def inputs(site):
    made = Inputs(small(), Path("results/report"))
    with working_in(site.parents[1]):  # everything is read here, and kept
        assert made.tables and made.figures and not made.metrics.empty
    return made


def test_a_cell_shows_value_interval_mark_counts_and_the_papers_number():
    ours = Cell(Estimate(-0.0123, -0.02, -0.004), 64, 32, 1, reported=1.5, note="lower")
    gain, p = Column.percent("Avg").difference(), Column("p", decimals=2)
    grid = Grid("label", "method", ("a", "b"), (gain, p), {("a", "Avg"): ours, ("b", "p"): Cell(number=0.25)})
    shown = view(grid)
    assert [(column["name"], column["reported"]) for column in shown["columns"]] == [("Avg", False), ("Avg", True), ("p", False)]
    first, paper, empty = shown["rows"][0]["cells"]
    assert first == {
        "text": f"{MINUS}1.2",
        "sort": -0.0123,
        "interval": f"{MINUS}2.0 to {MINUS}0.4",
        "note": "lower",
        "counts": "64 problems x 32 samples x 1 seed".replace(" x ", f" {TIMES} "),
    }
    assert paper["text"] == "1.5" and empty == {}
    assert shown["rows"][1]["cells"][2]["text"] == "0.25"


def test_a_grid_of_the_papers_numbers_has_no_columns_of_ours():
    grid = Grid("label", "method", ("a",), (Column.percent("AIME"),), {("a", "AIME"): Cell(reported=13.6)})
    assert [column["reported"] for column in view(grid)["columns"]] == [True]


def test_charts_show_the_lines_and_bands_of_the_drawing(inputs):
    drawn = chart(inputs.figures["figure5"][0])
    assert [entry["title"] for entry in drawn["legend"]] == [small().methods[name].title for name in ("grpo", "ibtpo")]
    panel = drawn["panels"][0]
    assert panel["title"].startswith("Validation avg@") and not panel["log"]
    rows = inputs.metrics.query("metric == 'validation/accuracy' and method == 'grpo'")
    over = 100 * rows.groupby("step")["value"].agg(["mean", "min", "max"])
    grpo = next(line for line in panel["lines"] if line["series"] == 0)
    band = next(band for band in panel["bands"] if band["series"] == 0)
    assert grpo["x"] == band["x"] == list(range(STEPS + 1))
    assert np.allclose(grpo["y"], over["mean"], rtol=1e-4)
    assert np.allclose(band["low"], over["min"], rtol=1e-4) and np.allclose(band["high"], over["max"], rtol=1e-4)


def test_charts_of_dots_have_rows_and_logarithmic_ones_say_so(inputs):
    dots = chart(inputs.figures["ibscores"][0])["panels"][0]
    assert list(dots["rows"]) == ["base policy", *(small().methods[name].title for name in ("grpo", "ibtpo"))]
    assert {line["series"] for line in dots["lines"]} == {None, -1, 0, 1}  # the rule, the base policy, both methods
    assert all(panel["log"] for panel in chart(inputs.figures["figure7"][0])["panels"])


def test_labels_lose_only_the_mark_up_of_formulas():
    assert plain(r"Cov($\eta_1$, $\eta_2$)") == "Cov(η₁, η₂)"
    assert plain(r"IB-TPO \$\frac{1}{2}\$ <b>") == r"IB-TPO $\frac{1}{2}$ <b>"


def test_runs_by_step_tokens_and_seconds(inputs):
    page = runs(inputs)
    axes, curve = page["data"]["axes"]["grpo-seed0"], page["data"]["curves"]["grpo-seed0"]["train/tokens"]
    assert axes["step"] == list(range(STEPS + 1)) and axes["tokens"][0] == 0
    assert axes["tokens"][-1] == pytest.approx(sum(curve[1]), abs=0.02)
    titles = [small().methods[name].title for name in ("grpo", "ibtpo")]
    assert [(run["method"], run["seed"]) for run in page["summary"]] == [(title, seed) for title in titles for seed in (0, 1)]
    assert all(len(run["cells"]) + 3 == len(page["columns"]) for run in page["summary"])


def test_every_metric_of_a_rollout_has_a_name():
    tree = make_tree()
    hang(tree, tree.root, "a|b$", 1.0)
    assert set(rollout_metrics([tree], 5.0)) <= set(read_yaml("metrics.yaml"))


def test_every_part_of_a_method_is_explained_and_its_formulas_are_formulas():
    words = read_yaml("methods.yaml")
    assert set(words["samplers"]) == set(SAMPLERS) and set(words["advantages"]) == set(ADVANTAGES)
    assert set(SYMBOLS) == set(Regulariser.model_fields)
    formulas = [tex for kind in ("samplers", "advantages", "regularisers") for part in words[kind].values() for tex in part["tex"]]
    for tex in [*formulas, *words["idea"]]:
        made = math(tex, display=True)
        assert made.startswith("<math") and "\\" not in made, tex


def test_methods_stand_where_sampler_and_advantage_meet(inputs):
    page = methods(inputs)
    grid = {(s, a): [row["id"] for row in cell] for s, cells in page["grid"] for a, cell in zip(page["estimators"], cells, strict=True)}
    assert grid["independent", "grpo"] == ["grpo"] and grid["ibtree", "ibtpo"] == ["ibtpo"] and grid["random", "grpo"] == []
    assert all(part["path"].startswith("src/ibtpo/") and "def " in part["code"].striptags() for part in page["samplers"])


def test_provenance_names_every_artifact_with_its_hash(inputs, site):
    with working_in(site.parents[1]):
        page = provenance(inputs)
    assert [artifact["name"] for artifact in page["artifacts"]] == inputs.paths.report_inputs()
    for artifact in page["artifacts"]:
        assert inputs.paths.artifact(artifact["name"]).stem == f"{artifact['name']}-{artifact['hash']}" and len(artifact["sha256"]) == 64


def test_headings():
    assert [title(name) for name in ("table1", "figure5", "erpo2", "rollouts")] == ["Table 1", "Figure 5", "ERPO, Table 2", "Rollouts"]
    assert lead("First. Second. Third.") == ("First", "Second. Third.")
    assert magnitude(9_240_000) == "9.24 million" and magnitude(12) == "12"
    assert [duration(s) for s in (30, 600, 7200)] == ["30 seconds", "10 minutes", "2.0 hours"]


@settings(derandomize=True)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_a_strip_holds_its_values_in_order(values):
    strip = Strip.around(values)
    places = [strip.at(value) for value in sorted(values)]
    assert places == sorted(places) and all(0 <= place <= 100 for place in places)
    assert strip.at(float("inf")) == 100 and strip.at(float("-inf")) == 0
    ticks = strip.ticks()
    assert 1 <= len(ticks) <= 6 and all(strip.low <= tick <= strip.high for tick in ticks)
