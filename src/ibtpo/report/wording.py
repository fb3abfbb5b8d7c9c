"""Names and sentences that tables and figures share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sized

from ibtpo.config.models import Config


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """The same titles by key; where two are alike, the key is added."""
    uses = Counter(titles.values())
    return {key: title if uses[title] == 1 else f"{title} ({key})" for key, title in titles.items()}


def counted(problems: Mapping[str, Sized], samples: int, seeds: int) -> str:
    """n x k x seeds, with the n of each benchmark."""
    sizes = ", ".join(f"{name} {len(uids)}" for name, uids in problems.items())
    return f"Problems x samples x seeds: ({sizes}) x {samples} x {seeds}"


def sampling(config: Config) -> str:
    s = config.sampling
    top_k = f"top-k {s.top_k}" if s.top_k else "no top-k"
    return f"Sampled at temperature {s.temperature:g}, top-p {s.top_p:g}, {top_k}, at most {s.max_tokens} tokens."


def interval(config: Config, seeds: int) -> str:
    """How the interval in brackets is made."""
    plan = config.evaluate
    drawn = f"problems and of seeds (deviations of seeds times sqrt({seeds}/{seeds - 1}))" if seeds > 1 else "problems, with one seed"
    return (
        f"Brackets: {plan.confidence:.0%} percentile bootstrap, {plan.bootstrap:,} draws of {drawn}; Wilson's interval where every problem "
        "is 0 or every one is 1."
    )
