"""Problems of a real preset: parts of data sets and of procedural tasks, with system prompts, and no problem twice."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from ibtpo import IbtpoError
from ibtpo.config import load
from ibtpo.corpora.assemble import COLUMNS, build_benchmarks, build_training
from ibtpo.corpora.read import DataError
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.verifiers import verify


def frames(real) -> dict[str, pd.DataFrame]:
    files = [*real.data.glob("*.parquet"), *real.benchmarks.glob("benchmarks/*.parquet")]
    return {file.stem: pd.read_parquet(file) for file in files}


def test_every_file_has_its_problems_in_the_schema(real):
    found = frames(real)
    assert {name: len(frame) for name, frame in found.items()} == {
        **{"train": 12, "validation": 4},
        **dict.fromkeys(real.config.evaluate.benchmarks, 3),
    }
    assert all(list(frame.columns) == COLUMNS and frame["uid"].is_unique for frame in found.values())
    assert json.loads((real.data / "done.json").read_text()) == {
        "train": {"chain-sum-2": 8, "dapo_math_17k": 4},
        "validation": {"chain-sum-2": 4},
    }


def test_training_problems_lie_in_the_order_of_the_preset(real):
    train = frames(real)["train"]
    assert list(train["source"]) == ["chain-sum-2"] * 8 + ["dapo_math_17k"] * 4
    assert list(train["family"]) == ["chain-sum"] * 8 + ["maths"] * 4


def test_parts_are_evenly_spaced(real):
    (whole,) = [pd.read_parquet(path) for path in real.built if path.stem == "math500"]
    assert list(frames(real)["math500"]["uid"]) == [whole["uid"][i] for i in (0, 2, 5)]


def test_only_boxed_answers_have_the_system_prompt(real):
    found = frames(real)
    boxed = {name for name, frame in found.items() if (frame["system"] == real.config.problems.system).all()}
    bare = {name for name, frame in found.items() if (frame["system"] == "").all()}
    assert (boxed, bare) == ({"train", "validation", "math500", "aime24"}, {"gpqa_like", "ifeval", "humaneval"})


def test_the_system_prompt_opens_the_chat(real, model):
    problem = load_problems(real.data / "train.parquet")[-1]
    text = model.tokenizer.decode(Prompter(model.tokenizer, 8).encode(problem))
    system, user = f"<|im_start|>system\n{real.config.problems.system}<|im_end|>\n", f"<|im_start|>user\n{problem.prompt}<|im_end|>\n"
    assert text == system + user + "<|im_start|>assistant\n"


def test_a_task_opens_with_worked_examples(real, model):
    first, *_, last = load_problems(real.data / "train.parquet")
    assert last.examples == ""
    examples = json.loads(first.examples)
    assert len(examples) == 3 and all(verify("chain-sum", json.dumps({"answer": eval(p[:-1])}), r).reward == 1 for p, r in examples)
    text = model.tokenizer.decode(Prompter(model.tokenizer, 8).encode(first))
    turns = [f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n{response}<|im_end|>\n" for prompt, response in examples]
    assert text.endswith("".join(turns) + f"<|im_start|>user\n{first.prompt}<|im_end|>\n<|im_start|>assistant\n")


def test_no_task_problem_is_in_two_splits(real, tmp_path):
    """Also not where the benchmarks are built apart, and whatever number of others there is."""
    config = load("small-real", real.overrides | {"evaluate": {"benchmarks": ["chain-sum-2"]}, "problems": {"train": {"chain-sum-2": 20}}})
    build_training(config, [real.folder / "dapo_math_17k.parquet"], tmp_path)
    build_benchmarks(config, [], tmp_path)
    files = [tmp_path / "train.parquet", tmp_path / "validation.parquet", tmp_path / "benchmarks" / "chain-sum-2.parquet"]
    prompts = [prompt for file in files for prompt in pd.read_parquet(file).query("family == 'chain-sum'")["prompt"]]
    assert len(prompts) == len(set(prompts)) == 20 + 4 + 3
    assert set(prompts) >= set(frames(real)["validation"]["prompt"])


def test_what_is_held_out_is_not_trained_on(real, tmp_path):
    chosen = {"train": {"dapo_math_17k": 0, "chain-sum-2": 1}, "validation": {"dapo_math_17k": 3, "chain-sum-2": 1}}
    build_training(load("small-real", real.overrides | {"problems": chosen}), [real.folder / "dapo_math_17k.parquet"], tmp_path)
    train, validation = (pd.read_parquet(tmp_path / f"{split}.parquet") for split in ("train", "validation"))
    whole = pd.read_parquet(real.folder / "dapo_math_17k.parquet")
    assert len(validation[validation["source"] == "dapo_math_17k"]) == 3 and not set(train["uid"]) & set(validation["uid"])
    assert set(whole["uid"]) == {uid for frame in (train, validation) for uid in frame["uid"] if uid.startswith("dapo")}


def test_more_than_there_is_is_told(real, tmp_path):
    dapo = [real.folder / "dapo_math_17k.parquet"]
    config = load("small-real", real.overrides | {"problems": {"train": {"dapo_math_17k": 400}}})
    with pytest.raises(DataError, match=r"400 problems of dapo_math_17k are asked for, but \d+ are left: ask for fewer, or for 0 \(all\)"):
        build_training(config, dapo, tmp_path)
    config = load("small-real", real.overrides | {"problems": {"train": {"chain-sum-2": 400}}})
    with pytest.raises(IbtpoError, match=r"family 'chain-sum' has only about .*widen its options"):
        build_training(config, dapo, tmp_path)
    with pytest.raises(DataError, match="dapo_math_17k is not among those given: build it first"):
        build_training(real.config, [], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_benchmark_that_is_smaller_is_taken_whole(real, tmp_path):
    """The presets after ERPO take at most 40 problems of a benchmark, and AIME has 30."""
    whole = pd.read_parquet(real.folder / "math500.parquet")
    chosen = {"problems": {"benchmark": len(whole) + 1}, "evaluate": {"benchmarks": ["math500"]}}
    build_benchmarks(load("small-real", real.overrides | chosen), [real.folder / "math500.parquet"], tmp_path)
    assert list(pd.read_parquet(tmp_path / "benchmarks" / "math500.parquet")["uid"]) == list(whole["uid"])
