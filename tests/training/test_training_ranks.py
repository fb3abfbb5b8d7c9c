"""Several processes train as one does: the same minibatches, losses, metrics and weights. Real groups of two, on CPUs through gloo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from helpers import hang, make_tree
from safetensors.torch import load_file
from test_training_run import changed, rows, train
from test_training_trainer import PROBLEMS, G, make, position

from ibtpo import IbtpoError
from ibtpo.advantages import estimate
from ibtpo.config import ConfigError, load
from ibtpo.config.methods import Advantage
from ibtpo.config.models import Config, Train
from ibtpo.training.launch import launcher
from ibtpo.training.metrics import rollout_metrics
from ibtpo.training.run import arguments

WORKER = Path(__file__).with_name("rank_worker.py")
SLOW = {"learning_rate": 1e-4, "iterations": 2}  # a step that rounding does not turn into another one
CASES = {  # name: (method, training values): every loss, every statistic over the batch, every way through the model
    "ibtpo": ("ibtpo", {}),
    "whitened": ("treepo", {"loss": "dapo"}),
    "signals": ("erpo", {}),
    "regularised": ("ibro", {"loss": "bnpo"}),
    "micro-batches": ("entropy", {"micro_batch": 4, "prefix_sharing": False}),
    "lora": ("ibtpo", {"lora_rank": 4}),
}
SHARDED = {"ibtpo": {}, "lora": {"lora_rank": 4}, "tries": {}, "head": {}}
# a process cuts its batch into its own number of tries (of so many tokens), and calls the head once for each, or often (for so many logits)
SMALL = {"tries": {"limit": 60}, "head": {"logits": [10**9, 320 * 7]}}
AVERAGED = {"train/entropy", "train/kl", "train/clip_fraction"}  # by TRL over micro-batches, whatever their lengths


def together(folder: Path, runs: list[dict], parallel: str = "ddp") -> subprocess.Popen:
    """Starts a group of two that trains these runs."""
    file = folder / "runs.json"
    file.write_text(json.dumps(runs))
    return subprocess.Popen(
        [*launcher(Train(iterations=1, processes=2, parallel=parallel)), str(WORKER), str(file)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def settled(world, method: str, **values) -> dict:
    """The configuration of a run. Rewards are a coin's, so that groups differ although the policy can hardly solve anything."""
    raw = changed(world.config, **SLOW, **values).model_dump(mode="json", exclude_unset=True)
    raw["methods"][method]["reward"] = "random"
    return raw


def specification(world, out: Path, method: str, **values) -> dict:
    config = settled(world, method, processes=2, **values)
    return {"config": config, "method": method, "policy": str(world.policy), "data": str(world.data), "out": str(out)}


@pytest.fixture(scope="module")
def pairs(world, tmp_path_factory) -> dict[str, tuple[Path, Path]]:
    """Each case trained by one process and by two."""
    folder = tmp_path_factory.mktemp("ranks")
    runs = [specification(world, folder / "two" / f"{name}-x", method, **values) for name, (method, values) in CASES.items()]
    group = together(folder, runs)
    said = group.communicate(timeout=600)[0]
    assert group.returncode == 0, said
    for name, (method, values) in CASES.items():
        train(world, folder / "one" / f"{name}-x", method, Config.model_validate(settled(world, method, **values)))
    return {name: (folder / "one" / f"{name}-x", folder / "two" / f"{name}-x") for name in CASES}


@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one_does(pairs, case):
    same(*pairs[case], blind=AVERAGED if case == "micro-batches" else frozenset())


def same(one: Path, two: Path, blind: set[str] = frozenset()) -> None:
    """The same log, up to rounding and but for the `blind` metrics, and the same weights."""
    assert [row["step"] for row in rows(one)] == [row["step"] for row in rows(two)], "rank 0 alone writes"
    for ours, theirs in zip(rows(two), rows(one), strict=True):
        assert ours.keys() == theirs.keys()
        common = (theirs.pop("train/shared_ratio", 1.0), ours.pop("train/shared_ratio", 1.0))
        if "train/shared_ratio" not in blind:
            assert common[0] >= common[1] > 0.9 * common[0], "what all prompts begin with is computed once in each process"
        for name in theirs.keys() - blind:
            assert ours[name] == (theirs[name] and pytest.approx(theirs[name], rel=2e-4, abs=2e-6)), (name, theirs["step"])
    ours, theirs = (load_file(run / "final" / "model.safetensors") for run in (two, one))
    assert ours.keys() == theirs.keys()
    for name in theirs:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=2e-6)
    assert json.loads((two / "done.json").read_text()) == json.loads((one / "done.json").read_text())


