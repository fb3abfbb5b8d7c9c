"""Training of the base policy: what it saves, what it learns, and that a killed run ends in the same weights."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from ibtpo import IbtpoError
from ibtpo.config.models import Policy, World
from ibtpo.policy import train
from ibtpo.policy.examples import IGNORED, Example, batch_indices, collate
from ibtpo.world import build

POLICY = Policy(
    hidden_size=16,
    layers=1,
    heads=2,
    kv_heads=1,
    intermediate_size=32,
    initializer_range=0.1,
    vocabulary=280,
    steps=30,
    batch_size=16,
    learning_rate=0.01,
    warmup_steps=5,
    checkpoint_every=8,
)
SMALL = {"supervised": 200, "train": 2, "validation": 2, "benchmark": 1, "rare_share": 0.05}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    build.main(SimpleNamespace(world=World(**SMALL)), folder)
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    train.main(SimpleNamespace(policy=POLICY), data, folder)
    return folder


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_the_saved_policy_loads_with_the_auto_classes(trained):
    model, tokenizer = AutoModelForCausalLM.from_pretrained(trained), AutoTokenizer.from_pretrained(trained)
    generation = GenerationConfig.from_pretrained(trained)
    assert model.config.model_type == "qwen3"
    assert model.dtype == torch.float32
    assert model.config.vocab_size == len(tokenizer) == POLICY.vocabulary
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert generation.eos_token_id == model.config.eos_token_id == tokenizer.eos_token_id
    assert generation.pad_token_id == tokenizer.pad_token_id != tokenizer.eos_token_id


def test_done_is_there_and_checkpoints_and_temporary_files_are_gone(trained):
    done = json.loads((trained / "done.json").read_text())
    assert done["steps"] == POLICY.steps
    assert done["loss"] < 0.8 * np.log(POLICY.vocabulary)
    assert not [path.name for path in trained.iterdir() if path.name == "checkpoints" or "tmp" in path.name]


@pytest.mark.parametrize("kill_at", [8, 24])
def test_a_killed_run_goes_on_and_ends_in_the_same_weights(kill_at, data, trained, tmp_path, monkeypatch):
    save, resumed = train._save, []

    def save_then_die(path, step, *rest):
        save(path, step, *rest)
        if step == kill_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(train, "_save", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        train.main(SimpleNamespace(policy=POLICY), data, tmp_path)
    assert not (tmp_path / "done.json").exists()

    monkeypatch.setattr(train, "_save", lambda path, step, *rest: resumed.append(step))
    train.main(SimpleNamespace(policy=POLICY), data, tmp_path)
    assert resumed == [step for step in (8, 16, 24) if step > kill_at]
    assert same(weights(tmp_path), weights(trained))


def test_a_checkpoint_that_cannot_be_written_is_named_with_a_remedy(data, tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot write .*latest\.pt: a file is in the place of a folder"):
        train.main(SimpleNamespace(policy=POLICY), data, tmp_path)


def test_a_loss_that_is_not_finite_stops_at_once(data, tmp_path):
    with pytest.raises(IbtpoError, match=r"loss nan in step \d+ of the base policy: lower policy.learning_rate = 1e\+30"):
        train.main(SimpleNamespace(policy=POLICY.model_copy(update={"learning_rate": 1e30})), data, tmp_path)
    assert not (tmp_path / "config.json").exists() and not (tmp_path / "done.json").exists()


def test_the_seed_decides_the_weights(data, trained, tmp_path):
    train.main(SimpleNamespace(policy=POLICY.model_copy(update={"seed": 1})), data, tmp_path)
    assert not same(weights(tmp_path), weights(trained))


def test_a_published_size_has_less_than_a_million_parameters():
    tokenizer = type("Tokenizer", (), {"eos_token_id": 2, "pad_token_id": 0, "__len__": lambda self: Policy().vocabulary})()
    assert train.make_model(Policy(), tokenizer).num_parameters() < 1_000_000


@pytest.mark.parametrize(("change", "message"), [({"max_positions": 20}, "raise it"), ({"batch_size": 500}, "make it smaller")])
def test_impossible_sizes_name_the_key(change, message, data, tmp_path):
    with pytest.raises(ValueError, match=f"policy.{next(iter(change))} is .*{message}"):
        train.main(SimpleNamespace(policy=POLICY.model_copy(update=change)), data, tmp_path)


def test_missing_data_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"sft\.parquet"):
        train.main(SimpleNamespace(policy=POLICY), tmp_path / "nowhere", tmp_path)


@settings(derandomize=True, deadline=None)
@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=80), size=st.integers(1, 9), epoch=st.integers(0, 3))
def test_an_epoch_shows_each_example_at_most_once_in_full_batches(lengths, size, epoch):
    batches = batch_indices(np.array(lengths), size, seed=5, epoch=epoch)
    shown = [i for batch in batches for i in batch]
    assert len(set(shown)) == len(shown) == len(lengths) // size * size
    assert {len(batch) for batch in batches} <= {size}


def test_only_responses_are_in_the_loss():
    ids, labels = collate([Example([5, 6, 7, 8], 2), Example([5, 9], 1)], pad_id=0)
    assert ids.tolist() == [[5, 6, 7, 8], [5, 9, 0, 0]]
    assert labels.tolist() == [[IGNORED, IGNORED, 7, 8], [IGNORED, 9, IGNORED, IGNORED]]


def test_learning_rate_warms_up_and_ends_near_zero():
    policy = Policy(learning_rate=0.01, warmup_steps=10, steps=100)
    rates = [train.learning_rate(policy, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.001)
    assert max(rates) == rates[9] == rates[10] == pytest.approx(0.01)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 1e-5
