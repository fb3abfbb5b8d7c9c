"""The forest artifact of a real engine: complete, the same every time, and its names in the configuration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from transformers import AutoModelForCausalLM

from ibtpo import IbtpoError
from ibtpo.config import ConfigError, Paths, load
from ibtpo.engines import make_engine
from ibtpo.evaluation import forest
from ibtpo.io import read_parquet
from ibtpo.site.forests import trajectories

COLUMNS = [
    "method", "seed", "sampler", "uid", "family", "prompt", "answer", "node", "parent", "round", "text", "ids", "logprobs", "entropies",
    "terminal", "cut", "depth", "pi", "draws", "wins", "count", "density", "ratio", "ib_score", "global_advantage", "local_advantage",
    "history", "trajectories",
]  # fmt: skip


@pytest.fixture(scope="module")
def config():
    return load("smoke", {"engine": {"kind": "transformers", "mode": "lockstep"}})


@pytest.fixture(scope="module")
def whole(config, world, tmp_path_factory):
    out = tmp_path_factory.mktemp("forest") / "forest.parquet"
    forest.main(config, str(world.policy), "base", "ibtree12", str(world.data), str(out))
    return out


def test_the_artifact(config, world, whole):
    frame = read_parquet(whole)
    assert list(frame.columns) == COLUMNS
    assert frame["uid"].nunique() == config.forest.problems and not frame.duplicated(["uid", "node"]).any()
    data = read_parquet(world.data / "validation.parquet").set_index("uid")
    assert (frame["answer"] == frame["uid"].map(data["answer"])).all() and (frame["prompt"] == frame["uid"].map(data["prompt"])).all()
    assert (frame["entropies"].map(len) == frame["ids"].map(len)).all()
    assert frame["entropies"].map(lambda values: all(value >= -1e-6 for value in values)).all()
    found = trajectories(frame)
    assert (found.groupby("uid").size() == config.samplers["ibtree12"].group_size).all()
    assert set(found["reward"]) <= {0.0, 1.0}


def test_samplers_start_from_the_same_rollouts(config, world, whole, tmp_path):
    out = tmp_path / "forest.parquet"
    forest.main(config, str(world.policy), "base", "independent12", str(world.data), str(out))
    first, alone = (trajectories(read_parquet(path)) for path in (whole, out))
    initial = config.samplers["ibtree12"].initial
    for _, rows in first.groupby("uid"):
        others = alone[alone["uid"] == rows["uid"].iloc[0]]
        assert rows["ids"].tolist()[:initial] == others["ids"].tolist()[:initial]
    assert not alone["round"].any()


def test_the_same_bytes_every_time(config, world, whole, tmp_path):
    forest.main(config, str(world.policy), "base", "ibtree12", str(world.data), str(tmp_path / "forest.parquet"))
    assert (tmp_path / "forest.parquet").read_bytes() == whole.read_bytes()


def test_a_killed_job_leaves_no_artifact_and_starts_again(config, world, whole, tmp_path, monkeypatch):
    out = tmp_path / "forest.parquet"

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(forest, "entropies", killed)
        forest.main(config, str(world.policy), "base", "ibtree12", str(world.data), str(out))
    assert not out.exists()
    forest.main(config, str(world.policy), "base", "ibtree12", str(world.data), str(out))
    assert out.read_bytes() == whole.read_bytes()


def test_the_engine_is_closed_before_the_model_is_loaded(config, world, tmp_path, monkeypatch):
    """A GPU has room for one of them."""
    order = []

    def made(*arguments, **options):
        engine = make_engine(*arguments, **options)
        close = engine.close
        engine.close = lambda: (order.append("closed"), close())
        return engine

    def loaded(*arguments, **options):
        order.append("loaded")
        return AutoModelForCausalLM.from_pretrained(*arguments, **options)

    monkeypatch.setattr(forest, "make_engine", made)
    monkeypatch.setattr(forest, "AutoModelForCausalLM", SimpleNamespace(from_pretrained=loaded))
    forest.main(config, str(world.policy), "base", "independent12", str(world.data), str(tmp_path / "forest.parquet"))
    assert order == ["closed", "loaded"]


def test_an_unknown_sampler_is_named(config, world, tmp_path):
    with pytest.raises(IbtpoError, match="no sampler 'oak'"):
        forest.main(config, str(world.policy), "base", "oak", str(world.data), str(tmp_path / "f.parquet"))


def test_names_follow_what_changes_the_trees():
    def names(overrides=None):
        paths = Paths(load("tiny", overrides))
        return {name: paths.key(name) for name in paths.forests}

    before = names()
    assert len(before) == 12 and "forest-base-ibtree12" in before and "forest-ibtpo-seed0-eptree12" in before
    assert set(names({"forest": {"problems": 5}}).values()).isdisjoint(before.values())
    changed = names({"samplers": {"eptree12": {"min_room": 9}}})
    assert {name for name in before if before[name] != changed[name]} == {name for name in before if name.endswith("eptree12")}
    changed = names({"methods": {"grpo": {"regulariser": {"kl": 0.01}}}})
    assert {name for name in before if before[name] != changed[name]} == {name for name in before if "-grpo-" in name}
    assert names({"evaluate": {"samples": 64}}) == before and names({"seeds": [0, 1]}) == before


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"policies": ["bse"]}, ["forest.policies", "'bse'", "base"]),
        ({"samplers": ["ibtree"]}, ["forest.samplers", "'ibtree'", "ibtree12"]),
        ({"samplers": ["ibtree12", "ibtree12"]}, ["forest.samplers", "twice"]),
        ({"problems": 65}, ["forest.problems", "world.validation = 64"]),
        ({"problems": 0}, ["forest.problems", "greater than 0"]),
    ],
)
def test_mistakes_name_key_and_remedy(overrides, words):
    with pytest.raises(ConfigError) as error:
        load("tiny", {"forest": overrides})
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_preset_may_do_without():
    assert not Paths(load("tiny", {"forest": {"policies": []}})).forests