def test_the_policy_has_moved(pairs, world):
    """Otherwise equal weights would say nothing."""
    base = load_file(world.policy / "model.safetensors")
    for one, _ in pairs.values():
        final = load_file(one / "final" / "model.safetensors")
        assert max((final[name] - base[name]).abs().max().item() for name in base) > 1e-4


@pytest.fixture(scope="module")
def sharded(world, tmp_path_factory) -> Path:
    """Folder of the same runs with the model in shards."""
    folder = tmp_path_factory.mktemp("sharded")
    runs = [specification(world, folder / f"{name}-x", "ibtpo", **values, parallel="fsdp") for name, values in SHARDED.items()]
    runs = [run | SMALL.get(name, {}) for name, run in zip(SHARDED, runs, strict=True)]
    half = specification(world, folder / "half-x", "ibtpo", dtype="bfloat16", parallel="fsdp")
    group = together(folder, [*runs, half], "fsdp")
    said = group.communicate(timeout=600)[0]
    assert group.returncode == 0, said
    return folder


@pytest.mark.parametrize("case", SHARDED)
def test_a_model_in_shards_trains_as_a_whole_one_does(pairs, sharded, case):
    """FSDP 2: shared prefixes, weights for the engine, checkpoints, the final model."""
    same(pairs["ibtpo" if case in SMALL else case][0], sharded / f"{case}-x", blind={"train/shared_ratio"} if case in SMALL else set())


def test_log_probs_of_shards_in_half_precision_are_single(sharded):
    """Else the run stops: FSDP would cast what the model returns, and ratios and KL would be rounding noise."""
    assert (sharded / "half-x" / "done.json").is_file()
    assert all(row["train/kl"] < 0.01 for row in rows(sharded / "half-x") if "train/kl" in row)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_a_killed_group_goes_on_where_it_was(request, world, tmp_path, parallel):
    """SIGKILL of the launcher takes the ranks with it; then all of them start from the same checkpoint."""
    whole = request.getfixturevalue("pairs")["ibtpo"][1] if parallel == "ddp" else request.getfixturevalue("sharded") / "ibtpo-x"
    runs = [specification(world, tmp_path / "ibtpo-x", "ibtpo", parallel=parallel)]
    group = together(tmp_path, runs, parallel)
    try:
        deadline = time.monotonic() + 600
        while not (tmp_path / "ibtpo-x" / "checkpoints" / "checkpoint-2" / "trainer_state.json").exists():
            assert group.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        ranks = psutil.Process(group.pid).children()
        group.kill()
        group.wait()
        while any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks):
            assert time.monotonic() < deadline, "a rank outlived its launcher"
            time.sleep(0.02)
    finally:
        if group.poll() is None:
            os.killpg(group.pid, signal.SIGKILL)
    assert len(ranks) == 2 and not (tmp_path / "ibtpo-x" / "done.json").exists()
    again = together(tmp_path, runs, parallel)
    said = again.communicate(timeout=600)[0]
    assert again.returncode == 0, said
    assert rows(tmp_path / "ibtpo-x") == rows(whole)
    final, expected = (load_file(run / "final" / "model.safetensors") for run in (tmp_path / "ibtpo-x", whole))
    assert all(torch.equal(final[name], expected[name]) for name in expected)


def test_one_process_cannot_train_what_is_meant_for_two(world, tmp_path):
    with pytest.raises(IbtpoError, match=r"train\.processes is 2, but the number of processes started is 1"):
        train(world, tmp_path / "run", config=changed(world.config, processes=2))
    assert not (tmp_path / "run").exists()


