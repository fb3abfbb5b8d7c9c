"""Training and sampling of a model that was not made here: a Llama with more logits than tokens, on real data sets and tasks."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.config import load
from ibtpo.evaluation import sample, verdicts
from ibtpo.io import read_jsonl
from ibtpo.rollout.problems import load_problems
from ibtpo.training.run import Session, main


def train(real, out, method, **overrides):
    config = load("small-real", real.overrides | overrides)
    main(config, method, 0, str(real.policy), str(real.data), str(out))
    return [row for row in read_jsonl(out / "metrics.jsonl") if "train/loss" in row]


@pytest.mark.parametrize("method", ["grpo", "ibtpo"])
def test_three_iterations_and_a_model_like_the_first(real, tmp_path, method):
    rows = train(real, tmp_path, method)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert all(row["train/tokens"] > 0 and row["train/unscorable"] == 0 for row in rows)
    first, last = (AutoModelForCausalLM.from_pretrained(folder) for folder in (real.policy, tmp_path / "final"))
    assert {name: value.shape for name, value in first.state_dict().items()} == {n: v.shape for n, v in last.state_dict().items()}
    assert last.dtype == torch.float32 and AutoTokenizer.from_pretrained(tmp_path / "final").eos_token == "<|im_end|>"


def test_adapters_in_bfloat16_with_checkpointed_activations(real, tmp_path):
    options = {"lora_rank": 4, "dtype": "bfloat16", "gradient_checkpointing": True, "learning_rate": 1.0e-2, "mask_truncated": True}
    rows = train(real, tmp_path, "ibtpo", train=options | {"iterations": 2})
    assert len(rows) == 2
    first, last = (AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in (real.policy, tmp_path / "final"))
    changed = {name for name in first if not torch.equal(first[name], last[name])}
    assert not any("embed" in name or "norm" in name for name in changed)


def test_activations_that_are_computed_again_change_nothing(real, tmp_path):
    rows = {kept: train(real, tmp_path / str(kept), "grpo", train={"gradient_checkpointing": not kept}) for kept in (True, False)}
    for with_, without in zip(rows[True], rows[False], strict=True):
        assert with_["train/grad_norm"] == pytest.approx(without["train/grad_norm"], rel=1e-4)


def uids(real, out, **options) -> list[str]:
    config = load("small-real", real.overrides | {"train": options})
    session = Session(config, "grpo", 0, real.policy, real.data, out)
    return [row["uid"] for row in session.trainer.train_dataset]


def test_the_given_order_is_that_of_the_file_again_and_again(real, tmp_path):
    problems = [problem.uid for problem in load_problems(real.data / "train.parquet")]
    assert uids(real, tmp_path, iterations=4) == problems + problems[:4]
    assert uids(real, tmp_path, iterations=4, order="shuffled")[:12] != problems


def test_t17_ids_without_a_token_are_told_and_harm_nothing(real, tmp_path):
    """The double samples from logits that no token has, now and then; such a response is wrong and has its status."""
    config = load("small-real", real.overrides | {"sampling": {"top_k": 0, "top_p": 1.0, "temperature": 5.0, "max_tokens": 24}})
    sample.main(config, str(real.policy), "base", str(real.benchmarks), str(tmp_path / "samples.parquet"))
    verdicts.main(config, str(tmp_path / "samples.parquet"), str(real.benchmarks), "base", 0, str(tmp_path / "scores.parquet"))
    samples, scores = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("samples", "scores"))
    unknown = samples["ids"].map(lambda ids: max(ids, default=0) >= 264)
    assert unknown.any() and not unknown.all()
    assert (scores["status"][unknown] == "oov").all() and (scores["reward"][unknown] == 0).all()
    assert not (scores["status"][~unknown] == "oov").any()


def test_every_kind_of_answer_is_sampled_and_scored(real, tmp_path):
    sample.main(real.config, str(real.policy), "base", str(real.benchmarks), str(tmp_path / "samples.parquet"))
    verdicts.main(real.config, str(tmp_path / "samples.parquet"), str(real.benchmarks), "base", 0, str(tmp_path / "scores.parquet"))
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert list(scores.groupby("benchmark", sort=False).size().items()) == [(name, 12) for name in real.config.evaluate.benchmarks]
    assert scores["reward"].notna().all() and not scores["status"].isin(["error", "timeout"]).any()


@pytest.mark.parametrize("command", ["train", "sample"])
def test_t27_without_the_gpu_that_is_asked_for_nothing_starts(real, tmp_path, monkeypatch, command):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    config = load("small-real", real.overrides | {"engine": {"device": "cuda"}})
    with pytest.raises(IbtpoError, match=r"engine.device is cuda but no GPU is visible: run on a node with one, or set"):
        if command == "train":
            main(config, "grpo", 0, str(real.policy), str(real.data), str(tmp_path / "run"))
        else:
            sample.main(config, str(real.policy), "base", str(real.benchmarks), str(tmp_path / "samples.parquet"))
    assert not list(tmp_path.iterdir())
