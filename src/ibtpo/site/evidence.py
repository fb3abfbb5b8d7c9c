"""The statistics that claims are held against: differences of policies, of samplers and of training curves, as the tables compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from ibtpo import IbtpoError
from ibtpo.config.paths import ACCURACIES
from ibtpo.evaluation.statistics import Estimate, Intervals, holm, permutation_test
from ibtpo.report.scores import Scores, Strata, read_scores
from ibtpo.report.strategies import MEASURES, Strategies, read_strategies
from ibtpo.report.table import Column
from ibtpo.site.inputs import Inputs
from ibtpo.site.titles import MINUS

INFINITY = float("inf")
ABOVE, BELOW = (0.0, INFINITY), (-INFINITY, 0.0)  # regions of a difference
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
QUARTER = 4  # a curve's start and end: the first and the last of so many parts of the training steps
POINTS = Column.percent("Avg").difference()


class NotMeasured(IbtpoError):
    """This preset has not run what a claim is about."""


@dataclass(frozen=True)
class Comparison:
    """A quantity with its interval, and the region in which a claim says the true value lies (unit of the statistics)."""

    label: str
    estimate: Estimate
    region: tuple[float, float]
    column: Column
    p: float | None = None  # Holm-corrected, where the tables have a test too
    level: float = 0.05
    reported: float | None = None  # of the paper, in the shown unit

    @property
    def verdict(self) -> str:
        """By the interval: inside the region, outside of it, or across its border; a large p leaves open what the interval decides."""
        low, high = self.region
        inside = low < self.estimate.low and self.estimate.high < high
        outside = self.estimate.high <= low or self.estimate.low >= high
        if self.p is not None and self.p > self.level:
            return OPEN
        return HOLDS if inside else FAILS if outside else OPEN


class Evidence:
    """Raises NotMeasured where a method, a sampler or a metric is not part of the preset."""

    def __init__(self, inputs: Inputs):
        self.inputs, self.config = inputs, inputs.config
        self.intervals = Intervals(self.config.evaluate.confidence)

    def _made(self, *tables: str) -> list[str]:
        """Those of these tables that are made."""
        return [name for name in tables if name in self.inputs.tables]

    # ---- accuracy of policies (artifacts `scores`) ----

    @cached_property
    def _methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(method for name in self._made(*ACCURACIES) for method in self.config.tables[name]))

    @cached_property
    def _scores(self) -> Scores:
        artifacts = dict.fromkeys(artifact for name in self._made(*ACCURACIES) for artifact in self.inputs.paths.shown(name))
        return read_scores("the report", self.config, self._methods, [self.inputs.frame(artifact) for artifact in artifacts])

    def accuracy(self, method: str, k: int | None = None) -> Strata:
        """avg@k of each problem, or its pass@k; one array (seeds, problems) a benchmark."""
        if method not in self._methods:
            raise NotMeasured(f"{method} is in no table of accuracies of this preset")
        return self._scores.passes(method, k) if k else self._scores.means(method)

    def gains(
        self,
        pairs: Sequence[tuple[str, str]],
        region: tuple[float, float] = ABOVE,
        k: int | None = None,
        reported: Mapping[tuple[str, str], float | None] | None = None,
    ) -> list[Comparison]:
        """Average accuracy of the first method minus that of the second, for each pair; p is corrected over the pairs."""
        values = {pair: [self.accuracy(method, k) for method in pair] for pair in pairs}
        tested = region in (ABOVE, BELOW)
        ps = holm([permutation_test(*both) for both in values.values()]) if tested else [None] * len(pairs)
        title = self._scores.titles
        return [
            Comparison(
                f"{title[a]} {MINUS} {title[b]}" + (f", pass@{k}" if k else ""),
                self.intervals.difference(*values[a, b]),
                region,
                POINTS,
                None if p is None else float(p),
                1 - self.config.evaluate.confidence,
                (reported or {}).get((a, b)),
            )
            for (a, b), p in zip(pairs, ps, strict=True)
        ]

    # ---- samplers on the base policy (artifacts `trees`) ----

    @cached_property
    def _strategies(self) -> Strategies:
        titles = {name: title for table in self._made("table6", "table3") for name, title in self.inputs.tables[table].titles.items()}
        return read_strategies("the report", self.config, titles, [self.inputs.frame(f"trees-{name}") for name in titles])

    def _sampler(self, name: str, measure: str) -> list[np.ndarray]:
        if not self._made("table6", "table3") or name not in self._strategies.titles:
            raise NotMeasured(f"sampler {name} is not compared in this preset")
        return [self._strategies.values[name][measure]]

    def sampled(
        self, measure: str, a: str, b: str, region: tuple[float, float] = ABOVE, reported: float | None = None, ratio: bool = False
    ) -> Comparison:
        """`measure` of sampler `a` minus that of `b`, paired by problem, or their ratio in percent."""
        both = self._sampler(a, measure), self._sampler(b, measure)
        estimate = self.intervals.ratio(*both) if ratio else self.intervals.difference(*both)
        column = replace(MEASURES[measure], unit="%", scale=100, decimals=1) if ratio else MEASURES[measure].difference()
        title = self._strategies.titles
        return Comparison(f"{title[a]} {'/' if ratio else MINUS} {title[b]}", estimate, region, column, reported=reported)

    # ---- training curves (artifacts `metrics`) ----

    def curve(self, metric: str, method: str, late: bool) -> list[np.ndarray]:
        """Mean of the last or the first quarter of the training steps, shape (seeds, 1)."""
        rows = self._rows(metric, method)
        last = rows["step"].max()
        rows = rows[rows["step"] > last * (1 - 1 / QUARTER)] if late else rows[rows["step"] <= max(1, last / QUARTER)]
        return [rows.groupby("seed")["value"].mean().sort_index().to_numpy()[:, None]]

    def change(self, metric: str, method: str, column: Column, region: tuple[float, float]) -> Comparison:
        """End of training minus its start."""
        both = self.curve(metric, method, late=True), self.curve(metric, method, late=False)
        title = self.config.methods[method].title
        return Comparison(f"{title}, {column.name}: end {MINUS} start", self._across_seeds(*both), region, column.difference())

    def apart(self, metric: str, a: str, b: str, column: Column, region: tuple[float, float] = ABOVE) -> Comparison:
        """Method `a` minus method `b` at the end of training, paired by seed."""
        both = self.curve(metric, a, late=True), self.curve(metric, b, late=True)
        title = {name: self.config.methods[name].title for name in (a, b)}
        return Comparison(
            f"{title[a]} {MINUS} {title[b]}, {column.name} at the end", self._across_seeds(*both), region, column.difference()
        )

    def level(self, metric: str, method: str, column: Column, region: tuple[float, float]) -> Comparison:
        """Mean over the whole training."""
        values = self._rows(metric, method).groupby("seed")["value"].mean().sort_index().to_numpy()[:, None]
        return Comparison(f"{self.config.methods[method].title}, {column.name}", self._across_seeds([values], [0 * values]), region, column)

    def _rows(self, metric: str, method: str) -> pd.DataFrame:
        rows = self.inputs.metrics
        rows = rows[(rows["metric"] == metric) & (rows["method"] == method)]
        if rows.empty:
            raise NotMeasured(f"no run of {method} in this preset reports {metric}")
        return rows

    def _across_seeds(self, strata: Strata, reference: Strata) -> Estimate:
        if len(strata[0]) < 2:
            raise NotMeasured("a training curve of a single seed shows no spread")
        return self.intervals.difference(strata, reference)
