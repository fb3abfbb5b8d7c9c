"""Figure 5 from metrics: what it draws, and what it refuses to draw."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from ibtpo.config import load
from ibtpo.io import write_parquet
from ibtpo.report import main_figure
from ibtpo.report.curves import Panel, curves
from ibtpo.report.figure5 import figure5

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
        "preset tiny",
        f"avg@8 on {config.world.validation} held-out problems",
        "mean over seeds; bands: from the lowest to the highest seed (2 in all)",
    ]:
        assert part in caption


def test_lines_are_means_over_seeds_and_bands_their_range():
    values = {0: [0.1, 0.2], 1: [0.3, 0.6], 2: [0.5, 0.4]}
    rows = [("grpo", seed, step, "m", v) for seed, series in values.items() for step, v in enumerate(series)]
    frame = pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"])
    (axis,) = curves([Panel("m", "M", 100)], frame, {"grpo": "GRPO"}, columns=1).axes
    np.testing.assert_allclose(drawn(axis)[0], [[0, 1], [30, 40]])
    (band,) = axis.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((10, 60))


def test_a_window_averages_the_last_values_of_each_run():
    rows = [("grpo", seed, step, "m", v + seed) for seed in (0, 10) for step, v in enumerate([0.0, 2.0, 4.0, 0.0])]
    frame = pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"]).sample(frac=1, random_state=0)
    (axis,) = curves([Panel("m", "M", window=2)], frame, {"grpo": "GRPO"}, columns=1).axes
    np.testing.assert_allclose(drawn(axis)[0][1], [5, 6, 8, 7])


def test_any_number_of_panels(metrics):
    figure = curves([Panel("train/reward", f"{n}") for n in range(3)], metrics, {"grpo": "GRPO", "ibtpo": "IB-TPO"})
    assert len(figure.axes) == 3
    assert [axis.get_xlabel() for axis in figure.axes] == ["", "training step", "training step"]


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
    with pytest.raises(ValueError, match="there is no figure 'figure9'; known: figure5"):
        main_figure("figure9", config, [], tmp_path / "figure9")


def test_main_figure_writes_every_format_with_one_seed_and_a_nasty_title(metrics, tmp_path):
    config = load("tiny", {"seeds": [0], "methods": {"ibtpo": {"title": "a|b_c & <script>alert(1)</script> 100%"}}})
    write_parquet(metrics, tmp_path / "metrics.parquet")
    main_figure("figure5", config, [tmp_path / "metrics.parquet"], tmp_path / "figure5")
    for suffix, signature in SIGNATURES.items():
        assert (tmp_path / f"figure5.{suffix}").read_bytes().startswith(signature)
    svg = (tmp_path / "figure5.svg").read_text()
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "(1 in all)" in (tmp_path / "figure5.caption.txt").read_text()
