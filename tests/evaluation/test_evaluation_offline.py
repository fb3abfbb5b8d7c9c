"""The offline IB-Score: scores of nodes by hand, the probe and the artifact that share them, and what a kill leaves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers import one_step_tree
from transformers import AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.config import load
from ibtpo.engines.scripted import ScriptedEngine
from ibtpo.evaluation import collect as collecting
from ibtpo.evaluation import ib_score, offline
from ibtpo.io import read_parquet
from ibtpo.rollout.problems import Problem, Prompter, load_problems

COLUMNS = ["method", "seed", "uid", "node", "depth", "at_root", "draws", "ib_score", "covariance", "mean_pi", "density", "dead"]
PROBLEM = Problem("p", "chain-sum", "1+1=", json.dumps({"answer": "2", "expression": "1 + 1"}))


@pytest.mark.parametrize(
    ("rewards", "score", "covariance"),
    [((1, 0, 0, 0), 1.0, 0.15), ((0, 0, 0, 1), -0.5, -0.15), ((1, 1, 0, 0), 0.75, 0.1), ((0, 0, 0, 0), 0.25, 0)],
)
def test_golden_values_of_a_node(rewards, score, covariance):
    """Table of golden values in D.1: pi = .9, .8, .7, .6, beta = 5."""
    row = ib_score.scored(one_step_tree(rewards, [0.9, 0.8, 0.7, 0.6]).root, 5.0)
    assert (row["ib_score"], row["covariance"]) == pytest.approx((score, covariance), abs=1e-6)
    assert row["mean_pi"] == pytest.approx(0.75) and row["draws"] == 4
    assert row["density"] == sum(rewards) / 4 and row["dead"] == (sum(rewards) == 0)
    assert row["ib_score"] == pytest.approx(1 - row["mean_pi"] + 5 * row["covariance"], abs=1e-6)  # mean r = 1


def probe(*arguments, **options):
    """What a training reports of its validation problems."""
    return ib_score.Probe.of(ib_score.measure(*arguments, **options))


class TestMeasure:
    """Row 29 of D.2 against a policy written by hand: from the root two steps, '1.' then '2.' or '3.', then the boxed answer."""

    def ask(self, world, answer, surety=lambda text: 0.5, of=probe, **options):
        tokenizer = AutoTokenizer.from_pretrained(world.policy)
        prompter = Prompter(tokenizer, 40)
        prompt = prompter.encode(PROBLEM)
        asked = []

        def reply(request):
            asked.append(tokenizer.decode(request.prompt_ids[len(prompt) :]))
            text = answer(asked[-1], request.seed)
            ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
            return ids, [float(np.log(surety(text)))] * len(ids), True

        return of([PROBLEM], prompter, ScriptedEngine(reply), "asynchronous", 0, beta=5.0, **options), asked

    def test_one_certain_path(self, world):
        """Every rollout is right: r = 1, so J = 1 - mean pi = 0.5 and Cov = 0 at each of the two step nodes."""
        text = ["1.\n\n", "2.\n\n", "\\boxed{2}"]

        def rest(prefix, seed):
            return "".join(text[sum(prefix.count(step) for step in text[:2]) :])

        found, asked = self.ask(world, rest, seeds=2, draws=3)
        assert found.nodes == 2 and found.dead == 0
        assert found.ib_score == pytest.approx(0.5) and found.covariance == pytest.approx(0)
        assert found.root_ib_score == pytest.approx(0.5)
        assert asked.count("1.\n\n") == 3 and asked.count("1.\n\n2.\n\n") == 3 and asked.count("") == 2 + 3
        (rows,), _ = self.ask(world, rest, of=ib_score.measure, seeds=2, draws=3)
        assert [(row["uid"], row["node"], row["depth"], row["at_root"], row["draws"]) for row in rows] == [
            ("p", 0, 0, True, 3),
            ("p", 1, 1, False, 3),
            ("p", 2, 2, False, 3),
        ]
        assert all(row["mean_pi"] == pytest.approx(0.5) and row["density"] == 1 and not row["dead"] for row in rows)

    def test_mixed_rewards_and_confidences(self, world):
        """Right answers (share p of the draws) at 0.9, wrong ones at 0.5: Cov(eta1, eta2) = 0.9 - mean pi, J = 1 - mean pi + 5 Cov."""
        answers = []

        def reply(prefix, seed):
            if not prefix:
                return "1.\n\n\\boxed{2}"
            answers.append(seed % 2)
            return "\\boxed{2}" if seed % 2 else "\\boxed{3}"

        found, _ = self.ask(world, reply, lambda text: 0.9 if text == "\\boxed{2}" else 0.5, seeds=1, draws=8)
        p = np.mean(answers)
        assert len(answers) == 8 and 0 < p < 1
        confidence = 0.9 * p + 0.5 * (1 - p)
        assert found.nodes == 1 and found.covariance == pytest.approx(0.9 - confidence)
        assert found.ib_score == pytest.approx(1 - confidence + 5 * (0.9 - confidence))

    def test_dead_nodes_are_counted(self, world):
        found, _ = self.ask(world, lambda prefix, seed: "" if prefix else "1.\n\n\\boxed{3}", seeds=1, draws=2)
        assert found.nodes == 1 and found.dead == 1 and found.ib_score == pytest.approx(0.5)

    def test_a_policy_without_steps_has_no_step_nodes(self, world):
        found, _ = self.ask(world, lambda prefix, seed: "\\boxed{2}", seeds=2, draws=2)
        assert found.nodes == 0 and np.isnan(found.ib_score) and found.root_ib_score == pytest.approx(0.5)

    def test_room_below_a_node(self, world):
        """A node is left out if fewer than min_room of the 40 tokens are left below it; the root never is."""
        (rows,), _ = self.ask(world, lambda prefix, seed: "1.\n\n\\boxed{2}", of=ib_score.measure, seeds=1, draws=2, min_room=40)
        assert [row["at_root"] for row in rows] == [True]


@pytest.fixture(scope="module")
def config():
    return load("smoke", {"engine": {"kind": "transformers", "mode": "lockstep"}})


@pytest.fixture(scope="module")
def whole(config, world, tmp_path_factory):
    out = tmp_path_factory.mktemp("offline") / "offline.parquet"
    offline.main(config, str(world.policy), "grpo-seed7", str(world.data), str(out))
    return read_parquet(out)


def test_the_artifact(config, world, whole):
    plan = config.offline
    assert list(whole.columns) == COLUMNS
    assert set(whole["method"]) == {"grpo"} and set(whole["seed"]) == {7}
    problems = load_problems(world.data / f"{plan.source}.parquet")
    assert list(whole["uid"].unique()) == [problems[0].uid, problems[-1].uid]  # 2 evenly spaced ones
    assert (whole["draws"] == plan.draws).all() and not whole.duplicated(["uid", "node"]).any()
    assert (whole.groupby("uid")["at_root"].sum() == 1).all()
    assert ((whole["depth"] == 0) == whole["at_root"]).all() and (whole["dead"] == (whole["density"] == 0)).all()
    identity = 1 - whole["mean_pi"] + plan.beta * whole["covariance"]
    np.testing.assert_allclose(whole["ib_score"], identity, atol=1e-6)


def test_a_killed_measurement_goes_on_with_the_rest(config, world, whole, tmp_path, monkeypatch):
    """One problem a chunk and a kill at the second: the same rows as in one piece, and no problem measured twice."""
    measure, seen, out = offline.measure, [], tmp_path / "offline.parquet"

    def killed(part, *arguments, **options):
        seen.extend(problem.uid for problem in part)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return measure(part, *arguments, **options)

    monkeypatch.setattr(collecting, "RESPONSES", 1)
    monkeypatch.setattr(offline, "measure", killed)
    with pytest.raises(KeyboardInterrupt):
        offline.main(config, str(world.policy), "grpo-seed7", str(world.data), str(out))
    assert not out.exists()
    offline.main(config, str(world.policy), "grpo-seed7", str(world.data), str(out))
    assert seen == [*whole["uid"].unique()[:1], *whole["uid"].unique()[1:], *whole["uid"].unique()[1:]]
    pd.testing.assert_frame_equal(read_parquet(out), whole)


def test_problems_of_a_file(config, world, tmp_path):
    out, file = tmp_path / "offline.parquet", world.data / "benchmarks" / "gcd.parquet"
    offline.main(config, str(world.policy), "base", "no-such-folder", str(out), str(file))
    frame = read_parquet(out)
    assert set(frame["uid"]) <= {problem.uid for problem in load_problems(file)} and frame["uid"].nunique() == config.offline.problems
    assert set(frame["method"]) == {"base"} and set(frame["seed"]) == {config.seeds[0]}


def test_a_file_without_problems_is_named(config, world, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.parquet"):
        offline.main(config, str(world.policy), "base", str(world.data), str(tmp_path / "o.parquet"), str(tmp_path / "none.parquet"))
    file = tmp_path / "broken.parquet"
    file.write_text("no Parquet")
    with pytest.raises(IbtpoError, match=r"broken\.parquet is not a readable Parquet file"):
        offline.main(config, str(world.policy), "base", str(world.data), str(tmp_path / "o.parquet"), str(file))


@pytest.mark.parametrize(
    ("name", "policy"), [("base", ("base", 4)), ("ibtpo-lambda0.5-seed12", ("ibtpo-lambda0.5", 12)), ("my-seed", ("my-seed", 4))]
)
def test_the_name_of_a_policy(name, policy):
    assert offline.policy_of(name, 4) == policy
