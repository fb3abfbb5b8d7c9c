"""A horizontal scale for intervals drawn as HTML: places in percent of its width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MARGIN = 0.06  # of the range, left and right


@dataclass(frozen=True)
class Strip:
    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float]) -> Strip:
        """The scale that holds all values with a margin."""
        if not values:
            return cls(0, 1)
        low, high = min(values), max(values)
        margin = MARGIN * (high - low or 1)
        return cls(low - margin, high + margin)

    def at(self, value: float) -> float:
        """Place of a value, 0 to 100; what lies outside, infinities too, is at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(100 * share, 2)

    def ticks(self, count: int = 5) -> list[float]:
        """Round numbers within the scale, about `count` of them."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [round(n * step, 10) for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
