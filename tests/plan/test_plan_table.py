"""The plan from a list of jobs: what was measured counts, else the model; command lines are found behind whatever starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibtpo.__main__ import _parser
from ibtpo.config import load
from ibtpo.operations.plan import MEASURED, MODEL, plan, table
from ibtpo.operations.workflow import Job

TRAIN = "train --method ibtpo --seed 0 --policy p --data d --out o"
HEAD = "s\th:m:s\tmax_rss\n"


def parse(arguments):
    return vars(_parser().parse_args(arguments))


def job(rule, command, benchmark=None, waiting=True):
    shell = f"python -m ibtpo --preset tiny --set '{{\"seeds\": [0]}}' {command} > 'log file.log' 2>&1" if command else ""
    return Job(rule, benchmark, shell, waiting)


@pytest.mark.parametrize(
    "shell, words",
    [
        ("'/a b/python' -m ibtpo x", ["x"]),
        (
            "OMP_NUM_THREADS=2 python -m ibtpo --preset tiny measure --name 'a b' --out o > log 2>&1",
            ["--preset", "tiny", "measure", "--name", "a b", "--out", "o"],
        ),
        ("python -m accelerate.commands.launch --num_processes 2 -m ibtpo --set '{}' train > l 2>&1", ["--set", "{}", "train"]),
        ("python benchmarks/rollout.py --preset tiny > out 2> log", []),
        ("", []),
    ],
)
def test_arguments_of_a_command_line(shell, words):
    assert Job("rule", None, shell, True).arguments == words


def test_measured_times_count_for_the_jobs_of_the_rule(tmp_path):
    own, other = tmp_path / "train" / "run-1.tsv", tmp_path / "train" / "older.tsv"
    own.parent.mkdir()
    other.write_text(HEAD + "7200\t2:00:00\t9\n")
    found = [job("train", TRAIN, own), job("train", TRAIN.replace("0", "1"), tmp_path / "train" / "run-2.tsv", waiting=False)]
    (row,) = plan(load("tiny"), found, parse)
    assert (row.jobs, row.to_do, row.hours, row.total, row.waiting, row.source) == (2, 1, 2, 4, 2, MEASURED)
    own.write_text(HEAD + "3600\t1:00:00\t9\n")  # of this very job: it counts more than others
    assert plan(load("tiny"), found, parse)[0].hours == 1


@pytest.mark.parametrize("content", ["", HEAD, HEAD + "x\t0\t0\n", HEAD + "3\n", "a\tb\n1\t2\n"])
def test_a_torn_measurement_is_none(tmp_path, content):
    (tmp_path / "a.tsv").write_text(content)
    assert plan(load("tiny"), [job("train", TRAIN, tmp_path / "b.tsv")], parse)[0].source == MODEL


def test_rules_without_a_command_are_left_out_and_the_dearest_comes_first():
    config = load("qwen3-8b")
    found = [job("all", ""), job("metrics", "metrics --run r --method grpo --seed 0 --out o"), *[job("train", TRAIN)] * 2]
    rows = plan(config, found, parse)
    assert [(row.rule, row.jobs, row.source) for row in rows] == [("train", 2, MODEL), ("metrics", 1, MODEL)]
    assert rows[0].total == pytest.approx(2 * 8 * rows[0].hours)  # eight GPUs
    assert (rows[1].hours, rows[1].total) == (pytest.approx(config.plan.light_minutes / 60), 0)  # no GPU
    assert plan(load("tiny"), found[1:2], parse)[0].total == pytest.approx(config.plan.light_minutes / 60)


def test_the_table_adds_up():
    rows = plan(load("qwen3-8b"), [job("train", TRAIN), job("train", TRAIN, waiting=False)], parse)
    lines = table(load("qwen3-8b"), rows).splitlines()
    assert lines[0].split("  ")[0].strip() == "rule" and "GPU hours" in lines[0]
    train, total = lines[2].split(), lines[-1].split()
    assert train[1:3] == total[1:3] == ["2", "1"]
    assert float(train[4].replace(",", "")) == pytest.approx(2 * float(train[5].replace(",", "")), rel=1e-3)
    assert "CPU hours" in table(load("tiny"), rows)


def test_an_argument_that_no_command_knows_is_refused(capsys):
    with pytest.raises(SystemExit):
        plan(load("tiny"), [job("train", "train --methods ibtpo")], parse)
    assert "--method" in capsys.readouterr().err


def test_files_of_the_model_are_documented():
    from ibtpo.config.plan import Plan

    page = Path("docs/cost-model.md").read_text()
    assert all(f"`plan.{name}`" in page for name in Plan.model_fields)
