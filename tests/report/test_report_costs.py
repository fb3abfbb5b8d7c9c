"""Tables 7 to 9, Figure 8 and the tables of rollouts against values worked out by hand; what is missing is named."""

import numpy as np
import pandas as pd
import pytest
from reading import cells, markdown_rows

from ibtpo import IbtpoError
from ibtpo.report.costs import read_costs
from ibtpo.report.figure8 import figure8
from ibtpo.report.render import markdown
from ibtpo.report.rollouts import rollouts, rollouts_midsize
from ibtpo.report.table7 import table7
from ibtpo.report.table8 import table8, table8_midsize
from ibtpo.report.table9 import table9

VS = "vs. independent, G = 8"


@pytest.fixture
def of(costs):
    """Function: name of a measurement -> its artifact."""
    return lambda name: costs[costs["what"] == name].reset_index(drop=True)


@pytest.fixture
def twins(config, of):
    """Function: name of a measurement -> configuration and artifact with ibtree12-beta10 too, ten times as slow as ibtree12."""

    def make(name):
        row, frame = config.measurements[name], of(name)
        both = row.model_copy(update={"samplers": (*row.samplers, "ibtree12-beta10")})
        twin = frame[frame["sampler"] == "ibtree12"].assign(sampler="ibtree12-beta10", seconds=lambda rows: 10 * rows["seconds"])
        return config.model_copy(update={"measurements": config.measurements | {name: both}}), pd.concat([frame, twin])

    return make


def numbers(cell):
    return [float(cell[name]) for name in ("value", "low", "high")]


def test_table7_costs_beside_accuracies(config, scores, of):
    table = table7(config, [scores, of("table7")])
    assert table.grids[0].rows == (
        "independent, G = 8",
        "IBTree, G = 8, lockstep",
        "IBTree, G = 8, asynchronous",
        "IBTree, G = 12, lockstep",
        "IBTree, G = 12, asynchronous",
    )
    assert table.grids[0].label == "Measured, preset tiny: sampling of 48 problems at once"
    found = cells(table)
    assert numbers(found["independent, G = 8", "wall-clock / tree"]) == pytest.approx([2000 / 48, 1000 / 48, 4000 / 48], abs=1e-3)
    assert numbers(found["IBTree, G = 8, asynchronous", f"wall-clock {VS}"]) == pytest.approx([200] * 3, abs=1e-3)
    assert numbers(found["IBTree, G = 8, lockstep", f"CPU {VS}"]) == pytest.approx([220] * 3, abs=1e-3)
    assert numbers(found["IBTree, G = 12, lockstep", f"peak KV {VS}"]) == pytest.approx([50] * 3, abs=1e-3)
    assert numbers(found["IBTree, G = 8, lockstep", "tokens / tree"])[0] == 3 * 128
    assert numbers(found["IBTree, G = 8, lockstep", "prefix hits"])[0] == 80
    assert numbers(found["IBTree, G = 8, lockstep", "bookkeeping"])[0] == 1
    assert ("independent, G = 8", f"wall-clock {VS}") not in found
    counts = [found["IBTree, G = 12, lockstep", "tokens / tree"][name] for name in ("n_problems", "n_samples", "n_seeds")]
    assert counts == ["48", "12", "3"]
    accuracy = next(grid for grid in table.grids if grid.label == "Measured, preset tiny: avg@4")
    assert accuracy.rows == ("base policy", "GRPO", "IB-TPO")


def test_a_ratio_is_that_of_each_repeat(config, of):
    """The medians differ by 2, but in each repeat the one is 2, 1 or 4 times the other."""
    frame = of("table8")
    slow = (frame["sampler"] == "ibtree12") & (frame["max_tokens"] == 200)
    frame.loc[slow, "seconds"] = [2.0, 2.0, 16.0]
    found = cells(table8(config, [frame]))
    row = "2x = 200: IBTree, G = 12, 4 trees"
    assert numbers(found[row, f"wall-clock {VS}"]) == pytest.approx([200, 100, 400], abs=1e-3)
    assert numbers(found[row, "wall-clock / tree"]) == pytest.approx([500, 500, 4000], abs=1e-3)


