"""TensorBoard and W&B: off unless asked for, told about at once where they are missing, and they get every row of metrics.jsonl."""

from __future__ import annotations

import os

import pytest
from test_training_run import changed, train
from transformers import TrainerCallback
from transformers.integrations import integration_utils

from ibtpo import IbtpoError
from ibtpo.config import Paths, load
from ibtpo.io import read_jsonl
from ibtpo.training import trackers


class Recorder(TrainerCallback):
    """Stands where transformers has its TensorBoard callback."""

    logs: list[tuple[int, dict]]
    folder: str

    def __init__(self):
        Recorder.logs, Recorder.folder = [], os.environ["TENSORBOARD_LOGGING_DIR"]

    def on_log(self, args, state, control, logs=None, **_):
        Recorder.logs.append((state.global_step, dict(logs)))


def test_a_tracker_that_is_not_installed_is_told_before_anything_starts(world, tmp_path, monkeypatch):
    monkeypatch.setattr(trackers, "get_available_reporting_integrations", lambda: ["wandb"])
    with pytest.raises(IbtpoError, match=r"train\.trackers names tensorboard, which is not installed: pip install tensorboard"):
        train(world, tmp_path / "run", config=changed(world.config, trackers=["wandb", "tensorboard"]))
    assert not (tmp_path / "run").exists()


def test_a_tracker_gets_every_row_and_writes_into_the_run(world, tmp_path, monkeypatch):
    monkeypatch.setattr(trackers, "get_available_reporting_integrations", lambda: ["tensorboard"])
    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "tensorboard", Recorder)
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    monkeypatch.setenv("WANDB_DIR", "mine")
    before = dict(os.environ)
    config = changed(world.config, iterations=1, probe_problems=0, trackers=["tensorboard"])
    out = train(world, tmp_path / "run", config=config)
    assert Recorder.folder == str(out / "tensorboard") and os.environ["WANDB_DIR"] == "mine"
    assert {name for name in before if os.environ.get(name) != before[name]} == set() and "TENSORBOARD_LOGGING_DIR" not in os.environ
    ours = [(step, logs) for step, logs in Recorder.logs if "seconds/validation" in logs or "train/eff_rate" in logs]
    expected = [
        (row["step"] * config.train.minibatches, {name: value for name, value in row.items() if name != "step" and value is not None})
        for row in read_jsonl(out / "metrics.jsonl")
    ]
    assert ours == expected and len(ours) == 3
    assert any("loss" in logs for _, logs in Recorder.logs), "TRL's own logs as well"


def test_without_trackers_none_is_asked(world, tmp_path, monkeypatch):
    monkeypatch.setattr(integration_utils, "INTEGRATION_TO_CALLBACK", {})
    train(world, tmp_path / "run", config=changed(world.config, iterations=1, probe_problems=0))


def test_trackers_and_processes_are_in_no_hash():
    overrides = {"train": {"trackers": ["wandb"], "processes": 2, "parallel": "fsdp"}}
    assert Paths(load("tiny", overrides)).run("ibtpo-seed0") == Paths(load("tiny")).run("ibtpo-seed0")
