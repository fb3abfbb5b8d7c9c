"""A table before it has a format: grids of cells under one caption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ibtpo.evaluation.statistics import Estimate, Intervals


@dataclass(frozen=True)
class Column:
    """Heading, unit, factor from the estimate's unit to the shown one, decimals, and whether a plus sign is shown."""

    name: str
    unit: str = ""
    scale: float = 1
    decimals: int = 0
    signed: bool = False

    @classmethod
    def percent(cls, name: str) -> Column:
        return cls(name, "%", 100, 1)

    def difference(self) -> Column:
        """The same quantity as a difference: points of a percentage, with its sign."""
        return replace(self, unit="points" if self.unit == "%" else self.unit, signed=True)

    def mean(self, values: np.ndarray, intervals: Intervals) -> Estimate:
        """Mean of values (seeds, problems) with its interval; only what is a percentage has the interval of a rate, within [0, 1]."""
        if self.unit != "%":
            return intervals.difference([values], [np.zeros_like(values)])
        return intervals.estimate(values)


@dataclass(frozen=True)
class Cell:
    """One observation: ours (`estimate`, in the unit of the statistics) or the paper's (`reported`, as printed), or both.

    `number` is ours without an interval: a p-value, a setting.
    """

    estimate: Estimate | None = None
    problems: int | None = None
    samples: int | None = None
    seeds: int | None = None
    reported: float | None = None
    note: str = ""
    number: float | None = None


@dataclass(frozen=True)
class Grid:
    """Rows of cells; `cells[row, column name]` may lack a key, which is an empty cell."""

    label: str
    stub: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: dict[tuple[str, str], Cell]


@dataclass(frozen=True)
class Table:
    """`titles`: the rows by their key, which is the method or the sampler that artifacts name."""

    name: str
    caption: str
    grids: tuple[Grid, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