def test_table8_by_length(config, of):
    table = table8(config, [of("table8")])
    (grid,) = table.grids
    assert grid.rows == tuple(
        f"{factor}x = {100 * factor}: {title}, 4 trees" for factor in (1, 2, 4) for title in ("independent, G = 8", "IBTree, G = 12")
    )
    found = cells(table)
    assert numbers(found["4x = 400: IBTree, G = 12, 4 trees", "peak KV vs. 1x"])[0] == 400
    assert numbers(found["4x = 400: IBTree, G = 12, 4 trees", f"peak KV {VS}"])[0] == 50
    assert numbers(found["4x = 400: independent, G = 8, 4 trees", "wall-clock vs. 1x"])[0] == 100
    assert ("1x = 100: independent, G = 8, 4 trees", "wall-clock vs. 1x") not in found
    assert "prefix hits" not in [column.name for column in grid.columns]


def test_the_caption_says_what_was_measured_on_what(config, scores, of):
    policy, random = table7(config, [scores, of("table7")]).caption, table8(config, [of("table8")]).caption
    for caption in (policy, random):
        for words in [
            "of 3 repeats",
            "2 x Test CPU, 1 thread(s)",
            "load 0.5 to 2.5",
            "Engine: transformers, at most 512 requests at once",
            "blocks of 1 token;",
        ]:
            assert words in caption, words
    assert "The base policy of preset tiny (0.3M parameters) on training problems." in policy
    assert "A random model of 0.3M parameters (preset tiny), prompts of 64 tokens" in random and "from 30% of the maximum" in random


def test_rollouts_by_the_number_of_trees(config, of):
    table = rollouts(config, [of("figure8")])
    (grid,) = table.grids
    assert len(grid.rows) == 4 * 6 and grid.rows[0] == "1 at once: independent, G = 8"
    found = cells(table)
    row = "32 at once: IBTree, G = 12, asynchronous"
    assert numbers(found[row, "wall-clock vs. lockstep"]) == pytest.approx([100 / 1.1] * 3, abs=1e-3)
    assert numbers(found[row, f"wall-clock {VS}"])[0] == 200
    assert numbers(found[row, "CPU / tree"])[0] == pytest.approx(2000 / 32, abs=1e-3)
    assert ("32 at once: IBTree, G = 12, lockstep", "wall-clock vs. lockstep") not in found
    header = markdown_rows(markdown(table))[0]
    assert header[0] == "trees, sampler" and header[1] == "wall-clock / tree, ms"


def test_the_midsize_tables_read_measurements_of_their_own(config, of):
    assert table8_midsize(config, [of("table8-midsize")]).grids[0].rows[-1] == "4x = 1000: IBTree, G = 12, 4 trees"
    assert rollouts_midsize(config, [of("figure8-midsize")]).grids[0].rows[0] == "32 at once: IBTree, G = 12, lockstep"
    with pytest.raises(ValueError, match=r"^no rows for table8_midsize: missing table8-midsize/independent8/"):
        table8_midsize(config, [of("table8")])


def test_an_engine_that_does_not_count_blocks_leaves_the_columns_out(config, of):
    frame = of("table8").assign(kv_peak_tokens=None, block_size=None)
    table = table8(config, [frame])
    assert [column.name for column in table.grids[0].columns if "KV" in column.name] == []
    assert "blocks" not in table.caption


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("sampler == 'ibtree12' and max_tokens == 200", r"^no rows for table8: missing table8/ibtree12/asynchronous/4/200 "),
        (
            "max_tokens == 400 and repeat == 1",
            r"^table8: independent8/asynchronous/4/400 has the repeats \[0, 2\], not 0 to 2; measure again",
        ),
    ],
)
def test_a_missing_case_or_repeat_is_named(config, of, dropped, message):
    with pytest.raises(ValueError, match=message):
        table8(config, [of("table8").query(f"not ({dropped})")])


def test_figure8_draws_medians_and_ranges(config, of):
    figure, caption = figure8(config, [of("figure8")])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Wall-clock / tree, ms", "Peak KV / tree, tokens"]
    trees = [f"IBTree, G = {size}, {mode}" for size in (8, 12) for mode in ("lockstep", "asynchronous")]
    titles = ["independent, G = 8", "independent, G = 12", *trees]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == titles
    axis = figure.axes[0]
    lines = [np.array(line.get_data()) for line in axis.lines]
    np.testing.assert_allclose(lines[0], [[1, 8, 32, 128], [2000 / n for n in (1, 8, 32, 128)]])
    np.testing.assert_allclose(lines[3][1], 2 * lines[0][1])
    band = axis.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((1000 / 128, 4000))
    assert "median of the repeats" in caption and "2 x Test CPU" in caption