def test_a_tree_is_never_split_between_processes(world, tmp_path):
    with pytest.raises(ConfigError, match="processes is 5, which must divide the 24 problems of a minibatch"):
        load("tiny", {"train": {"processes": 5}})
    config = changed(world.config, processes=2, micro_batch=5, prefix_sharing=False)
    with pytest.raises(IbtpoError, match="must divide the 12 sequences of a minibatch in each process"):
        arguments(config, config.methods["ibtpo"], 12, 0, tmp_path)
    trainer = make(world, tmp_path, position)
    uids = [f"p{i}" for i in range(PROBLEMS) for _ in range(G)]
    assert trainer._groups(uids) == [f"p{i}" for i in range(PROBLEMS)]
    with pytest.raises(ValueError, match=rf"process 0 of 1: its {PROBLEMS * G} sequences are not whole groups of {G}"):
        trainer._groups([*uids[1:], "p9"])


def test_a_start_is_one_command_whatever_the_number_of_processes():
    assert launcher(load("tiny").train) == [sys.executable]
    several = launcher(load("tiny", {"train": {"processes": 2, "parallel": "fsdp"}}).train)
    assert several[:3] == [sys.executable, "-m", "accelerate.commands.launch"] and several.count("--num_processes") == 1
    assert Path(several[several.index("--config_file") + 1]).is_file()


@pytest.mark.parametrize("name", ["ddp", "fsdp", "deepspeed-zero3"])
def test_accelerate_reads_the_settings_of_every_way_to_hold_the_model(name):
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    command = [*launcher(Train(iterations=1, processes=8, parallel=name))[3:], "-m", "ibtpo", "train", "--seed", "0"]
    arguments = launch_command_parser().parse_args(command)
    assert (arguments.training_script, arguments.training_script_args) == ("ibtpo", ["train", "--seed", "0"])
    arguments, defaults, _ = _validate_launch_command(arguments)
    assert arguments.num_processes == 8
    chosen = {"ddp": arguments.multi_gpu, "fsdp": arguments.use_fsdp, "deepspeed-zero3": arguments.use_deepspeed}
    assert [kind for kind, on in chosen.items() if on] == [name]
    assert defaults.mixed_precision == "no", "train.dtype decides"


def grove() -> list:
    """Six trees of different sizes and rewards, one of them with a response that could not be scored."""
    rng, trees = np.random.default_rng(0), []
    for number in range(6):
        tree = make_tree(uid=f"q{number}")
        for text in "abcdefg"[: 2 + number % 3]:
            reward = [0.0, 1.0, None][rng.integers(3 if number == 5 else 2)]
            hang(tree, tree.root, f"{text}|{text}{text}$", reward, float(rng.uniform(0.1, 0.9)))
        trees.append(tree)
    return trees


def joined(parts, take):
    """What `take(part, gather)` gives for each part, if `gather` joins the values of the parts. Once to collect, then for good."""
    calls = [[] for _ in parts]
    for part, own in zip(parts, calls, strict=True):
        take(part, lambda values, own=own: own.append(values) or values)
    results = []
    for part in parts:
        whole = iter([np.concatenate(values) for values in zip(*calls, strict=True)])
        results.append(take(part, lambda values, whole=whole: next(whole)))
    return results


def test_advantages_are_whitened_over_all_processes():
    trees, spec = grove(), Advantage(name="treepo", whiten=True)
    halves = joined([trees[:2], trees[2:]], lambda part, gather: estimate(part, spec, gather=gather))
    for ours, theirs in zip([*halves[0], *halves[1]], estimate(trees, spec), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
    alone = estimate(trees[:2], spec)
    assert not np.allclose(np.concatenate(alone), np.concatenate(halves[0])), "the case must show it"


def test_metrics_are_of_all_processes():
    trees = grove()
    whole = rollout_metrics(trees, beta=5.0)
    for found in joined([trees[:1], trees[1:]], lambda part, gather: rollout_metrics(part, 5.0, gather)):
        assert found == pytest.approx(whole, nan_ok=True)
    assert rollout_metrics(trees[:1], beta=5.0)["train/reward"] != whole["train/reward"]
