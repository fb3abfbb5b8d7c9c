"""Presets: what is merged, and that every mistake is told in a sentence with key and remedy."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config import ConfigError, Paths, load, slices
from ibtpo.config.load import spelled
from ibtpo.config.methods import ESTIMATORS, Advantage
from ibtpo.config.publish import publish
from ibtpo.report.readme_block import update


def mistake(overrides):
    with pytest.raises(ConfigError) as error:
        load("tiny", overrides)
    return str(error.value)


def preset(folder, **content):
    """A copy of the tiny preset with some keys changed, beside the shared layers."""
    for name in ("methods.yaml", "datasets.yaml", "tiny.yaml"):
        (folder / name).write_text(Path("config", name).read_text())
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"extends": "tiny", **content}))
    return path


@pytest.mark.parametrize("name", [path.stem for path in Path("config").glob("*.yaml") if path.stem not in ("methods", "datasets")])
def test_every_preset_loads(name):
    assert load(name).preset == name


def test_overrides_lie_over_the_preset_and_the_preset_over_the_methods():
    plain = load("tiny")
    changed = load("tiny", {"samplers": {"ibtree12": {"min_room": 9}}})
    assert yaml.safe_load(Path("config/methods.yaml").read_text())["samplers"]["ibtree12"].get("min_room") is None
    assert (plain.samplers["ibtree12"].min_room, changed.samplers["ibtree12"].min_room) == (8, 9)
    assert changed.samplers["ibtree12"].initial == plain.samplers["ibtree12"].initial
    assert changed.samplers["random12"] == plain.samplers["random12"]


def test_a_preset_extends_another(tmp_path):
    path = preset(tmp_path, seeds=[5])
    assert load(path).model_copy(update={"preset": "tiny", "seeds": (0, 1, 2)}) == load("tiny")
    assert load(path).seeds == (5,)


def test_command_line_text_is_read_as_yaml():
    config = load("tiny", {"seeds": ["3", "4"], "train": {"iterations": "7", "learning_rate": "2.0e-5"}})
    assert (config.seeds, config.train.iterations, config.train.learning_rate) == ((3, 4), 7, 2.0e-5)


def test_unknown_key_names_its_place_and_the_nearest_key():
    text = mistake({"methods": {"grpo": {"regulariser": {"klcoef": 0.1}}}})
    assert "'methods.grpo.regulariser.klcoef'" in text and "'methods.grpo.regulariser.kl'" in text
    assert "'train.learning_rate'" in mistake({"train": {"learningrate": 1.0}})
    assert "Known keys there: samples, pass_at" in mistake({"evaluate": {"zzz": 1}})


def test_unknown_key_comes_before_its_consequences(tmp_path):
    methods = {"new": {"titel": "T", "sampler": "ibtree12", "advantage": {"name": "grpo"}}}
    assert re.search(r"unknown key 'methods.new.titel'.*'methods.new.title'.*1 more mistake", mistake({"methods": methods}))


@pytest.mark.parametrize("text, remedy", [("1e-6", "1.0e-6"), ("1e6", "1.0e+6"), ("5E-4", "5.0e-4"), ("1.5e3", "1.5e+3")])
def test_number_as_text_says_how_to_write_it(tmp_path, text, remedy):
    path = preset(tmp_path)
    path.write_text(f"extends: tiny\ntrain: {{learning_rate: {text}}}\n")
    with pytest.raises(ConfigError) as error:
        load(path)
    assert "'train.learning_rate'" in str(error.value) and f"Write {remedy}," in str(error.value)
    assert load("tiny", {"train": {"learning_rate": remedy}}).train.learning_rate == float(text)


def test_quoted_integer_says_how_to_write_it(tmp_path):
    with pytest.raises(ConfigError, match=r"'train.iterations' is the text '7', not a number. Write 7, without quotes"):
        load(preset(tmp_path, train={"iterations": "7"}))


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(derandomize=True, deadline=None)
def test_remedy_for_a_number_as_text_is_that_number(number):
    for text in (repr(number), f"{number:e}", f"{number:.0e}"):
        value = yaml.safe_load(spelled(text))
        assert isinstance(value, int | float) and value == float(text)


@pytest.mark.parametrize(
    "overrides, words",
    [
        ({"evaluate": {"benchmarks": []}}, ["evaluate.benchmarks", "at least 1"]),
        ({"evaluate": {"benchmarks": ["math"]}}, ["evaluate.benchmarks", "'math'", "Known: "]),
        ({"evaluate": {"pass_at": [64]}}, ["evaluate.pass_at", "64", "evaluate.samples"]),
        ({"evaluate": {"runner": "evalscope"}}, ["evaluate.longer", "runner: own", "qwen3-8b-4k"]),
        ({"samplers": {"ibtree12": {"group_size": 13}}}, ["samplers.ibtree12", "= 12", "group_size is 13"]),
        ({"samplers": {"ibtree12": {"initial": None}}}, ["samplers.ibtree12", "initial"]),
        ({"engine": {"kind": "vlm"}}, ["engine.kind", "'vllm' or 'transformers'"]),
        ({"methods": {"grpo": {"sampler": "ibtree"}}}, ["methods.grpo.sampler", "'ibtree'", "ibtree12"]),
        ({"methods": {"base": {"title": "B", "sampler": "ibtree12", "advantage": {"name": "grpo"}}}}, ["'base'"]),
        ({"tables": {"table1": ["ppo"]}}, ["tables.table1", "'ppo'", "Known: "]),
        ({"figures": {"figure5": ["grpo", "grpo"]}}, ["figures.figure5", "twice"]),
        ({"comparison": {"table6": ["ibtree"]}}, ["comparison.table6", "'ibtree'", "ibtree12"]),
        ({"samplers": {"independent8": {"segment": 9}}}, ["samplers.independent8", "'segment'", "only to: treepo"]),
        ({"samplers": {"treepo12": {"depth": None}}}, ["samplers.treepo12", "needs depth"]),
        ({"samplers": {"treepo12": {"depth": 7}}}, ["samplers.treepo12", "7 segments of 16", "max_tokens = 128"]),
        ({"samplers": {"treepo12": {"delimiter_noise": 0.1}}}, ["samplers.treepo12", "delimiter_noise"]),
        ({"samplers": {"eptree12": {"scope": "tree"}}}, ["samplers.eptree12", "*4 trees = 36"]),
        ({"engine": {"kind": "vllm"}}, ["ibtree12-temperature", "engine.kind: transformers"]),
        ({"methods": {"erpo": {"advantage": {"whiten": True}}}}, ["methods.erpo.advantage", "normalises"]),
        (
            {
                "methods": {"treerl": {"sampler": "odd"}},
                "samplers": {
                    "odd": {"name": "random", "group_size": 12, "initial": 4, "iterations": 9, "nodes": 1, "branches": 1, "ratio_power": 2}
                },
            },
            ["methods.treerl", "ratio_power", "treerl"],
        ),
        ({"methods": {"ibtpo": {"advantage": {"local_weight": 0.0, "beta": 4.0}}}}, ["methods.ibtpo", "beta changes nothing"]),
        ({"methods": {"grpo": {"advantage": {"local_weight": 0.5}}}}, ["methods.grpo: local_weight", "only to: ibtpo"]),
        ({"methods": {"treepo": {"advantage": {"variant": "code"}}}}, ["methods.treepo: variant", "only to: treerl"]),
        ({"methods": {"treerl": {"advantage": {"std_ddof": 0}}}}, ["methods.treerl: std_ddof", "only to: grpo, ibtpo, erpo"]),
        ({"offline": {"problems": 65}}, ["offline.problems", "world.validation = 64"]),
        ({"seeds": [0, 0]}, ["seeds", "twice"]),
        ({"seeds": 3}, ["seeds", "[3]"]),
        ({"train": None}, ["train", "keys with values"]),
        ({"train": {"iterations": 0}}, ["train.iterations", "greater than 0"]),
        ({"train": {"prefix_kernel": "flex"}}, ["train.prefix_kernel", "engine.device: cuda"]),
        ({"train": {"iterations": 2.5}}, ["train.iterations", "integer"]),
        ({"train": {"learning_rate": float("inf")}}, ["train.learning_rate", "finite"]),
        ({"train": {"minibatches": 5}}, ["minibatches", "5", "problems_per_iteration = 48"]),
        ({"comparison": {"problems": 10**6}}, ["comparison.problems", "world.train"]),
        ({"sampling": {"max_tokens": 4096}}, ["sampling.max_tokens", "policy.max_positions"]),
        ({"seeds": [0, -1]}, ["seeds.1", "greater than or equal to 0"]),
        ({"policy": {"heads": 3, "kv_heads": 2}}, ["policy", "kv_heads is 2", "heads = 3"]),
        ({"policy": {"steps": 0}}, ["policy.steps", "greater than 0"]),
        ({"world": {"benchmark": 0}}, ["world.benchmark", "greater than 0"]),
        ({"world": {"supervised": -5}}, ["world.supervised", "greater than 0"]),
        ({"world": {"out_of_domain": {"../x": {"family": "gcd"}, "gcd": {}, "leg-counting": {}}}}, ["world", "'../x'", "letters"]),
        ({"world": {"in_domain": {"chain-sum-5": {}, "chain-sum-8": {}, "gcd": {}}}}, ["'gcd'", "in domain and out of domain"]),
    ],
)
def test_mistake_names_key_and_remedy(overrides, words):
    text = mistake(overrides)
    assert all(word in text for word in words), text
    assert "\n" not in text and "pydantic" not in text and len(text) < 300


def test_missing_key(tmp_path):
    path = tmp_path / "bare.yaml"
    path.write_text(Path("config/tiny.yaml").read_text().replace("seeds: [0, 1, 2]", ""))
    (tmp_path / "methods.yaml").write_text(Path("config/methods.yaml").read_text())
    with pytest.raises(ConfigError, match="key 'seeds' is missing"):
        load(path)


def test_files_that_are_not_presets(tmp_path):
    with pytest.raises(ConfigError, match=r"no preset 'tinny'.*Known presets: .*tiny"):
        load("tinny")
    (tmp_path / "methods.yaml").write_text("methods: {}\n")
    (tmp_path / "back.yaml").write_text("extends: there\n")
    for name, text, words in [
        ("list.yaml", "- 1\n", "must hold keys"),
        ("torn.yaml", "seeds: [0,\n", "not valid YAML"),
        ("loop.yaml", "extends: loop\n", "cannot extend itself"),
        ("there.yaml", "extends: back\n", r"cannot extend itself \(there -> back -> there\)"),
        ("lost.yaml", "extends: gone\n", "no preset 'gone'"),
        ("above.yaml", "extends: ../tiny\n", "the name of a preset in the same folder"),
        ("two.yaml", "extends: [a, b]\n", "the name of a preset in the same folder"),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(ConfigError, match=words):
            load(tmp_path / name)


def test_mistake_ends_the_command_at_once_without_a_traceback():
    command = [sys.executable, "-m", "ibtpo", "--set", '{"train": {"klcoef": 1}}', "config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)  # a guard against a hang
    assert done.returncode == 1 and "train.klcoef" in done.stderr and len(done.stderr.splitlines()) == 1


def test_eptree_ranks_by_pi_so_it_may_choose_one():
    assert load("tiny", {"samplers": {"eptree12": {"pi": "temperature"}}}).samplers["eptree12"].pi == "temperature"


def test_every_key_of_an_estimator_belongs_to_one():
    """So that a new key is refused where it means nothing."""
    assert {key for keys in ESTIMATORS.values() for key in keys} == set(Advantage.model_fields) - {"name", "node_weight", "whiten"}
    assert set(ESTIMATORS) == set(get_args(Advantage.model_fields["name"].annotation))


def test_captions_say_what_of_the_preset_was_overridden():
    other = {"artifacts": "fresh", "train": {"micro_batch": 4}, "engine": {"block_size": 9}, "tables": {"table1": ["ibtpo"]}}
    assert load("tiny").title == load("tiny", other).title == "tiny", "these change no number"
    config = load("tiny", {"train": {"iterations": "80"}, "evaluate": {"benchmarks": ["gcd"]}, "seeds": [0, 1, 2]})
    assert config.title == "tiny (changed)"
    assert config.described == 'tiny with train.iterations = 80, evaluate.benchmarks = ["gcd"]', "three seeds are the preset's own"
    same = {"evaluate": {"confidence": 0.95}, "offline": {"beta": 5.0}}
    assert load("tiny", same).title == "tiny", "these are the defaults"
    assert slices.report(load("tiny", {"corpora": {"cleaning": {"ngram": 9}}})) != slices.report(load("tiny")), "a caption names it"
    assert config.model_copy(update={"seeds": (5,)}).described == config.described
    for commit in (lambda: publish(Paths(config)), lambda: update(config)):
        with pytest.raises(ConfigError.__base__, match=r"only the preset itself is committed, and this is tiny with train.iterations = 80"):
            commit()
