"""Hashes: what changes the numbers changes the name, and nothing else does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config import Paths, load, slices
from ibtpo.config.cards import load_card
from ibtpo.config.measurements import Measurement
from ibtpo.config.methods import Advantage, Regulariser, Sampler
from ibtpo.config.models import Engine, Offline, Policy, Sampling, Train, World
from ibtpo.config.paths import SHOWN
from ibtpo.config.slices import REVISION, report, slice_hash

RUN = "ibtpo-seed1"
RUNS = {"train", "samples", "offline"}
ARTIFACTS = {"data", "policy", "train", "samples", "offline", "trees"}


def names(overrides=None):
    """The names of one artifact of each kind."""
    paths = Paths(load("tiny", overrides))
    keys = {"train": paths.run(RUN), **{kind: paths.key(f"{kind}-{RUN}") for kind in ("samples", "offline")}}
    keys["trees"] = paths.key("trees-ibtree12")
    return {"data": paths.data, "policy": paths.policy, **keys}


@pytest.mark.parametrize(
    "overrides, changed",
    [
        ({"world": {"seed": 8}}, ARTIFACTS),
        ({"policy": {"steps": 9}}, ARTIFACTS - {"data"}),
        ({"sampling": {"temperature": 0.8}}, ARTIFACTS - {"data", "policy"}),
        ({"engine": {"kind": "vllm"}, "tables": {"studies": ["ibtpo"]}}, ARTIFACTS - {"data", "policy"}),
        ({"samplers": {"ibtree12": {"min_room": 9}}}, ARTIFACTS - {"data", "policy"}),
        ({"samplers": {"random12": {"min_room": 9}}}, set()),
        ({"samplers": {"ibtree12": {"density": "hierarchical"}}}, ARTIFACTS - {"data", "policy"}),
        ({"methods": {"ibtpo": {"loss": "dapo"}}}, RUNS),
        ({"methods": {"ibtpo": {"loss": "grpo"}}}, set()),
        ({"methods": {"ibtpo": {"reward": "random"}}}, RUNS),
        ({"methods": {"ibtpo": {"advantage": {"whiten": True}}}}, RUNS),
        ({"offline": {"problems": 9}}, {"offline"}),
        ({"offline": {"draws": 6}}, {"offline"}),
        ({"offline": {"beta": 6.0}}, RUNS | {"trees"}),
        ({"methods": {"ibtpo": {"advantage": {"local_weight": 0.2}}}}, RUNS),
        ({"methods": {"ibtpo": {"regulariser": {"kl": 0.01}}}}, RUNS),
        ({"methods": {"grpo": {"regulariser": {"kl": 0.01}}}}, set()),
        ({"train": {"learning_rate": 1.0e-3}}, RUNS),
        ({"evaluate": {"samples": 64}}, {"samples"}),
        ({"evaluate": {"benchmarks": ["gcd"]}}, {"samples"}),
        ({"comparison": {"problems": 9}}, {"trees"}),
        ({"evaluate": {"confidence": 0.9, "pass_at": [1]}}, set()),
        ({"methods": {"ibtpo": {"title": "another name"}}}, set()),
        ({"train": {"checkpoint_every": 3, "micro_batch": 4, "prefix_sharing": False}}, set()),
        ({"train": {"prefix_kernel": "flex"}, "engine": {"device": "cuda"}}, set()),
        ({"policy": {"checkpoint_every": 3}}, set()),
        ({"engine": {"max_sequences": 3, "kv_cache_gib": 1.0}}, set()),
        ({"resources": {"heavy": {"memory_mb": 9}}}, set()),
        ({"seeds": [0, 1, 2, 3], "tables": {"table1": ["ibtpo"]}, "artifacts": "fresh"}, set()),
    ],
)
def test_only_what_changes_the_numbers_changes_a_name(overrides, changed):
    before, after = names(), names(overrides)
    assert {kind for kind in before if before[kind] != after[kind]} == changed


def test_tables_follow_what_they_show():
    before = slice_hash(report(load("tiny")))
    for overrides in ({"evaluate": {"confidence": 0.9}}, {"methods": {"grpo": {"title": "G"}}}, {"tables": {"table1": ["ibtpo", "grpo"]}}):
        assert slice_hash(report(load("tiny", overrides))) != before
    assert slice_hash(report(load("tiny", {"resources": {"heavy": {"memory_mb": 9}}}))) == before


def test_seeds_and_methods_have_their_own_runs():
    paths = Paths(load("tiny"))
    assert len({paths.run(name) for name in paths.runs}) == len(paths.runs) == 3 * len(load("tiny").methods)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=9
)


@given(st.dictionaries(st.text(), plain))
@settings(derandomize=True, deadline=None)
def test_hash_ignores_the_order_of_keys(content):
    assert slice_hash(content) == slice_hash(dict(reversed(content.items())))
    assert slice_hash({"inner": content}) != slice_hash(content)


def test_a_changed_default_needs_a_new_revision():
    """Values that equal their default are in no hash. So a changed default, or a new key whose default is not the old behaviour, needs a
    higher REVISION; then renew the number here. A new key that keeps the old behaviour only renews the number."""
    models = (World, Policy, Sampling, Engine, Sampler, Advantage, Regulariser, Train, Offline, Measurement)
    defaults = {
        model.__name__: {name: field.get_default() for name, field in model.model_fields.items() if not field.is_required()}
        for model in models
    }
    assert (slice_hash(defaults), REVISION) == (
        "ba2c0cbac6",
        {"data": 3, "policy": 2, "train": 2, "samples": 2, "comparison": 2, "offline": 1}
        | {"forest": 1, "costs": 2, "scores": 0, "problems": 1, "corpora": 1},
    )


def test_hash_is_the_same_everywhere():
    assert slice_hash({"b": [1, 2.5, "ä"], "a": None}) == "8d1935cf31"  # sha256sum of {"a":null,"b":[1,2.5,"\u00e4"]}


def test_published_is_read_only_while_its_hash_fits_and_artifacts_are_cached(tmp_path, monkeypatch):
    cached, fresh, other = (
        Paths(load("tiny", o)) for o in ({}, {"artifacts": "fresh"}, {"train": {"learning_rate": 1.0}, "comparison": {"problems": 9}})
    )
    monkeypatch.chdir(tmp_path)
    for name in (f"scores-{RUN}", "trees-ibtree12"):
        assert cached.artifact(name) == cached.computed(name)
        cached.published(name).parent.mkdir(parents=True, exist_ok=True)
        cached.published(name).write_text("")
        assert cached.artifact(name) == cached.published(name)
        assert fresh.artifact(name) == fresh.computed(name) == cached.computed(name)
        assert other.artifact(name) == other.computed(name) != cached.computed(name)


def test_everything_shown_has_a_place():
    paths = Paths(load("tiny"))
    for name in SHOWN:
        files = [paths.computed(artifact) for artifact in paths.shown(name)]
        assert files and len(set(files)) == len(files)
        assert len(paths.outputs(name)) >= 4 and all(str(path).startswith(str(paths.stem(name))) for path in paths.outputs(name))


def test_a_measurement_follows_the_load_and_the_threads_that_it_is_taken_with():
    """Without trees of its own it takes as many as a training iteration has."""
    keys = [Paths(load("tiny", overrides)).key("costs-table7") for overrides in (
        {}, {"train": {"problems_per_iteration": 24}}, {"resources": {"heavy": {"threads": 2, "memory_mb": 3000, "minutes": 60}}},
        {"resources": {"light": {"threads": 2, "memory_mb": 1000, "minutes": 10}}},
    )]  # fmt: skip
    assert keys[0] == keys[3] and len({*keys}) == 3


def test_other_verifiers_judge_the_same_samples(monkeypatch):
    paths = Paths(load("tiny"))
    before = [paths.key(f"{kind}-{RUN}") for kind in ("samples", "scores", "samples256", "scores256")]
    monkeypatch.setitem(REVISION, "scores", 1)
    after = [paths.key(f"{kind}-{RUN}") for kind in ("samples", "scores", "samples256", "scores256")]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True, False]


def test_what_is_said_of_tasks_changes_no_training_on_data_sets():
    before, after = (Paths(load("qwen3-8b", {"problems": {"benchmark": number}})) for number in (0, 40))
    assert before.data == after.data and before.run("grpo-seed0") == after.run("grpo-seed0")
    assert before.benchmarks != after.benchmarks and before.key("samples-base") != after.key("samples-base")


def test_a_card_may_be_filled_in():
    """What a card only checks changes no name."""
    card = load_card("qwen3-8b-base")
    filled = card.model_copy(update={"template_sha256": "0" * 64, "delimiter_tokens": 7, "delimiters": {}})
    with pytest.MonkeyPatch.context() as patch:
        names = []
        for known in (card, filled, card.model_copy(update={"revision": "other"})):
            patch.setattr(slices, "load_card", lambda _, known=known: known)
            names.append(Paths(load("qwen3-8b")).policy)
    assert names[0] == names[1] != names[2]
