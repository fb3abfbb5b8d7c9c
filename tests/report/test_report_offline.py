"""The offline IB-Score as table and figure: means over nodes by hand, intervals by formula and by simulation; what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import cells

from ibtpo.evaluation.statistics import Intervals, clustered_se
from ibtpo.report.ibscore import ibscore
from ibtpo.report.ibscores import ibscores
from ibtpo.report.offline import linearised


def test_means_over_step_nodes_and_roots_by_hand(config, offline):
    table = ibscore(config, [offline])
    steps, difference, roots = table.grids
    for row, mean in [("base policy", 10 / 6), ("GRPO", 10 / 6 + 1.5), ("IB-TPO", 10 / 6 + 0.5)]:  # 6 step nodes: 1, 1 2, 1 2 3
        cell = steps.cells[row, "IB-Score"]
        assert cell.estimate.value == pytest.approx(mean)
        assert (cell.problems, cell.samples, cell.seeds) == (3, config.offline.draws, 1 if row == "base policy" else 2)
        assert steps.cells[row, "Cov(eta1, eta2)"].estimate.value == pytest.approx(mean / 100)
        assert steps.cells[row, "mean pi"].estimate.value == pytest.approx(0.5)
        assert steps.cells[row, "dead nodes"].estimate.value == pytest.approx(1 / 6)
        assert steps.cells[row, "nodes / problem"].estimate.value == pytest.approx(2)
        assert roots.cells[row, "IB-Score"].estimate.value == 5  # never mixed into the step nodes
        assert roots.cells[row, "dead nodes"].estimate.value == 0
    assert difference.rows == ("base policy", "IB-TPO")
    gap = difference.cells["IB-TPO", "IB-Score"]
    assert (gap.estimate.value, gap.note) == (pytest.approx(-1), "lower")  # the same difference in every node: no spread
    assert gap.estimate.high - gap.estimate.low == pytest.approx(0, abs=1e-9)
    assert difference.cells["base policy", "IB-Score"].note == "not told apart"  # -1 in one seed, -2 in the other
    assert "5 fresh rollouts" in table.caption and "beta = 5" in table.caption and "Of each of 3 validation problems, 4" in table.caption


def test_only_shares_have_the_interval_of_a_rate(config, offline):
    none_dead = offline.assign(dead=False, covariance=0.0)
    found = cells(ibscore(config, [none_dead]))
    assert [float(found["GRPO", "Cov(eta1, eta2)"][key]) for key in ("low", "high")] == [0, 0]  # not Wilson's interval of "0 of n"
    assert float(found["GRPO", "dead nodes"]["low"]) == 0
    assert float(found["GRPO", "dead nodes"]["high"]) > 10
    few = cells(ibscore(config, [offline]))["GRPO", "dead nodes"]
    low, value, high = (float(few[key]) / 100 for key in ("low", "value", "high"))
    assert 0 < low < value < high < 1
    assert (value - low) ** 2 / (low * (1 - low)) == pytest.approx((high - value) ** 2 / (high * (1 - high)), rel=0.02)  # a rate's


def test_without_the_reference_there_is_no_difference(config, offline):
    tables = {**config.tables, "ibscore": ("ibtpo",)}
    assert len(ibscore(config.model_copy(update={"tables": tables}), [offline]).grids) == 2


def test_order_of_rows_and_of_inputs_changes_nothing(config, offline):
    mixed = offline.sample(frac=1, random_state=1)
    parts = [part for _, part in mixed.groupby(["method", "seed"])][::-1]
    assert cells(ibscore(config, parts)) == cells(ibscore(config, [offline]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[f["method"] != "ibtpo"], r"^no rows for ibscore: missing ibtpo/0, ibtpo/1 \(method/seed\)"),
        (lambda f: f[f["method"] != "base"], r"^no rows for ibscore: missing base/-1 "),
        (lambda f: f[~((f["method"] == "grpo") & (f["uid"] == "v1"))], "^ibscore, grpo/0: no rows for 1 of 3 problems, e.g. v1"),
        (lambda f: pd.concat([f, f.tail(1)]), "^ibscore, ibtpo/1: a node occurs twice"),
        (lambda f: f.assign(ib_score=f["ib_score"].mask(f["method"] == "base")), "^ibscore, base/-1: a node has no value"),
        (lambda f: f[f["at_root"]], "^ibscore: base has no step node"),
        (lambda f: f.drop(columns="dead"), "^ibscore: an input has no column dead"),
    ],
)
def test_what_is_missing_is_named(config, offline, change, message):
    with pytest.raises(ValueError, match=message):
        ibscore(config, [change(offline)])


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(-5, 5)), min_size=2, max_size=9))
def test_linearised_values_have_the_ratio_as_mean_and_its_standard_error(clusters):
    counts = np.array([[count for count, _ in clusters]], dtype=float)
    if not counts.any():
        return
    sums = np.array([[count * mean for count, mean in clusters]])
    (values,) = linearised(counts, [sums])
    ratio = sums.sum() / counts.sum()
    assert values.mean() == pytest.approx(ratio, abs=1e-9)
    m = counts.size
    textbook = np.sqrt(((sums - ratio * counts) ** 2).sum() / (m * (m - 1))) / counts.mean()  # Cochran 1977, chapter 6
    assert clustered_se([values]) == pytest.approx(textbook, abs=1e-9)
    np.testing.assert_allclose(linearised(np.ones_like(counts), [sums])[0], sums, atol=1e-9)  # one node each: the values themselves


def test_the_interval_of_a_mean_over_nodes_covers_it():
    """32 problems of 1 to 20 nodes; the mean of a problem's nodes falls with their number, so problems are no sample of nodes."""
    rng, hits, trials = np.random.default_rng(0), 0, 400
    sizes = np.arange(1, 21)
    truth = (sizes * (1 - sizes / 40)).sum() / sizes.sum()
    for _ in range(trials):
        counts = rng.integers(1, 21, size=(1, 32)).astype(float)
        sums = counts * (1 - counts / 40 + rng.normal(0, 0.2, counts.shape))
        (values,) = linearised(counts, [sums])
        interval = Intervals(0.95).difference([values], [np.zeros_like(values)])
        hits += interval.low <= truth <= interval.high
    assert 0.92 <= hits / trials <= 0.98


def test_the_figure_has_dots_bars_and_seeds(config, offline):
    figure, caption = ibscores(config, [offline])
    assert [axis.get_title(loc="left").split(", ")[-1] for axis in figure.axes] == ["steps", "steps", "roots", "roots"]
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["base policy", "GRPO", "IB-TPO"]
    assert axis.get_ylim()[0] > axis.get_ylim()[1]  # the first row on top
    dots = {line.get_ydata()[0]: line.get_xdata()[0] for line in axis.lines if line.get_marker() == "o"}
    assert dots == pytest.approx({0: 10 / 6, 1: 10 / 6 + 1.5, 2: 10 / 6 + 0.5})
    bars = [line for line in axis.lines if line.get_marker() == "None" and len(set(line.get_ydata())) == 1]
    table = ibscore(config, [offline]).grids[0]
    shown = table.cells["GRPO", "IB-Score"].estimate
    assert list(bars[1].get_xdata()) == pytest.approx([shown.low, shown.high])
    seeds = [list(line.get_xdata()) for line in axis.lines if line.get_marker() == "."]
    assert seeds == [pytest.approx([10 / 6 + 1, 10 / 6 + 2]), pytest.approx([10 / 6, 10 / 6 + 1])]
    assert "small dots: seeds" in caption and "roots" in caption
    with pytest.raises(ValueError, match=r"^no rows for ibscores: missing "):
        ibscores(config, [])
