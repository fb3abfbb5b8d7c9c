"""Claims: how an interval becomes a verdict, and that the numbers are those of the tables."""

from __future__ import annotations

import math

import pytest
from artifacts import make_site, small, working_in

from ibtpo.evaluation.statistics import Estimate
from ibtpo.report.table import Column
from ibtpo.site.claims import CLAIMS, Claim, judge, printed
from ibtpo.site.evidence import ABOVE, BELOW, FAILS, HOLDS, OPEN, Comparison, Evidence
from ibtpo.site.inputs import Inputs

GAIN = Column.percent("Avg").difference()
ALL = [claim for claims in CLAIMS.values() for claim in claims]


def compared(low: float, high: float, region=ABOVE, p=None) -> Comparison:
    return Comparison("a - b", Estimate((low + high) / 2, low, high), region, GAIN, p)


@pytest.mark.parametrize(
    ("low", "high", "region", "p", "verdict"),
    [
        (0.01, 0.03, ABOVE, None, HOLDS),
        (-0.01, 0.03, ABOVE, None, OPEN),
        (-0.03, -0.01, ABOVE, None, FAILS),
        (-0.03, -0.01, BELOW, None, HOLDS),
        (0.0, 0.03, ABOVE, None, OPEN),  # a bound on the border is not inside
        (0.01, 0.03, ABOVE, 0.04, HOLDS),
        (0.01, 0.03, ABOVE, 0.06, OPEN),  # the test leaves open what the interval decides
        (-0.03, -0.01, ABOVE, 0.06, OPEN),
        (-0.01, 0.01, (-0.02, 0.02), None, HOLDS),
        (-0.01, 0.03, (-0.02, 0.02), None, OPEN),
        (0.03, 0.05, (-0.02, 0.02), None, FAILS),
        (-0.5, 0.005, (-math.inf, 0.01), None, HOLDS),
    ],
)
def test_the_interval_decides(low, high, region, p, verdict):
    assert compared(low, high, region, p).verdict == verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([(0.01, 0.02)], HOLDS),
        ([(0.01, 0.02), (-0.01, 0.02)], OPEN),
        ([(0.01, 0.02), (-0.01, 0.02), (-0.02, -0.01)], FAILS),
    ],
)
def test_a_claim_is_held_to_all_of_its_parts(parts, verdict):
    claim = Claim("text", "source", lambda evidence: [compared(*part) for part in parts])
    assert judge(claim, None).verdict == verdict


@pytest.fixture(scope="module")
def evidence(site):
    inputs = Inputs(small(), site)
    with working_in(site.parents[1]):  # everything is read here, and kept
        assert inputs.tables and not inputs.metrics.empty
    return Evidence(inputs)


def test_the_first_claim_has_the_numbers_of_table_1(evidence):
    finding = judge(ALL[0], evidence)
    table = evidence.inputs.tables["table1"]
    cell = table.grids[0].cells[table.titles["ibtpo"], f"Avg - {table.titles['grpo']}"]
    assert finding.comparisons[0].estimate == cell.estimate
    assert finding.comparisons[0].estimate.value == pytest.approx(5 / 6 / 4)  # one sample of four more, but in the first of six problems
    assert finding.comparisons[0].reported == 3.6


def test_samplers_and_curves_are_compared_by_hand(evidence):
    tokens = evidence.sampled("tokens", "ibtree12", "independent12", (0, 1), ratio=True)
    assert tokens.estimate.value == pytest.approx(0.6) and tokens.verdict == HOLDS
    change = evidence.change("train/entropy", "grpo", Column("entropy"), BELOW)
    late, early = (7 + 8) / 2, (1 + 2) / 2  # steps of the last and the first quarter of eight
    assert change.estimate.value == pytest.approx(-0.05 * (late - early), abs=0.01)
    apart = evidence.apart("train/entropy", "ibtpo", "grpo", Column("entropy"))
    assert apart.estimate.value == pytest.approx(2 * 0.05 * late, abs=0.01) and apart.verdict == HOLDS


def test_what_was_not_run_cannot_be_told(evidence):
    """Every claim gets a verdict in a preset of two methods; those about others say what is missing."""
    findings = [judge(claim, evidence) for claim in ALL]
    missing = [finding for finding in findings if finding.reason]
    assert all(finding.verdict == OPEN and not finding.comparisons for finding in missing)
    assert any("erpo" in finding.reason for finding in missing)
    assert all(finding.comparisons for finding in findings if not finding.reason)


def test_a_curve_of_one_seed_tells_nothing(tmp_path):
    config = small(seeds=[0])
    site = make_site(config, tmp_path)
    with working_in(tmp_path):
        evidence = Evidence(Inputs(config, site))
        dynamics = [judge(claim, evidence) for claim in CLAIMS["Dynamics"]]
    assert {finding.verdict for finding in dynamics} == {OPEN}
    assert "single seed" in dynamics[0].reason


def test_the_papers_differences_are_of_its_printed_numbers():
    assert printed("table1", "ibtpo", "grpo", "Avg of 7") == 3.6
    assert printed("table3", "ibtree-12", "independent-12", "tokens", ratio=True) == pytest.approx(63.1, abs=0.05)
    assert printed("table1", "ibtpo", "ibro", "Avg of 7") is None  # the paper's number is not known
    assert printed("table2", "grpo-ibtree", "grpo", "AIME25", "AMC24", "GPQA-D") == pytest.approx((1.4 + 4.4 + 2.7) / 3, abs=0.01)


def test_claims_say_where_they_stand():
    assert all(claim.source and claim.text.endswith(".") for claim in ALL)
    assert len({claim.text for claim in ALL}) == len(ALL)
