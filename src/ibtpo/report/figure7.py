"""Figure 7: pass@k of the policies on each benchmark. Paper: IB-TPO, Figure 7 (trends only); unbiased pass@k for every k (D.2 row 32)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from ibtpo.config.models import Config
from ibtpo.report.curves import BANDS, bands, dress, grid, looks, style
from ibtpo.report.scores import Scores, read_scores
from ibtpo.report.wording import counted, sampling


def figure7(config: Config, frames: Sequence[pd.DataFrame]) -> tuple[Figure, str]:
    """Figure and caption from `scores` artifacts. Raises IbtpoError naming method/seed/benchmark where samples are missing."""
    samples = config.evaluate.samples
    scores = read_scores("figure7", config, config.figures["figure7"], frames)
    rates, methods = _rates(scores, samples), looks(scores.titles, config)
    ticks = [2**i for i in range(samples.bit_length())]
    with style():
        figure, axes = grid(len(scores.benchmarks), 2 if len(scores.benchmarks) > 1 else 1, methods)
        for axis, benchmark in zip(axes, scores.benchmarks, strict=True):
            bands(axis, rates[rates["benchmark"] == benchmark], "k", methods)
            dress(axis, f"{benchmark}: pass@k, %")
            axis.set_xscale("log", base=2)
            axis.set_xticks(ticks)
            axis.xaxis.set_major_formatter(ScalarFormatter())
            axis.xaxis.set_minor_locator(NullLocator())
        for axis in axes[-2:]:
            axis.set_xlabel("k")
    caption = (
        f"pass@k for every k from 1 to {samples}, unbiased estimate. Preset {config.described}. "
        f"{counted(scores.problems, samples, len(config.seeds))}; the base policy has one seed. {sampling(config)} {BANDS} "
        f"({len(config.seeds)} in all); intervals that count problems too are in the tables."
    )
    return figure, caption


def _rates(scores: Scores, samples: int) -> pd.DataFrame:
    """Columns method, seed (a number from 0), benchmark, k, value (percent)."""
    rows = [
        (method, seed, benchmark, k, 100 * rate)
        for method in scores.titles
        for k in range(1, samples + 1)
        for benchmark, strata in zip(scores.benchmarks, scores.passes(method, k), strict=True)
        for seed, rate in enumerate(strata.mean(axis=1))
    ]
    return pd.DataFrame(rows, columns=["method", "seed", "benchmark", "k", "value"])
