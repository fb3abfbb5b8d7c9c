"""What the papers claim, each held against our statistics: a region for a quantity, judged by its interval.

A claim holds if all of its comparisons lie inside their regions, does not hold if one lies outside, and cannot be told otherwise: a
claim of many parts is held to all of them. Margins are choices of this project [OURS].
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ibtpo.report.reported import MODEL, reported
from ibtpo.report.table import Column
from ibtpo.site.evidence import ABOVE, BELOW, FAILS, HOLDS, OPEN, Comparison, Evidence, NotMeasured

SAME = (-0.02, 0.02)  # accuracies within two points are called the same [OURS]
NO_GAIN = (float("-inf"), 0.01)  # a gain of less than a point is called none [OURS]
CLOSE_TO_ONE = (0.95, 1.05)  # [OURS]
COLLAPSE = (float("-inf"), -0.05)  # a loss of more than five points is called a collapse [OURS]
SMALLER, ABOUT = (0.0, 1.0), (0.9, 1.1)  # of a ratio; within a tenth is called about the same [OURS]

ENTROPY, RATIO = Column("entropy, nats", decimals=3), Column("mean density ratio", decimals=3)
EFF_RATE, ACCURACY, SCORE = Column.percent("Eff-Rate"), Column.percent("validation accuracy"), Column("IB-Score", decimals=3)
BASELINES = ("clip-higher", "entropy", "ibro", "treerl", "treepo")
TABLE2 = ("AIME25", "AMC24", "GPQA-D")  # the columns that the paper prints


@dataclass(frozen=True)
class Claim:
    """`source`: where the paper says it; `note`: how "close" or "none" is read, and what the paper's number is a number of."""

    text: str
    source: str
    compare: Callable[[Evidence], list[Comparison]]
    note: str = ""


@dataclass(frozen=True)
class Finding:
    claim: Claim
    verdict: str
    comparisons: tuple[Comparison, ...] = ()
    reason: str = ""  # why nothing was compared


def judge(claim: Claim, evidence: Evidence) -> Finding:
    """The verdict; a claim about what the preset has not run cannot be told."""
    try:
        comparisons = tuple(claim.compare(evidence))
    except NotMeasured as missing:
        return Finding(claim, OPEN, reason=str(missing))
    verdicts = {comparison.verdict for comparison in comparisons}
    return Finding(claim, FAILS if FAILS in verdicts else HOLDS if verdicts == {HOLDS} else OPEN, comparisons)


def printed(table: str, a: str, b: str, *columns: str, model: str = MODEL, ratio: bool = False) -> float | None:
    """Difference (or ratio in percent) of rows of a paper's table, mean of the columns; None where a number is not known."""
    rows = reported(table)[model]
    pairs = [(rows.get(a, {}).get(column), rows.get(b, {}).get(column)) for column in columns]
    if any(None in pair for pair in pairs):
        return None
    return round(sum(100 * x / y if ratio else x - y for x, y in pairs) / len(pairs), 2)


def _gains(*pairs: tuple[str, str], table: str, columns: tuple[str, ...], model: str = MODEL) -> Callable[[Evidence], list[Comparison]]:
    """The first of each pair has the higher average accuracy."""
    return lambda evidence: evidence.gains(pairs, reported={(a, b): printed(table, a, b, *columns, model=model) for a, b in pairs})


def _ibtpo(*others: str) -> Callable[[Evidence], list[Comparison]]:
    return _gains(*(("ibtpo", other) for other in others), table="table1", columns=("Avg of 7",))


def _components(*pairs: tuple[str, str]) -> Callable[[Evidence], list[Comparison]]:
    return _gains(*pairs, table="table2", columns=TABLE2)


def _samplers(measure: str, *pairs: tuple[str, str], region: tuple[float, float] = ABOVE) -> Callable[[Evidence], list[Comparison]]:
    """`measure` of the first sampler of each pair minus that of the second."""
    return lambda e: [e.sampled(measure, a, b, region, printed("table3", _row(a), _row(b), measure)) for a, b in pairs]


def _row(sampler: str) -> str:
    """Its name among the numbers of the paper: ibtree12 is "ibtree-12" there."""
    return re.sub(r"^([a-z]+)(\d+)$", r"\1-\2", sampler)


