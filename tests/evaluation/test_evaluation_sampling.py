"""Sampling benchmarks, scoring, comparing samplers, the IB-Score probe: what they write, and that a kill loses and repeats nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from transformers import AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.engines.scripted import ScriptedEngine
from ibtpo.evaluation import compare, ib_score, sample, score
from ibtpo.evaluation.collect import collect
from ibtpo.io import read_parquet, write_parquet
from ibtpo.rollout.problems import Problem, Prompter, load_problems


@pytest.fixture(scope="module")
def config(smoke):
    raw = smoke.model_dump(mode="json")
    raw["engine"] |= {"kind": "transformers", "mode": "lockstep"}
    return Config.model_validate(raw)


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
            collect(out, range(7), str, self.run(seen, fail_at=4), chunk=2)
        assert not out.exists() and seen == [0, 1, 2, 3]
        with open(tmp_path / "rows.parquet.partial.jsonl", "a") as partial:
            partial.write('{"key": "4", "ro')
        collect(out, range(7), str, self.run(seen), chunk=2)
        assert seen == list(range(7))
        assert list(read_parquet(out)["unit"]) == [unit for unit in range(7) for _ in range(2)]
        assert list(tmp_path.iterdir()) == [out]

    def test_repeated_keys_are_refused(self, tmp_path):
        with pytest.raises(IbtpoError, match="same key"):
            collect(tmp_path / "rows.parquet", [1, 1], str, self.run([]), chunk=2)

    def test_nan_is_stored(self, tmp_path):
        collect(tmp_path / "rows.parquet", [0], str, lambda part: [[{"reward": float("nan")}, {"reward": 1.0}]], chunk=1)
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
    score.main(config, str(samples), str(world.data), "base", -1, str(scores))
    result = read_parquet(scores)
    assert list(result.columns) == score.COLUMNS and len(result) == len(frame)
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
    score.main(config, str(tmp_path / "samples.parquet"), str(world.data), "base", -1, str(tmp_path / "scores.parquet"))
    result = read_parquet(tmp_path / "scores.parquet")
    assert list(result["reward"]) == [1.0, 0.0, 0.0, 0.0]
    assert list(result["status"]) == ["ok", "parse_failed", "parse_failed", "oov"]


def test_samples_of_other_data_are_refused(config, world, tmp_path):
    row = {"benchmark": "chain-sum-5", "uid": "nobody", "family": "chain-sum-5", "sample": 0, "text": "", "tokens": 0}
    write_parquet(pd.DataFrame([row]), tmp_path / "samples.parquet")
    with pytest.raises(IbtpoError, match="nobody"):
        score.main(config, str(tmp_path / "samples.parquet"), str(world.data), "base", -1, str(tmp_path / "scores.parquet"))


def test_the_comparison_gives_every_strategy_the_same_problems(config, world, tmp_path):
    compare.main(config, str(world.policy), str(world.data), str(tmp_path / "samplers.parquet"))
    frame = read_parquet(tmp_path / "samplers.parquet")
    problems = {problem.uid for problem in load_problems(world.data / "train.parquet", config.comparison.problems)}
    for strategy in config.comparison.strategies:
        part = frame[frame["strategy"] == strategy]
        assert set(part["uid"]) == problems
        assert (part.groupby("uid").size() == config.samplers[strategy].group_size).all()
        assert (part["new_tokens"] > 0).all() and (part["depth"] >= 1).all()


class TestProbe:
    """Row 29 of D.2 against a policy written by hand: from the root two steps, '1.' then '2.' or '3.', then the boxed answer."""

    PROBLEM = Problem("p", "chain-sum", "1+1=", json.dumps({"answer": "2", "expression": "1 + 1"}))

    def probe(self, world, answer, surety=lambda text: 0.5, **options):
        tokenizer = AutoTokenizer.from_pretrained(world.policy)
        prompter = Prompter(tokenizer, 40)
        prompt = prompter.encode(self.PROBLEM)
        asked = []

        def reply(request):
            asked.append(tokenizer.decode(request.prompt_ids[len(prompt) :]))
            text = answer(asked[-1], request.seed)
            ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
            return ids, [float(np.log(surety(text)))] * len(ids), True

        return ib_score.probe([self.PROBLEM], prompter, ScriptedEngine(reply), "asynchronous", 0, beta=5.0, **options), asked

    def test_one_certain_path(self, world):
        """Every rollout is right: r = 1, so J = 1 - mean pi = 0.5 and Cov = 0 at each of the two step nodes."""
        text = ["1.\n\n", "2.\n\n", "\\boxed{2}"]

        def rest(prefix, seed):
            return "".join(text[sum(prefix.count(step) for step in text[:2]) :])

        found, asked = self.probe(world, rest, seeds=2, draws=3)
        assert found.nodes == 2 and found.dead == 0
        assert found.ib_score == pytest.approx(0.5) and found.covariance == pytest.approx(0)
        assert found.root_ib_score == pytest.approx(0.5)
        assert asked.count("1.\n\n") == 3 and asked.count("1.\n\n2.\n\n") == 3 and asked.count("") == 2 + 3

    def test_mixed_rewards_and_confidences(self, world):
        """Right answers (share p of the draws) at 0.9, wrong ones at 0.5: Cov(eta1, eta2) = 0.9 - mean pi, J = 1 - mean pi + 5 Cov."""
        answers = []

        def reply(prefix, seed):
            if not prefix:
                return "1.\n\n\\boxed{2}"
            answers.append(seed % 2)
            return "\\boxed{2}" if seed % 2 else "\\boxed{3}"

        found, _ = self.probe(world, reply, lambda text: 0.9 if text == "\\boxed{2}" else 0.5, seeds=1, draws=8)
        p = np.mean(answers)
        assert len(answers) == 8 and 0 < p < 1
        confidence = 0.9 * p + 0.5 * (1 - p)
        assert found.nodes == 1 and found.covariance == pytest.approx(0.9 - confidence)
        assert found.ib_score == pytest.approx(1 - confidence + 5 * (0.9 - confidence))

    def test_dead_nodes_are_counted(self, world):
        found, _ = self.probe(world, lambda prefix, seed: "" if prefix else "1.\n\n\\boxed{3}", seeds=1, draws=2)
        assert found.nodes == 1 and found.dead == 1 and found.ib_score == pytest.approx(0.5)

    def test_a_policy_without_steps_has_no_step_nodes(self, world):
        found, _ = self.probe(world, lambda prefix, seed: "\\boxed{2}", seeds=2, draws=2)
        assert found.nodes == 0 and np.isnan(found.ib_score) and found.root_ib_score == pytest.approx(0.5)


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
    collect(out, [0, 1], str, lambda part: [drawn.append(unit) or [{"unit": unit}] for unit in part], chunk=5)
    assert drawn == [1] and list(read_parquet(out)["unit"]) == [0, 1]
    assert not partial.exists()
