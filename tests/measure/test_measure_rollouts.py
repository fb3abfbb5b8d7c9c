"""Measured rollouts: which cases there are, what is counted, and that a kill costs one repeat at most."""

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo import IbtpoError
from ibtpo.config import load
from ibtpo.config.measurements import Case
from ibtpo.engines import Request
from ibtpo.engines.scripted import ScriptedEngine
from ibtpo.measure import rollouts
from ibtpo.measure.rollouts import cost, main
from ibtpo.measure.worlds import PolicyWorld, RandomWorld, Uneven
from ibtpo.rollout.scheduler import run

COUNTED = ["tokens", "requests", "kv_peak_tokens", "prefix_queries", "prefix_hits"]  # what is the same on every machine


@pytest.fixture(scope="module")
def config():
    """A small random model under the name `table8`: two samplers at two lengths, trees in both modes."""
    shape = {"hidden_size": 128, "layers": 1, "trees": [2], "max_tokens": [16, 32], "repeats": 2, "prompt": 8}
    return load("smoke", {"measurements": {"table8": {**shape, "modes": ["lockstep", "asynchronous"]}}})


@pytest.fixture(scope="module")
def random_world(config):
    return RandomWorld(config, config.measurements["table8"], 32)


def weights(world):
    return {name: value.clone() for name, value in world.model.state_dict().items()}


def test_every_sampler_in_every_mode_under_every_load():
    config = load("smoke", {"measurements": {"figure8": {"trees": [1, 3]}}})
    assert config.cases("figure8") == [
        Case(sampler, mode, trees, config.sampling.max_tokens)
        for trees in (1, 3)
        for sampler, mode in [
            ("independent8", "asynchronous"),  # one round, so one mode
            ("independent12", "asynchronous"),
            ("ibtree8", "lockstep"),
            ("ibtree8", "asynchronous"),
            ("ibtree12", "lockstep"),
            ("ibtree12", "asynchronous"),
        ]
    ]


def test_the_load_of_a_training_iteration_unless_a_preset_says_otherwise():
    config = load("tiny", {"measurements": {"table8": {"trees": [], "max_tokens": []}}})
    assert {case[2:] for case in config.cases("table8")} == {(config.train.problems_per_iteration, config.sampling.max_tokens)}
    assert load("tiny").measurements["table8-midsize"].max_tokens == (250, 500, 1000)


@pytest.mark.parametrize(
    "overrides, words",
    [
        ({"samplers": ["ibtree13"]}, ["measurements.table8.samplers", "'ibtree13'", "ibtree12"]),
        ({"trees": [4, 4]}, ["measurements.table8", "trees", "twice"]),
        ({"hidden_size": 100}, ["measurements.table8.hidden_size", "128"]),
    ],
)
def test_a_mistake_in_a_measurement_names_the_key(overrides, words):
    with pytest.raises(IbtpoError) as error:
        load("tiny", {"measurements": {"table8": overrides}})
    assert all(word in str(error.value) for word in words), error.value


def test_one_row_a_case_and_repeat(config, tmp_path):
    main(config, "table8", str(tmp_path / "costs.parquet"))
    frame = pd.read_parquet(tmp_path / "costs.parquet")
    cases = config.cases("table8")
    assert [tuple(row) for row in frame[["repeat", *Case._fields]].itertuples(index=False)] == [(r, *c) for r in (0, 1) for c in cases]
    assert (frame["what"] == "table8").all() and (frame["engine"] == "transformers").all() and (frame["block_size"] == 1).all()
    assert (frame[["seconds", "cpu_seconds", "bookkeeping_seconds"]] > 0).all(axis=None)
    assert (frame["bookkeeping_seconds"] < frame["seconds"]).all()
    assert (frame["prefix_hits"] < frame["prefix_queries"]).all()
    assert frame["hardware"].nunique() == 1 and "thread(s)" in frame["hardware"].iloc[0]
    group = frame["sampler"].map(lambda name: config.samplers[name].group_size)
    assert (frame["requests"] == group * frame["trees"]).all()
    whole = group * frame["trees"] * frame["max_tokens"]
    assert (frame["tokens"] <= whole).all()
    assert (frame["kv_peak_tokens"] <= group * frame["trees"] * (8 + frame["max_tokens"])).all()
    modes = frame[frame["sampler"] == "ibtree12"].groupby(["repeat", "max_tokens"])[["tokens", "prefix_queries", "prefix_hits"]].nunique()
    assert (modes == 1).all(axis=None)  # both modes grow the same trees, and lockstep forgets no prefix between its rounds
    assert (frame.groupby(["sampler", "mode", "max_tokens"])["tokens"].nunique() == 2).all()  # two repeats do not


def test_a_tree_starts_with_half_of_the_responses_and_holds_about_half_of_the_cache(config, random_world):
    """Paper, C.4: the peak is that of the first round, where a tree has B0 = 4 requests and independent sampling 8."""
    engine = random_world.engine()
    peak = {
        name: cost(engine, weights(random_world), random_world.tasks(Case(name, "lockstep", 4, 32), 0), "lockstep", 0)["kv_peak_tokens"]
        for name in ("independent8", "ibtree12")
    }
    assert 0.35 < peak["ibtree12"] / peak["independent8"] < 0.65