def _tokens(sampler: str, other: str, region: tuple[float, float]) -> Callable[[Evidence], list[Comparison]]:
    """Tokens of the first sampler over those of the second."""
    return lambda e: [
        e.sampled("tokens", sampler, other, region, printed("table3", _row(sampler), _row(other), "tokens", ratio=True), ratio=True)
    ]


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "Accuracy": (
        Claim("IB-TPO reaches a higher average accuracy than GRPO.", "section 5.2, Table 1", _ibtpo("grpo")),
        Claim("IB-TPO beats the entropy-based and the tree-based baselines.", "section 5.2, Table 1", _ibtpo(*BASELINES)),
        Claim(
            "Clip-higher and entropy regularisation do not lift GRPO's average accuracy.",
            "section 5.2, Table 1",
            lambda e: e.gains([("clip-higher", "grpo"), ("entropy", "grpo")], region=NO_GAIN),
            "A gain of less than a point counts as none [OURS].",
        ),
    ),
    "Trees": (
        Claim(
            "At about the tokens of 8 independent samples, IBTree gives more groups with mixed rewards.",
            "section 5.3, Table 3",
            lambda e: [
                *_samplers("eff_rate", ("ibtree12", "independent8"))(e),
                *_tokens("ibtree12", "independent8", ABOUT)(e),
            ],
            "Within a tenth of the tokens counts as about [OURS]. Its groups are of 12 responses, theirs of 8.",
        ),
        Claim(
            "12 trajectories of IBTree take fewer tokens than 12 independent ones.",
            "section 5.3, Table 3",
            _tokens("ibtree12", "independent12", SMALLER),
        ),
        Claim(
            "The IB-Score branches better than chance or token entropy: more groups with mixed rewards.",
            "section 5.3, Table 3",
            _samplers("eff_rate", ("ibtree12", "random12"), ("ibtree12", "eptree12")),
        ),
        Claim(
            "Random and fixed-width trees have fewer groups with mixed rewards than independent samples.",
            "section 5.3, Table 3",
            _samplers("eff_rate", ("random12", "independent12"), ("fixed12", "independent12"), region=BELOW),
        ),
        Claim(
            "IBTree's trajectories are right more often than independent ones.",
            "section 5.3, Table 3",
            _samplers("avg_rate", ("ibtree12", "independent12")),
        ),
        Claim(
            "Beta = 5 is the best weight: more groups with mixed rewards than with 1 or 10.",
            "section 5.3, Table 3",
            _samplers("eff_rate", ("ibtree12", "ibtree12-beta1"), ("ibtree12", "ibtree12-beta10")),
        ),
    ),
    "Components": (
        Claim(
            "The tree and the advantage each improve on GRPO.",
            "section 5.3, Table 2",
            _components(("grpo-ibtree", "grpo"), ("ibtpo-independent", "grpo")),
            "Paper: mean of the three benchmarks that it prints.",
        ),
        Claim(
            "The full method beats its advantage on random trees and on EPTree.",
            "section 5.3, Table 2",
            _components(("ibtpo", "ibtpo-random"), ("ibtpo", "ibtpo-eptree")),
            "Paper: mean of the three benchmarks that it prints.",
        ),
        Claim(
            "IB-TPO's advantage beats TreeRL's on the same kind of trees (EPTree).",
            "section 5.3, Table 2",
            lambda e: e.gains([("ibtpo-eptree", "treerl")]),
        ),
        Claim(
            "Lambda = 0.1 beats the global advantage alone (lambda = 0).",
            "Table 4",
            lambda e: e.gains([("ibtpo", "ibtpo-lambda0")]),
        ),
        Claim(
            "Lambda = 0.5 lets training collapse.",
            "Table 4",
            lambda e: e.gains([("ibtpo-lambda0.5", "ibtpo")], region=COLLAPSE),
            "A loss of more than five points counts as a collapse [OURS].",
        ),
        Claim(
            "10% noise in the step ends changes accuracy little.",
            "Table 5",
            lambda e: e.gains([("ibtpo-noise", "ibtpo")], region=SAME),
            "Within two points counts as little [OURS].",
        ),
    ),
    "Dynamics": (
        Claim(
            "GRPO over-exploits: entropy, and the share of groups with mixed rewards, fall during training.",
            "section 3.1, Figures 1 and 2",
            lambda e: [e.change("train/entropy", "grpo", ENTROPY, BELOW), e.change("train/eff_rate", "grpo", EFF_RATE, BELOW)],
        ),
        Claim(
            "A strong entropy bonus over-explores: entropy stays above GRPO's, accuracy below.",
            "section 3.1, Figures 1 and 2",
            lambda e: [
                e.apart("train/entropy", "entropy-strong", "grpo", ENTROPY),
                e.apart("validation/accuracy", "entropy-strong", "grpo", ACCURACY, BELOW),
            ],
        ),
        Claim(
            "IB-TPO keeps more groups with mixed rewards, and a higher IB-Score, than GRPO.",
            "section 5.2, Figure 5",
            lambda e: [e.apart("train/eff_rate", "ibtpo", "grpo", EFF_RATE), e.apart("validation/ib_score", "ibtpo", "grpo", SCORE)],
            "IB-TPO's groups are of 12 responses, GRPO's of 8; larger groups are mixed more often (5.1 points in the paper's Table 3).",
        ),
        Claim(
            "The mean ratio of a step's reward density to its parent's stays close to 1.",
            "appendix A.1, Figure 6",
            lambda e: [e.level("train/ratio", "ibtpo", RATIO, CLOSE_TO_ONE)],
            "Within 0.05 counts as close [OURS].",
        ),
    ),
    "ERPO": (
        Claim(
            "ERPO reaches a higher average accuracy than GRPO.",
            "ERPO (arXiv 2603.28204), Table 1",
            _gains(("erpo", "grpo"), table="erpo1", columns=("Average Acc",), model="Qwen2.5-7B"),
            "Paper: Qwen2.5-7B.",
        ),
    ),
}
