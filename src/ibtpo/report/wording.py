"""Names and sentences that tables and figures share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ibtpo.config.models import Config
from ibtpo.report.table import Grid

UNDECIDED = "not told apart"


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """The same titles by key; where two are alike, the key is added."""
    uses = Counter(titles.values())
    return {key: title if uses[title] == 1 else f"{title} ({key})" for key, title in titles.items()}


def counted(problems: Mapping[str, int], samples: int, seeds: int) -> str:
    """n x k x seeds, with the n of each benchmark."""
    sizes = ", ".join(f"{name} {count}" for name, count in problems.items())
    return f"Problems x samples x seeds: ({sizes}) x {samples} x {seeds}"


def sampling(config: Config, at_most: str = "") -> str:
    """How responses were sampled; `at_most` says how long, if not as in training."""
    s = config.sampling
    top_k = f"top-k {s.top_k}" if s.top_k else "no top-k"
    return f"Sampled at temperature {s.temperature:g}, top-p {s.top_p:g}, {top_k}, at most {at_most or f'{s.max_tokens} tokens'}."


def interval(config: Config, seeds: int, shown: str = "Brackets") -> str:
    """How the interval is made that is `shown` in some way."""
    spread = (
        f"the spreads over problems and over seeds, each with its own t quantile ({seeds - 1} degrees of freedom for seeds), in quadrature"
        if seeds > 1
        else "the spread over problems, with one seed"
    )
    return f"{shown}: {config.evaluate.confidence:.0%} interval from {spread}; of a rate, the score interval of that width."


def tested(config: Config) -> str:
    """How a corrected difference is judged."""
    return (
        "A difference is paired by problem and seed. p: sign flips of problems (of the runs at hand), Holm-corrected over the rows. A "
        f"difference is called higher or lower where its interval leaves out 0 and p is at most {1 - config.evaluate.confidence:.2g}, "
        f"else {UNDECIDED}."
    )


def judged(paired: str) -> str:
    """How a difference is judged where nothing is corrected."""
    return (
        f"A difference is paired by {paired}, and called higher or lower where its interval leaves out 0, else {UNDECIDED}; no correction "
        "for the number of comparisons."
    )


def told_apart(grid: Grid) -> str:
    """What the verdicts of a grid say in one sentence: which rows can, and which cannot, be told apart from the reference."""
    judged = {row: (column, cell.note) for (row, column), cell in grid.cells.items() if cell.note}
    if not judged:
        return ""
    rows = {verdict: [row for row, (_, note) in judged.items() if note == verdict] for verdict in ("higher", "lower", UNDECIDED)}
    said = "; ".join(f"{verdict} for {', '.join(found)}" for verdict, found in rows.items() if found)
    return f"{next(iter(judged.values()))[0]}: {said}."