def test_table9_has_a_grid_a_length_and_the_share_that_was_cut(config, scores):
    longer = scores.assign(tokens=256, reward=scores["reward"].where(scores["method"] != "ibtpo", 1.0))
    table = table9(config, [scores, longer])
    assert [grid.label for grid in table.grids] == [
        "Measured, preset tiny: avg@4, at most 128 tokens",
        "Measured, preset tiny: avg@4, at most 256 tokens",
        "Measured, preset tiny: responses as long as the maximum",
    ]
    short, long, cut = table.grids
    assert 0 < short.cells["IB-TPO", "Avg"].estimate.value < 1 == long.cells["IB-TPO", "Avg"].estimate.value
    assert short.cells["GRPO", "Avg"].estimate.value == long.cells["GRPO", "Avg"].estimate.value
    assert [cut.cells["GRPO", f"at most {length}"].estimate.value for length in (128, 256)] == [0, 1]
    assert "trained with at most 128 tokens" in table.caption and "at most what the grid says" in table.caption


def test_table9_names_the_policy_that_is_missing(config, scores):
    with pytest.raises(ValueError, match=r"^no rows for table9: missing ibtpo/0/chain-sum-5"):
        table9(config, [scores, scores[scores["method"] != "ibtpo"]])


def test_facts_of_two_machines_are_both_told(config, of):
    frame = of("table8")
    frame.loc[frame["repeat"] == 2, "hardware"] = "8 x Other CPU"
    assert "2 x Test CPU, 1 thread(s) and 8 x Other CPU" in read_costs("table8", config, "table8", [frame]).notes()


def test_two_samplers_of_a_kind_and_size_have_rows_of_their_own(scores, twins):
    def slower(table, row):
        found = cells(table)
        first, second = (numbers(found[row.format(name), "wall-clock / tree"]) for name in ("ibtree12", "ibtree12-beta10"))
        return np.array(second) / first

    config, frame = twins("table7")
    np.testing.assert_allclose(slower(table7(config, [scores, frame]), "IBTree, G = 12 ({}), lockstep"), 10, rtol=1e-3)
    config, frame = twins("table8")
    np.testing.assert_allclose(slower(table8(config, [frame]), "2x = 200: IBTree, G = 12 ({}), 4 trees"), 10, rtol=1e-3)
    config, frame = twins("figure8")
    np.testing.assert_allclose(slower(rollouts(config, [frame]), "8 at once: IBTree, G = 12 ({}), asynchronous"), 10, rtol=1e-3)
    figure, _ = figure8(config, [frame])
    titles = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"independent, G = 8", *(f"IBTree, G = 12 ({name}), lockstep" for name in ("ibtree12", "ibtree12-beta10"))} <= set(titles)
    slow, fast = (figure.axes[0].lines[titles.index(f"IBTree, G = 12 ({name}), lockstep")] for name in ("ibtree12-beta10", "ibtree12"))
    np.testing.assert_allclose(slow.get_ydata(), 10 * fast.get_ydata())


@pytest.mark.parametrize(
    ("show", "measurement", "key"),
    [
        (table7, "table7", "trees"),
        (table7, "table7", "max_tokens"),
        (rollouts, "figure8", "max_tokens"),
        (figure8, "figure8", "max_tokens"),
        (rollouts_midsize, "figure8-midsize", "max_tokens"),
    ],
)
def test_several_numbers_that_are_not_told_apart_are_refused(config, scores, of, show, measurement, key):
    row = config.measurements[measurement].model_copy(update={key: (2, 4)})
    several = config.model_copy(update={"measurements": config.measurements | {measurement: row}})
    words = rf"^{show.__name__} shows one number of {key}: leave one of the 2 in measurements.{measurement}.{key}$"
    with pytest.raises(IbtpoError, match=words):
        show(several, [scores, of(measurement)])
