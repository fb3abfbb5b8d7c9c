"""The first page: what was run, on what, how long, and what became of the claims of the papers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ibtpo.site.claims import CLAIMS, Claim, Finding, judge
from ibtpo.site.evidence import FAILS, HOLDS, OPEN, Comparison, Evidence
from ibtpo.site.inputs import Inputs
from ibtpo.site.strip import Strip
from ibtpo.site.tables import number
from ibtpo.site.titles import MINUS

SIGNS = {HOLDS: "✓", FAILS: "✕", OPEN: "?"}
CLASSES = {HOLDS: "good", FAILS: "bad", OPEN: "unsure"}
MAIN = "table1"  # its average is the picture on the first page


def overview(inputs: Inputs) -> dict[str, Any]:
    evidence = Evidence(inputs)
    judged = {theme: [judge(claim, evidence) for claim in claims] for theme, claims in CLAIMS.items()}
    counts = Counter(finding.verdict for findings in judged.values() for finding in findings)
    return {
        "facts": facts(inputs),
        "themes": [(theme, [_finding(finding) for finding in findings]) for theme, findings in judged.items()],
        "tally": [{"verdict": verdict, "count": counts[verdict], "kind": CLASSES[verdict], "sign": SIGNS[verdict]} for verdict in SIGNS],
        "ranking": _ranking(inputs) if MAIN in inputs.tables else None,
        "samples": inputs.config.evaluate.samples,
    }


def facts(inputs: Inputs) -> list[tuple[str, str, str]]:
    """Label, value and explanation of what was run."""
    config, rows = inputs.config, inputs.metrics
    trained = rows.groupby(["method", "seed"]).ngroups
    seconds = rows.loc[rows["metric"].str.startswith("seconds/"), "value"].sum()
    tokens = rows.loc[rows["metric"] == "train/tokens", "value"].sum()
    evaluated = [name for name in inputs.paths.report_inputs() if name.startswith("scores-")]
    benchmarks, sampling, train = config.evaluate.benchmarks, config.sampling, config.train
    return [
        ("Preset", config.described, "its hashes are under Provenance"),
        ("Model", *_model(inputs)),
        ("Policies", f"{len(evaluated)}", f"with {len(config.seeds)} seed{'s' * (len(config.seeds) > 1)} a method, evaluated alike"),
        ("Benchmarks", str(len(benchmarks)), ", ".join(benchmarks)),
        ("Samples a problem", str(config.evaluate.samples), f"temperature {sampling.temperature:g}, top-p {sampling.top_p:g}"),
        ("Runs with curves", f"{trained:,}", f"{train.iterations} batches of {train.problems_per_iteration} problems each"),
        ("Tokens generated", magnitude(tokens), "by the rollouts of these runs"),
        ("Time of these runs", duration(seconds), "rollouts, updates and validation, one after another"),
    ]


def _model(inputs: Inputs) -> tuple[str, str]:
    policy = inputs.config.policy
    if policy.card:
        return policy.card, "as published"
    return f"Qwen3, {policy.layers} layers", f"of width {policy.hidden_size}, trained from scratch"


def magnitude(value: float) -> str:
    """Three digits and a unit: 9.24 million."""
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Hours, minutes or seconds, whichever is read best."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _finding(finding: Finding) -> dict[str, Any]:
    claim: Claim = finding.claim
    columns = {comparison.column for comparison in finding.comparisons}  # comparisons of one quantity share their scale
    scales = {column: Strip.around([bound for c in finding.comparisons if c.column == column for bound in _shown(c)]) for column in columns}
    return {
        "text": claim.text,
        "source": claim.source,
        "note": claim.note,
        "reason": finding.reason,
        "verdict": finding.verdict,
        "kind": CLASSES[finding.verdict],
        "sign": SIGNS[finding.verdict],
        "comparisons": [_comparison(comparison, scales[comparison.column]) for comparison in finding.comparisons],
    }


def _shown(comparison: Comparison) -> list[float]:
    """All that the strip of a comparison has to hold, in the shown unit."""
    e, factor = comparison.estimate, comparison.column.scale
    borders = [factor * border for border in comparison.region if abs(border) != float("inf")]
    return [e.low * factor, e.high * factor, *borders, *([] if comparison.reported is None else [comparison.reported])]


def _comparison(comparison: Comparison, scale: Strip) -> dict[str, Any]:
    e, column = comparison.estimate, comparison.column
    low, high = (border * column.scale for border in comparison.region)
    return {
        "label": comparison.label,
        "value": number(e.value, column),
        "interval": f"{number(e.low, column)} to {number(e.high, column)}",
        "unit": column.unit,
        "p": "" if comparison.p is None else f"{comparison.p:.3f}" if comparison.p >= 0.001 else "< 0.001",
        "paper": "" if comparison.reported is None else f"{comparison.reported:{'+' if column.signed else ''},.1f}".replace("-", MINUS),
        "verdict": comparison.verdict,
        "kind": CLASSES[comparison.verdict],
        "sign": SIGNS[comparison.verdict],
        "strip": {
            "low": scale.at(e.low * column.scale),
            "high": scale.at(e.high * column.scale),
            "value": scale.at(e.value * column.scale),
            "region": (scale.at(low), scale.at(high)),
            "paper": None if comparison.reported is None else scale.at(comparison.reported),
        },
    }


def _ranking(inputs: Inputs) -> dict[str, Any]:
    """Average accuracy of the methods of the main table, with intervals on one scale, from its grid."""
    grid = inputs.tables[MAIN].grids[0]
    column = next(column for column in grid.columns if column.name == "Avg")
    cells = [(row, grid.cells[row, "Avg"].estimate) for row in grid.rows]
    scale = Strip.around([bound * column.scale for _, e in cells for bound in (e.low, e.high)])
    rows = [
        {
            "name": row,
            "value": number(e.value, column),
            "interval": f"{number(e.low, column)} to {number(e.high, column)}",
            "low": scale.at(e.low * column.scale),
            "high": scale.at(e.high * column.scale),
            "at": scale.at(e.value * column.scale),
        }
        for row, e in cells
    ]
    return {"rows": rows, "ticks": [(scale.at(tick), f"{tick:g}") for tick in scale.ticks()]}