def test_a_run_does_not_depend_on_what_ran_before(config, random_world):
    """The prefix cache starts empty and the peak is that of the run."""
    engine, cases = random_world.engine(), config.cases("table8")
    first = {case: cost(engine, weights(random_world), random_world.tasks(case, 0), case.mode, 5) for case in cases}
    again = {case: cost(engine, weights(random_world), random_world.tasks(case, 0), case.mode, 5) for case in reversed(cases)}
    assert {case: [first[case][name] for name in COUNTED] for case in cases} == {
        case: [again[case][name] for name in COUNTED] for case in cases
    }


def test_an_engine_that_does_not_count_has_no_figures(random_world):
    engine = random_world.uneven(ScriptedEngine(lambda request: ((3,) * request.max_tokens, (-1.0,) * request.max_tokens, False)))
    figures = cost(engine, {}, random_world.tasks(Case("independent8", "asynchronous", 2, 16), 0), "asynchronous", 0)
    assert figures["tokens"] > 0 and figures["requests"] == 16
    assert [figures[name] for name in ("kv_peak_tokens", "block_size", "prefix_queries", "prefix_hits")] == [None] * 4


def test_a_measurement_may_have_threads_of_its_own(tmp_path, monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "set_num_threads", lambda count: asked.append(count))
    asked = []
    for own in (threads + 1, 0):
        config = load("smoke", {"measurements": {"table8-midsize": {"repeats": 1, "threads": own}}})
        main(config, "table8-midsize", str(tmp_path / f"costs-{own}.parquet"))
    assert asked == [threads + 1]


def test_a_kill_costs_one_repeat(config, tmp_path, monkeypatch):
    out, calls = tmp_path / "costs.parquet", []
    inner = rollouts.rows

    def killed(*arguments):
        calls.append(arguments[-2])
        if calls == [0, 1]:
            raise KeyboardInterrupt
        return inner(*arguments)

    monkeypatch.setattr(rollouts, "rows", killed)
    with pytest.raises(KeyboardInterrupt):
        main(config, "table8", str(out))
    assert not out.exists()
    main(config, "table8", str(out))
    assert calls == [0, 1, 1]
    main(config, "table8", str(tmp_path / "whole.parquet"))
    pd.testing.assert_frame_equal(pd.read_parquet(out)[COUNTED], pd.read_parquet(tmp_path / "whole.parquet")[COUNTED])


def test_an_unknown_measurement_is_refused(config, tmp_path):
    with pytest.raises(IbtpoError, match="no measurement 'table11'; known: table7, "):
        main(config, "table11", str(tmp_path / "costs.parquet"))


class Recorder:
    def submit(self, request):
        self.request = request

    pending = 3


@settings(derandomize=True, deadline=None)
@given(longest=st.integers(2, 60), shortest=st.floats(0.05, 1), seed=st.integers(0, 2**31 - 1), data=st.data())
def test_a_response_is_cut_between_the_shortest_and_the_longest(longest, shortest, seed, data):
    done, recorder = data.draw(st.integers(0, longest - 1)), Recorder()
    engine = Uneven(recorder, prompt=3, shortest=shortest)
    engine.submit(Request("a", (1,) * (3 + done), longest - done, seed))
    asked = recorder.request.max_tokens
    assert 1 <= asked <= longest - done
    assert asked == 1 or done + asked >= round(shortest * longest)
    assert engine.pending == 3


def test_responses_are_of_every_length_equally_often():
    recorder, lengths = Recorder(), []
    for seed in range(71):
        Uneven(recorder, prompt=1, shortest=0.3).submit(Request("a", (1,), 100, seed))
        lengths.append(recorder.request.max_tokens)
    assert sorted(lengths) == list(range(30, 101))


def test_a_policy_meets_problems_in_turn(world):
    measured = PolicyWorld(world.config, world.policy, world.data / "train.parquet")
    number = world.config.world.train
    case = Case("independent8", "asynchronous", number // 2 + 1, world.config.sampling.max_tokens)
    first, second = ([task.uid for task in measured.tasks(case, repeat)] for repeat in (0, 1))
    assert len(set(first)) == len(set(second)) == case.trees
    assert set(first) & set(second) == {first[0], first[1]}  # the last ones, then from the first one again
    with pytest.raises(IbtpoError, match=f"{number + 1} trees at once need as many problems, and there are {number}: lower trees"):
        measured.tasks(case._replace(trees=number + 1), 0)


def test_a_policy_is_measured_under_its_own_name_and_sampling(world, tmp_path):
    main(world.config, "table7", str(tmp_path / "costs.parquet"), str(world.policy), str(world.data))
    frame = pd.read_parquet(tmp_path / "costs.parquet")
    measured = PolicyWorld(world.config, world.policy, world.data / "train.parquet")
    assert (frame["engine"] == world.config.engine.kind).all()
    assert (frame["parameters"] == sum(value.numel() for value in measured.model.parameters())).all()
    row = frame.iloc[0]
    tasks = measured.tasks(Case(*(row[name] for name in Case._fields)), 0)
    engine = measured.engine()
    assert run(tasks, engine, row["mode"], rollouts.stable_seed("measure", 0)).tokens == row["tokens"]
    engine.close()
