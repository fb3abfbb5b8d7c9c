"""Figures from metrics and scores: what they draw, and what they refuse to draw."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from ibtpo.config import load
from ibtpo.io import write_parquet
from ibtpo.report import main_figure
from ibtpo.report.curves import Panel, curves, looks, style
from ibtpo.report.figure1 import figure1
from ibtpo.report.figure2 import figure2
from ibtpo.report.figure3 import figure3
from ibtpo.report.figure5 import figure5
from ibtpo.report.figure6 import figure6
from ibtpo.report.figure7 import figure7

SIGNATURES = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def drawn(axis):
    """(x, y) of each line with data."""
    return [np.array(line.get_data()) for line in axis.lines if len(line.get_xdata())]


def test_figure5_has_a_panel_a_metric_and_a_line_a_method(config, metrics):
    figure, caption = figure5(config, [metrics])
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "Validation avg@8, %",
        "Eff-Rate, %",
        "IB-Score",
        r"Cov($\eta_1$, $\eta_2$)",
    ]
    assert [len(drawn(axis)) for axis in figure.axes] == [2, 2, 2, 2]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GRPO", "IB-TPO"]
    for part in [
        "Preset tiny",
        f"avg@8 on {config.world.validation} held-out problems",
        "mean over seeds; bands: from the lowest to the highest seed (2 in all)",
    ]:
        assert part in caption


def two_seeds(values, method="grpo", metric="m"):
    """Frame of metrics from {seed: values by step}."""
    rows = [(method, seed, step, metric, v) for seed, series in values.items() for step, v in enumerate(series)]
    return pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"])


def test_lines_are_means_over_seeds_and_bands_their_range():
    frame = two_seeds({0: [0.1, 0.2], 1: [0.3, 0.6], 2: [0.5, 0.4]})
    (axis,) = curves([Panel("m", "M", 100)], frame, looks({"grpo": "GRPO"}), columns=1).axes
    np.testing.assert_allclose(drawn(axis)[0], [[0, 1], [30, 40]])
    (band,) = axis.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((10, 60))


def test_a_window_averages_the_last_values_of_each_run():
    frame = two_seeds({0: [0, 2, 4, 0], 10: [10, 12, 14, 10]}).sample(frac=1, random_state=0)
    (axis,) = curves([Panel("m", "M", window=2)], frame, looks({"grpo": "GRPO"}), columns=1).axes
    np.testing.assert_allclose(drawn(axis)[0][1], [5, 6, 8, 7])


def test_any_number_of_panels_and_a_legend_in_a_free_cell():
    for count, columns, legends in [(1, 1, 1), (2, 2, 1), (3, 2, 0), (4, 3, 0)]:
        panels = [Panel("m", f"{n}") for n in range(count)]
        figure = curves(panels, two_seeds({0: [1, 2]}), looks({"grpo": "GRPO"}), columns)
        shown = [axis for axis in figure.axes if axis.axison]
        assert [axis.get_title(loc="left") for axis in shown] == [f"{n}" for n in range(count)]
        assert [axis.get_xlabel() for axis in shown] == [""] * max(0, count - columns) + ["training step"] * min(count, columns)
        in_cells = [axis.get_legend() for axis in figure.axes if axis.get_legend()]
        assert (len(figure.legends), len(in_cells)) == (legends, 1 - legends)


def test_a_thin_line_marks_what_a_metric_is_held_against(config, metrics):
    (axis,) = figure6(config, [metrics])[0].axes
    assert [line.get_ydata()[0] for line in axis.lines if set(line.get_ydata()) == {1}] == [1]


def test_a_method_looks_the_same_in_all_figures_and_no_two_look_alike():
    config = load("tiny")
    seen = {}
    for methods in config.figures.values():
        for name, look in looks({"base": "base policy"} | {name: name for name in methods}, config).items():
            assert seen.setdefault(name, (look.colour, look.dashes)) == (look.colour, look.dashes)
    assert len(seen) == 10
    assert len(set(seen.values())) == len({colour for colour, _ in seen.values()}) == len({dashes for _, dashes in seen.values()}) == 10
    many = looks({f"m{n}": f"m{n}" for n in range(30)})  # more than there are colours
    assert len(many) == 30


def test_nine_methods_stay_within_the_figure():
    """The legend is no wider than the figure, whatever the titles."""
    for titles in [["m" * 22] * 9, ["GRPO", "TreePO"], ["m"] * 9, ["il" * 20, "M" * 10] * 2]:
        titles = [f"{title}{n}" for n, title in enumerate(titles)]
        figure = curves([Panel("m", "M")] * 2, two_seeds({0: [1, 2]}), looks(dict(zip(titles, titles, strict=True))))
        with style():
            figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("method == 'ibtpo' and seed == 1", r"^no rows for figure5: missing validation/accuracy/ibtpo/1, .*\(metric/method/seed\)"),
        ("metric == 'validation/ib_score'", r"^no rows for figure5: missing validation/ib_score/grpo/0, "),
        ("step > -1", r"^no rows for figure5: missing .* and 11 more "),
        ("method == 'grpo' and seed == 1 and step > 2", r"^no rows for figure5: missing grpo/1 after step 2 of 4; finish that run"),
    ],
)
def test_figure5_names_what_is_missing_and_writes_nothing(config, metrics, tmp_path, dropped, message):
    write_parquet(metrics.query(f"not ({dropped})"), tmp_path / "metrics.parquet")
    with pytest.raises(ValueError, match=message):
        main_figure("figure5", config, [tmp_path / "metrics.parquet"], tmp_path / "out" / "figure5")
    assert not (tmp_path / "out").exists()


def test_figure5_refuses_undefined_lines_double_rows_and_other_artifacts(config, metrics, scores):
    undefined = metrics.assign(value=metrics["value"].mask(metrics["metric"] == "validation/covariance"))
    with pytest.raises(ValueError, match="missing validation/covariance/grpo/0"):
        figure5(config, [undefined])
    with pytest.raises(ValueError, match="listed twice"):
        figure5(config, [metrics, metrics])
    with pytest.raises(ValueError, match=r"^figure5: an input has no column metric, step, value"):
        figure5(config, [scores])
    with pytest.raises(ValueError, match=r"^no rows for figure5: missing "):
        figure5(config, [])


def test_unknown_figure(config, tmp_path):
    with pytest.raises(ValueError, match="there is no figure 'figure9'; known: figure1, figure2, "):
        main_figure("figure9", config, [], tmp_path / "figure9")


def test_main_figure_writes_every_format_with_one_seed_and_a_nasty_title(metrics, tmp_path):
    nasty = {"ibtpo": {"title": "a|b_c & <script>alert(1)</script> $x$ 100%"}}
    config = load("tiny", {"seeds": [0], "methods": nasty, "figures": {"figure5": ["grpo", "ibtpo"]}})
    write_parquet(metrics, tmp_path / "metrics.parquet")
    main_figure("figure5", config, [tmp_path / "metrics.parquet"], tmp_path / "figure5")
    for suffix, signature in SIGNATURES.items():
        assert (tmp_path / f"figure5.{suffix}").read_bytes().startswith(signature)
    svg = (tmp_path / "figure5.svg").read_text()
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "(1 in all)" in (tmp_path / "figure5.caption.txt").read_text()


@pytest.mark.parametrize(
    ("builder", "panels", "titles"),
    [
        (figure1, ["Validation avg@8, %", "Entropy, nats", "Eff-Rate, %", "Response, tokens"], ["GRPO", "GRPO + entropy 0.003", "IB-TPO"]),
        (figure2, ["Entropy, nats", "Eff-Rate, %", "Validation avg@8, %"], ["GRPO", "GRPO + clip-higher"]),
        (figure3, [r"Cov($\eta_1$, $\eta_2$)", "IB-Score"], ["GRPO", "GRPO + clip-higher"]),
        (figure6, ["Mean density ratio"], ["IB-TPO"]),
    ],
)
def test_figures_of_training(config, metrics, builder, panels, titles):
    figure, caption = builder(config, [metrics])
    shown = [axis for axis in figure.axes if axis.axison]
    assert [axis.get_title(loc="left") for axis in shown] == panels
    legend = (figure.legends or [axis.get_legend() for axis in figure.axes if axis.get_legend()])[0]
    assert [text.get_text() for text in legend.get_texts()] == titles
    mean = metrics[(metrics["metric"] == "train/entropy") & (metrics["method"] == "grpo") & (metrics["step"] == 1)]["value"].mean()
    if "Entropy, nats" in panels:
        assert drawn(shown[panels.index("Entropy, nats")])[0][:, 0] == pytest.approx([1, mean])
    assert "(2 in all)" in caption and "Preset tiny" in caption
    with pytest.raises(
        ValueError, match=f"^no rows for {builder.__name__}: missing .*grpo/1|^no rows for figure6: missing train/ratio/ibtpo/1"
    ):
        builder(config, [metrics[metrics["seed"] == 0]])


def test_measures_by_the_same_probe_share_a_sentence(config, metrics):
    caption = figure3(config, [metrics])[1]
    shared = f"Cov(eta1, eta2) and IB-Score: offline probe of {config.train.probe_problems} "
    assert caption.count("offline probe") == 1 and shared in caption


def test_figure7_has_every_k_and_the_mean_over_seeds(config, scores):
    figure, caption = figure7(config, [scores])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["chain-sum-5: pass@k, %", "gcd: pass@k, %"]
    base, grpo, ibtpo = drawn(figure.axes[0])
    # 5 of 6 problems have c right samples of 4; the mean of pass@k over seeds with c and c - 1: 1 - C(4 - c, k) / C(4, k)
    for line, chances in [
        (base, [1 / 4, 1 / 2, 3 / 4, 1]),
        (grpo, [1.5 / 4, (1 - 1 / 6 + 1 / 2) / 2, (1 + 3 / 4) / 2, 1]),
        (ibtpo, [2.5 / 4, (1 + 1 - 1 / 6) / 2, 1, 1]),
    ]:
        np.testing.assert_allclose(line, [[1, 2, 3, 4], [100 * 5 / 6 * chance for chance in chances]])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["base policy", "GRPO", "IB-TPO"]
    assert "every k from 1 to 4" in caption
    with pytest.raises(ValueError, match=r"^no rows for figure7: missing ibtpo/0/"):
        figure7(config, [scores[scores["method"] != "ibtpo"]])
    with pytest.raises(ValueError, match=r"^figure7, grpo/1/gcd: 23 of 24 samples present"):
        figure7(
            config, [scores[~((scores["seed"] == 1) & (scores["uid"] == "gcd/3") & (scores["sample"] == 0) & (scores["method"] == "grpo"))]]
        )
