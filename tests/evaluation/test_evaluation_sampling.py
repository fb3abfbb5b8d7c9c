"""Sampling benchmarks, scoring, comparing samplers: what they write, and that a kill loses and repeats nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import one_step_tree
from transformers import AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.__main__ import COMMANDS, _parser
from ibtpo.config import load
from ibtpo.evaluation import collect as collecting
from ibtpo.evaluation import compare, sample, verdicts
from ibtpo.evaluation.collect import collect
from ibtpo.io import read_parquet, write_parquet
from ibtpo.rollout.problems import load_problems


@pytest.fixture(scope="module")
def config():
    return load("smoke", {"engine": {"kind": "transformers", "mode": "lockstep"}})


class TestCollect:
    def run(self, seen, fail_at=None):
        def run(part):
            if fail_at in part:
                raise KeyboardInterrupt
            seen.extend(part)
            return [[{"unit": unit, "value": unit * 10}, {"unit": unit, "value": None}] for unit in part]

        return run

    def test_a_killed_collection_goes_on_with_the_rest(self, tmp_path):
        out, seen = tmp_path / "rows.parquet", []
        with pytest.raises(KeyboardInterrupt):
            collect(out, range(7), str, self.run(seen, fail_at=4), collecting.RESPONSES // 2)
        assert not out.exists() and seen == [0, 1, 2, 3]
        with open(tmp_path / "rows.parquet.partial.jsonl", "a") as partial:
            partial.write('{"key": "4", "ro')
        collect(out, range(7), str, self.run(seen), collecting.RESPONSES // 2)
        assert seen == list(range(7))
        assert list(read_parquet(out)["unit"]) == [unit for unit in range(7) for _ in range(2)]
        assert sorted(tmp_path.iterdir()) == [out, out.with_suffix(".run.json")]

    def test_repeated_keys_are_refused(self, tmp_path):
        with pytest.raises(IbtpoError, match="same key"):
            collect(tmp_path / "rows.parquet", [1, 1], str, self.run([]), collecting.RESPONSES // 2)

    def test_nan_is_stored(self, tmp_path):
        collect(tmp_path / "rows.parquet", [0], str, lambda part: [[{"reward": float("nan")}, {"reward": 1.0}]], 1)
        assert np.isnan(read_parquet(tmp_path / "rows.parquet")["reward"][0])


def test_samples_then_scores(config, world, tmp_path):
    samples, scores = tmp_path / "samples.parquet", tmp_path / "scores.parquet"
    sample.main(config, str(world.policy), "base", str(world.data), str(samples))
    frame = read_parquet(samples)
    k, n = config.evaluate.samples, config.world.benchmark
    assert len(frame) == len(config.evaluate.benchmarks) * n * k
    assert (frame.groupby(["benchmark", "uid"])["sample"].apply(sorted).map(tuple) == tuple(range(k))).all()
    tokenizer = AutoTokenizer.from_pretrained(world.policy)
    assert all(tokenizer.decode(row.ids, skip_special_tokens=True) == row.text for row in frame.itertuples())
    assert ((frame["tokens"] <= config.sampling.max_tokens) & (frame["tokens"] == frame["ids"].map(len))).all()
    verdicts.main(config, str(samples), str(world.data), "base", -1, str(scores))
    result = read_parquet(scores)
    assert list(result.columns) == verdicts.COLUMNS and len(result) == len(frame)
    assert set(result["reward"]) <= {0.0, 1.0}


def test_scoring_again_uses_the_cached_texts(config, world, tmp_path):
    """A right answer put into the cache is scored right: scores come from the texts, not from the run that made them."""
    problem = read_parquet(world.data / "benchmarks" / "chain-sum-5.parquet").iloc[0]
    row = {
        "benchmark": "chain-sum-5",
        "uid": problem.uid,
        "family": problem.family,
        "sample": 0,
        "finished": True,
        "status": "ok",
        "tokens": 3,
    }
    texts = [f"\\boxed{{{problem.answer}}}", "\\boxed{", ""]
    samples = [row | {"text": text} for text in texts] + [row | {"text": texts[0], "status": "oov"}]
    write_parquet(pd.DataFrame(samples), tmp_path / "samples.parquet")
    verdicts.main(config, str(tmp_path / "samples.parquet"), str(world.data), "base", -1, str(tmp_path / "scores.parquet"))
    result = read_parquet(tmp_path / "scores.parquet")
    assert list(result["reward"]) == [1.0, 0.0, 0.0, 0.0]
    assert list(result["status"]) == ["ok", "parse_failed", "parse_failed", "oov"]


def test_samples_of_other_data_are_refused(config, world, tmp_path):
    row = {"benchmark": "chain-sum-5", "uid": "nobody", "family": "chain-sum-5", "sample": 0, "text": "", "tokens": 0}
    write_parquet(pd.DataFrame([row]), tmp_path / "samples.parquet")
    with pytest.raises(IbtpoError, match="nobody"):
        verdicts.main(config, str(tmp_path / "samples.parquet"), str(world.data), "base", -1, str(tmp_path / "scores.parquet"))


def test_a_sample_is_the_same_whatever_was_sampled_before(config, world, tmp_path, monkeypatch):
    """In one piece, or in chunks of one problem with a kill between them: the same rows."""
    whole, killed = tmp_path / "whole.parquet", tmp_path / "killed.parquet"
    one = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"benchmarks": ("chain-sum-5",)})})
    sample.main(one, str(world.policy), "base", str(world.data), str(whole))
    monkeypatch.setattr(collecting, "RESPONSES", 1)
    rows, calls = sample.rows, []

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return rows(*arguments)

    monkeypatch.setattr(sample, "rows", counted)
    with pytest.raises(KeyboardInterrupt):
        sample.main(one, str(world.policy), "base", str(world.data), str(killed))
    sample.main(one, str(world.policy), "base", str(world.data), str(killed))
    assert len(calls) == config.world.benchmark + 1
    pd.testing.assert_frame_equal(read_parquet(whole), read_parquet(killed))


def test_problems_are_spread_evenly_over_the_set():
    assert sample.spread(list(range(9)), 3) == [0, 4, 8]
    assert sample.spread(list(range(4)), 9) == [0, 1, 2, 3]
    assert sample.spread(list(range(4)), 1) == [0]


def test_the_comparison_gives_every_strategy_the_same_problems(config, world, tmp_path):
    problems = [problem.uid for problem in load_problems(world.data / "train.parquet", config.comparison.problems)]
    for strategy in ("independent8", "ibtree12"):
        out = tmp_path / f"{strategy}.parquet"
        compare.main(config, strategy, str(world.policy), str(world.data), str(out))
        frame = read_parquet(out)
        assert list(frame["uid"].unique()) == problems and set(frame["strategy"]) == {strategy}
        assert (frame.groupby("uid").size() == config.samplers[strategy].group_size).all()
        assert (frame["new_tokens"] > 0).all() and (frame["depth"] >= 1).all() and (frame["seed"] == config.seeds[0]).all()
        of_tree = ["root_repicked", "node_repicked", "ib_score"]
        assert (frame.groupby("uid")[of_tree].nunique(dropna=False) == 1).all(axis=None)
        assert frame["root_repicked"].dtype == float and frame["root_repicked"].isna().all() == (strategy == "independent8")
    assert frame["root_repicked"].between(0, 1).all() and frame["node_repicked"].between(0, 1).all()


def test_the_comparison_wants_a_sampler(config, world, tmp_path):
    with pytest.raises(IbtpoError, match="no sampler 'ibtree99'; known: independent8, "):
        compare.main(config, "ibtree99", str(world.policy), str(world.data), str(tmp_path / "trees.parquet"))


def test_rows_of_a_tree_by_hand():
    """Golden values of D.1: root with leaves 1100 and pi .9, .8, .7, .6 has J = 0.75; it was picked in two of three expansions."""
    tree = one_step_tree([1, 1, 0, 0], [0.9, 0.8, 0.7, 0.6])
    tree.expansions += [tree.root, tree.nodes[1], tree.root]
    rows = compare.rows("ibtree12", 3, 5.0, tree)
    assert [row["reward"] for row in rows] == [1, 1, 0, 0] and [row["trajectory"] for row in rows] == [0, 1, 2, 3]
    assert rows[0] == rows[1] | {"trajectory": 0}
    assert rows[0]["ib_score"] == pytest.approx(0.75)
    assert rows[0]["root_repicked"] == pytest.approx(2 / 3) and rows[0]["node_repicked"] == pytest.approx(1 / 3)


def test_the_command_line():
    """Options are those of the functions; `--problems` alone may be left out."""
    given = ["offline", "--policy", "p", "--name", "base", "--data", "d", "--out", "o"]
    assert _parser().parse_args(given).problems == ""
    assert _parser().parse_args([*given, "--problems", "f.parquet"]).problems == "f.parquet"
    for command in (["compare", "--policy", "p", "--data", "d", "--out", "o"], given[:-2]):
        with pytest.raises(SystemExit):
            _parser().parse_args(command)
    assert {"sample", "verdicts", "compare", "offline"} <= set(COMMANDS)


def test_problem_sets_that_cannot_be_used_are_named(tmp_path):
    path = tmp_path / "problems.parquet"
    good = {"uid": ["a", "a"], "family": "gcd", "prompt": "x", "metadata": "{}"}
    for frame, message in [
        (pd.DataFrame(good), "'a' occurs twice"),
        (pd.DataFrame(good).iloc[:0], "no problems"),
        (pd.DataFrame(good).drop(columns="prompt"), "missing column.*prompt"),
    ]:
        write_parquet(frame, path)
        with pytest.raises(IbtpoError, match=message):
            load_problems(path)


def test_the_partial_file_is_repaired_and_read(tmp_path):
    """T24 for the partial samples: a torn unit is drawn again."""
    out = tmp_path / "rows.parquet"
    partial = tmp_path / "rows.parquet.partial.jsonl"
    partial.write_text('{"key": "0", "rows": [{"unit": 0}]}\n{"key": "1", "rows": [{"un')
    drawn = []
    collect(out, [0, 1], str, lambda part: [drawn.append(unit) or [{"unit": unit}] for unit in part], 1)
    assert drawn == [1] and list(read_parquet(out)["unit"]) == [0, 1]
    assert not partial.exists()
