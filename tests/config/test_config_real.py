"""Presets of real models and real data: what is refused, and what is in the names of what they make."""

import pytest

from ibtpo.config import ConfigError, Paths, load

RUN = "ibtpo-seed0"
EVERYTHING = {"data", "benchmarks", "policy", "train", "samples", "corpus"}


def names(overrides=None):
    paths = Paths(load("small-real", overrides))
    return {
        "data": paths.data,
        "benchmarks": paths.benchmarks,
        "policy": paths.policy,
        "train": paths.run(RUN),
        "samples": paths.key(f"samples-{RUN}"),
        "corpus": paths.corpus("dapo_math_17k"),
    }


@pytest.mark.parametrize(
    "overrides, changed",
    [
        ({"policy": {"card": "qwen3-8b-base"}}, {"policy", "train", "samples"}),
        ({"policy": {"eos": "<|endoftext|>"}}, {"policy", "train", "samples"}),
        ({"policy": {"folder": "elsewhere"}}, set()),
        ({"problems": {"train": {"chain-sum-2": 12}}}, {"data", "train", "samples"}),
        ({"problems": {"validation": {"chain-sum-2": 8}}}, {"data", "train", "samples"}),
        ({"problems": {"system": "Think."}}, {"data", "benchmarks", "train", "samples"}),
        ({"evaluate": {"benchmarks": ["math500"]}}, {"benchmarks", "samples"}),
        ({"evaluate": {"samples": 5}}, {"samples"}),
        ({"evaluate": {"runner": "own"}}, {"samples"}),
        ({"corpora": {"data_root": "elsewhere"}}, set()),
        ({"corpora": {"cleaning": {"examples": 1}}}, set()),
        ({"corpora": {"cleaning": {"overlap": 0.5}}}, EVERYTHING - {"policy"}),
        ({"corpora": {"against": ["math500"]}}, {"data", "train", "samples", "corpus"}),
        ({"corpora": {"sources": {"dapo_math_17k": {"title": "another"}}}}, set()),
        ({"corpora": {"sources": {"dapo_math_17k": {"revision": "v2"}}}}, {"data", "train", "samples", "corpus"}),
        ({"corpora": {"sources": {"minerva": {"revision": "v2"}}}}, set()),
        ({"world": {"seed": 8}}, {"data", "train", "samples"}),
        ({"train": {"order": "shuffled"}}, {"train", "samples"}),
        ({"train": {"dtype": "bfloat16"}}, {"train", "samples"}),
        ({"train": {"mask_truncated": True}}, {"train", "samples"}),
        ({"train": {"gradient_checkpointing": True}}, set()),
        ({"engine": {"dtype": "bfloat16"}}, {"train", "samples"}),
        ({"outputs": ["table1", "figure5"]}, set()),
    ],
)
def test_only_what_changes_the_numbers_changes_a_name(overrides, changed):
    before, after = names(), names(overrides)
    assert {kind for kind in before if before[kind] != after[kind]} == changed


def test_the_order_of_training_sets_counts():
    numbers = {"gcd": 8, "dapo_math_17k": 4}
    problems = [{"train": dict(order), "validation": {"gcd": 1}} for order in (numbers.items(), reversed(numbers.items()))]
    few = {"outputs": ["table1"], "train": {"problems_per_iteration": 2, "probe_problems": 0}, "forest": {"policies": []}}
    configs = [load("tiny", {"policy": {"card": "tiny"}, "problems": chosen, **few}) for chosen in problems]
    assert Paths(configs[0]).data != Paths(configs[1]).data


@pytest.mark.parametrize(
    "preset, overrides, words",
    [
        ("small-real", {"policy": {"steps": 3}}, ["policy: 'steps' means nothing for the model of a card"]),
        ("small-real", {"policy": {"card": "qwen"}}, ["no model card 'qwen'", "Known cards: llama-3.1-8b-instruct"]),
        ("small-real", {"policy": {"card": None}}, ["problems: ", "Name a model: policy.card"]),
        ("tiny", {"policy": {"folder": "x"}}, ["policy: 'folder' means nothing without a model", "card: qwen3-8b-base"]),
        ("tiny", {"problems": {"train": {"math500": 1}, "validation": {"math500": 1}}}, ["problems.train", "'math500'", "dapo_math_17k"]),
        ("tiny", {"problems": {"validation": {"math500": 1}}}, ["problems: validation names problems but train does not"]),
        ("tiny", {"evaluate": {"benchmarks": ["math500"]}}, ["evaluate.benchmarks", "'math500'", "Known: "]),
        ("small-real", {"problems": {"validation": {"mth500": 1}}}, ["problems.validation", "'mth500'", "math500"]),
        ("small-real", {"problems": {"train": {"dapo_math_17k": -1}}}, ["problems.train.dapo_math_17k", "greater than or equal to 0"]),
        ("small-real", {"evaluate": {"benchmarks": ["dapo_math_17k"]}}, ["evaluate.benchmarks", "'dapo_math_17k'"]),
        ("small-real", {"train": {"problems_per_iteration": 14}}, ["train.problems_per_iteration is 14", "problems.train = 12"]),
        ("small-real", {"train": {"probe_problems": 5}}, ["train.probe_problems is 5", "problems.validation = 4"]),
        ("small-real", {"outputs": ["table3"]}, ["comparison.problems is 1024", "problems.train = 12"]),
        ("small-real", {"outputs": ["tabel1"]}, ["outputs: 'tabel1' is no table or figure", "table1"]),
        ("small-real", {"world": {"in_domain": {"math500": {"family": "gcd"}}}}, ["'math500' is a task and a data set"]),
        (
            "small-real",
            {"corpora": {"sources": {"math500": {"hubb": 1}}}},
            ["corpora.sources.math500.hubb", "mean 'corpora.sources.math"],
        ),
    ],
)
def test_mistake_names_key_and_remedy(preset, overrides, words):
    with pytest.raises(ConfigError) as error:
        Paths(load(preset, overrides))
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value) and "pydantic" not in str(error.value)


def test_how_many_there_are_is_only_asked_where_it_is_known():
    """All of a data set: its number shows when the data are built."""
    config = load("small-real", {"problems": {"train": {"dapo_math_17k": 0}}, "train": {"problems_per_iteration": 512}})
    assert config.number("train") == ("problems.train", None)
    assert load("small-real", {"problems": {"train": {"chain-sum-2": 0}}, "world": {"train": 9}}).number("train")[1] == 9 + 4


def test_only_the_outputs_that_are_named_are_made():
    assert (Paths(load("small-real")).tables, Paths(load("small-real")).figures) == (["table1"], [])
    assert len(Paths(load("tiny")).tables) > 8
