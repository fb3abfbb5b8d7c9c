"""A whole run with a real engine: metrics, resume, LoRA, broken checkpoints, odd policies."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_utils import rotate_checkpoints

from ibtpo import IbtpoError
from ibtpo.config.methods import Regulariser
from ibtpo.config.models import Config
from ibtpo.io import read_jsonl, read_parquet, write_json
from ibtpo.rollout import problems
from ibtpo.training import metrics
from ibtpo.training.checkpoints import SEAL, defect, last_complete
from ibtpo.training.run import Session, arguments, main
from ibtpo.training.trainer import TreeTrainer
from ibtpo.training.weights import policy_state_dict
from ibtpo.verifiers import GoldError

METRICS = {
    "train/reward", "train/eff_rate", "train/entropy", "train/kl", "train/clip_fraction", "train/tokens", "train/depth_mean",
    "train/depth_max", "train/root_repicked", "train/node_repicked", "train/ib_score", "train/covariance", "train/ratio", "train/loss",
    "train/grad_norm", "train/response_length", "train/truncated", "train/unscorable", "seconds/rollout", "seconds/prepare",
    "seconds/update", "train/advantage_std", "train/shared_ratio",
}  # fmt: skip
VALIDATION = {"validation/accuracy", "validation/ib_score", "validation/covariance", "seconds/validation"}
BLIND = {"seconds/rollout", "seconds/prepare", "seconds/update", "seconds/validation"}


def changed(config: Config, **train) -> Config:
    """The smoke preset on the plain engine, which starts at once, with short responses and other training values."""
    raw = config.model_dump(mode="json", exclude_unset=True)
    raw["engine"] |= {"kind": "transformers", "mode": "lockstep"}
    raw["sampling"]["max_tokens"] = 40
    raw["train"] |= {"iterations": 3, "learning_rate": 1e-2, "checkpoint_every": 1, **train}
    return Config.model_validate(raw)


def train(world, out, method="ibtpo", config=None, policy=None):
    main(config or changed(world.config), method, 0, str(policy or world.policy), str(world.data), str(out))
    return out


def rows(out):
    return [{key: value for key, value in row.items() if key not in BLIND} for row in read_jsonl(out / "metrics.jsonl")]


class Killed(BaseException):
    pass


def killed_in(monkeypatch, iteration: int):
    """The process dies after the rollouts of `iteration`."""
    observe = Session.observe

    def die(self, number, trees, measured):
        observe(self, number, trees, measured)
        if number == iteration:
            raise Killed

    monkeypatch.setattr(Session, "observe", die)


@pytest.fixture(scope="module")
def finished(world, tmp_path_factory):
    return train(world, tmp_path_factory.mktemp("run") / "ibtpo-seed0-abc")


def test_every_metric_is_logged_each_iteration_and_validation_at_its_steps(finished):
    log = read_jsonl(finished / "metrics.jsonl")
    training = [row for row in log if "train/loss" in row]
    assert [row["step"] for row in training] == [1, 2, 3]
    assert all(set(row) >= METRICS for row in training)
    validation = [row for row in log if "validation/accuracy" in row]
    assert [row["step"] for row in validation] == [0, 1, 2, 3]
    assert all(set(row) >= VALIDATION for row in validation)
    assert json.loads((finished / "done.json").read_text()) == {"iterations": 3, "optimiser_steps": 6}


def test_the_final_model_loads_and_differs_from_the_base(finished, world):
    base, final = (load_file(folder / "model.safetensors") for folder in (world.policy, finished / "final"))
    assert base.keys() == final.keys()
    assert any(not torch.equal(base[name], final[name]) for name in base)
    AutoModelForCausalLM.from_pretrained(finished / "final")
    assert "ibtpo" not in (finished / "final" / "config.json").read_text(), "how attention was computed is no part of the model"
    assert AutoTokenizer.from_pretrained(finished / "final").eos_token == "<|im_end|>"


def test_a_finished_run_is_never_overwritten(finished, world):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    train(world, finished)
    assert before == {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}


@pytest.mark.parametrize("iteration", [0, 1, 2])
def test_a_killed_run_ends_where_an_undisturbed_one_does(finished, world, tmp_path, monkeypatch, iteration):
    """Optimiser, data order, seeds and log are restored: same metrics, same weights, nothing twice."""
    out = tmp_path / "ibtpo-seed0-abc"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_in(patch, iteration)
        train(world, out)
    with open(out / "metrics.jsonl", "a") as log:
        log.write('{"step": 9, "torn')
    train(world, out)
    assert rows(out) == rows(finished)
    for name, value in load_file(finished / "final" / "model.safetensors").items():
        torch.testing.assert_close(load_file(out / "final" / "model.safetensors")[name], value, rtol=0, atol=0)


def test_a_run_killed_while_it_wrote_the_final_model_trains_no_more(finished, world, tmp_path, monkeypatch):
    out = tmp_path / "ibtpo-seed0-abc"
    shutil.copytree(finished, out)
    (out / "done.json").unlink()
    (out / "final").rename(out / "final.tmp")
    with monkeypatch.context() as patch:
        patch.setattr(Session, "observe", None)  # fails if anything is sampled
        train(world, out)
    assert rows(out) == rows(finished) and (out / "done.json").read_text() == (finished / "done.json").read_text()
    final, again = (load_file(folder / "final" / "model.safetensors") for folder in (finished, out))
    assert final.keys() == again.keys() and all(torch.equal(final[name], again[name]) for name in final)


@pytest.mark.parametrize("lost", ["optimizer.pt", "trainer_state.json", "rng_state.pth", "model.safetensors"])
def test_a_checkpoint_that_lost_a_file_is_set_aside(finished, tmp_path, lost, capsys):
    folder = tmp_path / "checkpoints"
    shutil.copytree(finished / "checkpoints", folder)
    newest, older = folder / "checkpoint-6", folder / "checkpoint-4"
    assert defect(newest) is None and last_complete(folder) == newest
    (newest / lost).unlink()
    assert last_complete(folder) == older
    assert (folder / "broken-checkpoint-6").is_dir() and "not usable" in capsys.readouterr().out
    rotate_checkpoints(output_dir=str(folder), save_total_limit=1)
    assert {path.name for path in folder.glob("*checkpoint*")} == {"checkpoint-4", "broken-checkpoint-6"}


@pytest.mark.parametrize("name", ["optimizer.pt", "model.safetensors", "trainer_state.json"])
def test_a_torn_file_is_a_defect(finished, tmp_path, name):
    shutil.copytree(finished / "checkpoints" / "checkpoint-6", tmp_path / "c")
    content = (tmp_path / "c" / name).read_bytes()
    (tmp_path / "c" / name).write_bytes(content[: len(content) // 2])
    assert defect(tmp_path / "c")


def test_no_checkpoint_is_a_fresh_start(tmp_path):
    assert last_complete(tmp_path / "checkpoints") is None


def test_a_checkpoint_of_several_processes_counts_and_one_with_another_optimiser_is_refused(finished, tmp_path):
    shutil.copytree(finished / "checkpoints" / "checkpoint-6", newest := tmp_path / "checkpoint-6")
    (newest / SEAL).unlink()
    (newest / "rng_state.pth").rename(newest / "rng_state_1.pth")
    assert last_complete(tmp_path) == newest
    (newest / "optimizer.pt").rename(newest / "optimizer.bin")
    assert last_complete(tmp_path, "fsdp") == newest
    with pytest.raises(IbtpoError, match=r"checkpoint-6 was written with train\.parallel: fsdp, not ddp"):
        last_complete(tmp_path)
    assert newest.is_dir()


def session(world, tmp_path, method: str, **train) -> Session:
    return Session(changed(world.config, **train), method, 3, world.policy, world.data, tmp_path)


def test_every_part_of_a_method_reaches_the_trainer(world, tmp_path):
    trainer = session(world, tmp_path, "clip-higher").trainer
    assert (trainer.epsilon_low, trainer.epsilon_high, trainer.weights, trainer.needs_signals) == (0.2, 0.26, (0.0, 0.0), False)
    assert (trainer.loss_type, trainer.beta, trainer.sharing) == ("grpo", 0.001, True)
    assert session(world, tmp_path, "entropy-strong").trainer.weights == (0.003, 0.0)
    assert session(world, tmp_path, "ibro").trainer.weights == (0.0, 0.001)
    erpo = session(world, tmp_path, "erpo", loss="bnpo", prefix_sharing=False).trainer
    assert (erpo.loss_type, erpo.needs_signals, erpo.sharing) == ("dapo", True, False), "the method's loss goes before train.loss"
    assert session(world, tmp_path, "grpo", loss="bnpo").trainer.loss_type == "bnpo"
    narrow = Regulariser(clip=0.1)
    method = world.config.methods["grpo"].model_copy(update={"regulariser": narrow})
    made = arguments(world.config, method, 8, 0, tmp_path)
    assert (made.epsilon, made.epsilon_high) == (0.1, 0.1), "eps_h is eps where nothing else is said (C.1)"


def test_pi_and_reward_reach_engine_and_prompter_and_validation_is_judged_by_the_verifier(world, tmp_path, monkeypatch):
    from ibtpo.training import run

    seen = []
    monkeypatch.setattr(run, "make_engine", lambda *args, pi: seen.append(pi) or SimpleNamespace(load_weights=lambda weights: None))
    assert session(world, tmp_path, "ibtpo").prompter.reward == "verifier"
    session(world, tmp_path, "ibtpo-temperature")
    assert seen == ["raw", "temperature"]
    control = session(world, tmp_path, "format-reward", probe_problems=0)
    assert (control.prompter.reward, control.prompter.seed) == ("format", 3)
    used = []
    monkeypatch.setattr(run, "grow", lambda problems, prompter, *_: used.append(prompter.reward) or [])
    control.trainer.batch = []
    control.grow([], 0)
    with pytest.warns(RuntimeWarning):  # the mean of no rewards
        control.validate()
    assert used == ["format", "verifier"]


def test_erpo_trains_from_its_signals(world, tmp_path):
    out = train(world, tmp_path / "run", method="erpo", config=changed(world.config, iterations=1, probe_problems=0))
    row = next(row for row in read_jsonl(out / "metrics.jsonl") if "train/loss" in row)
    assert set(row) >= METRICS and row["train/shared_ratio"] > 1
    assert json.loads((out / "run.json").read_text())["method"]["advantage"]["name"] == "erpo"


def test_training_leaves_vllm_alone():
    """Importing it takes seconds; TRL would wherever it is installed. What we told TRL holds for its import only."""
    code = "import sys, ibtpo.training.run, trl.import_utils as t; print('vllm' in sys.modules, t.is_vllm_available.__module__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "trl.import_utils"]


def test_lora_trains_adapters_and_saves_a_plain_model(world, tmp_path):
    out = train(world, tmp_path / "lora", config=changed(world.config, lora_rank=4, iterations=1))
    base, final = (load_file(folder / "model.safetensors") for folder in (world.policy, out / "final"))
    assert base.keys() == final.keys(), "no adapter may be left in the file"
    moved = {name.split(".")[-2] for name in base if not torch.equal(base[name], final[name])}
    assert moved == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_a_killed_lora_run_ends_where_an_undisturbed_one_does(world, tmp_path, monkeypatch):
    config = changed(world.config, lora_rank=4, iterations=2)
    whole = train(world, tmp_path / "whole", config=config)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_in(patch, 1)
        train(world, tmp_path / "killed", config=config)
    assert last_complete(tmp_path / "killed" / "checkpoints").name == "checkpoint-2"
    train(world, tmp_path / "killed", config=config)
    assert rows(tmp_path / "killed") == rows(whole)
    final, again = (load_file(tmp_path / name / "final" / "model.safetensors") for name in ("whole", "killed"))
    assert final.keys() == again.keys() and all(torch.equal(final[name], again[name]) for name in final)


def test_lora_weights_for_the_engine_equal_a_merge(world):
    from peft import LoraConfig, get_peft_model

    plain = AutoModelForCausalLM.from_pretrained(world.policy, dtype="float32")
    names = set(plain.state_dict())
    model = get_peft_model(plain, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False))
    ours = policy_state_dict(model)
    merged = model.merge_and_unload().state_dict()
    assert set(ours) == names
    for name in names:
        torch.testing.assert_close(ours[name], merged[name])


@pytest.mark.parametrize("bias, text", [("eos", "never ends"), ("delimiter", "never makes a step")])
def test_policies_that_never_end_or_never_step_train_all_the_same(world, tmp_path, bias, text):
    """A policy whose head cannot produce EOS, or any token with a newline."""
    policy = tmp_path / "policy"
    shutil.copytree(world.policy, policy)
    tokenizer = AutoTokenizer.from_pretrained(policy)
    weights = load_file(policy / "model.safetensors")
    banned = [tokenizer.eos_token_id] if bias == "eos" else [i for i in range(len(tokenizer)) if "\n" in tokenizer.decode([i])]
    weights["model.embed_tokens.weight"][:, 0] = 3.0  # this direction fills the hidden state, so it works like a bias of the head
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    weights["lm_head.weight"][banned, 0] = -3.0
    write_json({**json.loads((policy / "config.json").read_text()), "tie_word_embeddings": False}, policy / "config.json")
    save_file(weights, policy / "model.safetensors", metadata={"format": "pt"})
    out = train(world, tmp_path / "run", config=changed(world.config, iterations=1), policy=policy)
    row = next(row for row in read_jsonl(out / "metrics.jsonl") if "train/loss" in row)
    assert row["train/loss"] is not None
    assert (row["train/truncated"] == 1.0) if bias == "eos" else (row["train/depth_max"] == 1.0), text


def test_the_tidy_artifact_holds_one_observation_a_row(finished, tmp_path):
    metrics.tidy(finished, "ibtpo", 0, tmp_path / "metrics.parquet")
    frame = read_parquet(tmp_path / "metrics.parquet")
    assert list(frame.columns) == ["method", "seed", "step", "metric", "value"]
    assert not frame.duplicated(["step", "metric"]).any()
    assert set(frame["metric"]) >= METRICS - {"train/root_repicked"} | VALIDATION


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_missing_gpu_is_told_before_anything_starts(world, tmp_path):
    raw = world.config.model_dump(mode="json", exclude_unset=True)
    raw["engine"]["device"] = "cuda"
    with pytest.raises(IbtpoError, match="no GPU is visible"):
        train(world, tmp_path / "run", config=Config.model_validate(raw))
    assert not (tmp_path / "run").exists()


def test_an_unknown_method_and_a_missing_policy_are_named(world, tmp_path):
    with pytest.raises(IbtpoError, match="no method 'nosuch'; known: grpo, clip-higher, "):
        train(world, tmp_path / "run", method="nosuch")
    with pytest.raises(IbtpoError, match="holds no model"):
        train(world, tmp_path / "run", policy=tmp_path / "nowhere")


@pytest.mark.parametrize("value", [float("nan"), None])  # TRL writes None for a metric that was NaN throughout
def test_a_metric_that_is_not_finite_stops_before_the_checkpoint(world, tmp_path, monkeypatch, value):
    log = TreeTrainer.log
    monkeypatch.setattr(TreeTrainer, "log", lambda self, logs, *rest: log(self, logs | {"grad_norm": value}, *rest))
    with pytest.raises(FloatingPointError, match="grad_norm of iteration 1 not finite"):
        train(world, tmp_path / "run")
    assert not list((tmp_path / "run" / "checkpoints").glob("checkpoint-*"))


def test_sizes_that_do_not_divide_are_named(world, tmp_path):
    with pytest.raises(IbtpoError, match=r"train.micro_batch = 5 must divide the 24 sequences"):
        train(world, tmp_path / "b", config=changed(world.config, micro_batch=5, prefix_sharing=False))


@pytest.mark.parametrize(("micro_batch", "sequences"), [(1, 12), (12, 12), (23, 12), (0, 24), (99, 24)])
def test_a_micro_batch_keeps_trees_together_that_share_their_prefixes(world, tmp_path, micro_batch, sequences):
    config = changed(world.config, micro_batch=micro_batch)
    assert arguments(config, config.methods["ibtpo"], 12, 0, tmp_path).per_device_train_batch_size == sequences


def test_a_run_does_not_go_on_with_other_problems(world, finished, tmp_path):
    """A data set that was built anew under the same name must not be mixed into a run that began with the old one."""
    out, data = tmp_path / "run", tmp_path / "data"
    shutil.copytree(world.data, data)
    shutil.copytree(finished, out)
    (out / "done.json").unlink()
    read_parquet(data / "train.parquet").iloc[1:].to_parquet(data / "train.parquet")
    with pytest.raises(IbtpoError, match=r"holds a run with other data: give another folder, or move that one away"):
        main(changed(world.config), "ibtpo", 0, str(world.policy), str(data), str(out))
    main(changed(world.config), "ibtpo", 0, str(world.policy), str(world.data), str(out))
    assert (out / "done.json").is_file()


def test_a_folder_is_of_one_run(world, finished, tmp_path):
    """Whether it is finished or not; what changes speed only, and a title, may differ."""
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    arguments = (str(world.policy), str(world.data), str(out))
    for half in (False, True):
        if half:
            (out / "done.json").unlink()
        with pytest.raises(IbtpoError, match="holds a run with other name, method, sampler: give another folder"):
            main(changed(world.config), "grpo", 0, *arguments)
        with pytest.raises(IbtpoError, match="holds a run with other seed"):
            main(changed(world.config), "ibtpo", 5, *arguments)
        with pytest.raises(IbtpoError, match="holds a run with other train"):
            main(changed(world.config, learning_rate=1e-3), "ibtpo", 0, *arguments)
        main(changed(world.config, micro_batch=12), "ibtpo", 0, *arguments)
        assert (out / "done.json").is_file()


def test_a_first_try_that_failed_leaves_no_settings(world, tmp_path):
    with pytest.raises(FileNotFoundError, match="or give the right folder"):
        main(changed(world.config), "ibtpo", 0, str(world.policy), str(tmp_path / "none"), str(tmp_path / "run"))
    train(world, tmp_path / "run", config=changed(world.config, iterations=1))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["train"]["iterations"] == 1


def test_a_negative_seed_is_refused(world, tmp_path):
    with pytest.raises(IbtpoError, match="the seed is -1: give 0 or more"):
        main(changed(world.config), "ibtpo", -1, str(world.policy), str(world.data), str(tmp_path / "run"))


def test_a_run_in_which_nothing_can_be_scored_ends(world, tmp_path, monkeypatch):
    def broken(*_):
        raise GoldError("no gold answer")

    monkeypatch.setattr(problems, "verify", broken)
    with pytest.raises(IbtpoError, match="no response of iteration 0 could be scored"):
        train(world, tmp_path / "run")


def test_what_would_train_something_else_is_refused(world, tmp_path):
    with pytest.raises(IbtpoError, match=r"bnpo is a mean over the tokens of a minibatch, which train.micro_batch would cut"):
        session(world, tmp_path, "grpo", loss="bnpo", micro_batch=4)
    for method in ("erpo", "treepo"):
        with pytest.raises(IbtpoError, match=f"train.mask_truncated: {method} takes statistics over all tokens"):
            session(world, tmp_path, method, mask_truncated=True)


def test_a_curriculum_is_gone_through_to_its_end(world, tmp_path):
    """8 problems of 10 in two batches, then the last two, and from the first one again."""
    training = session(world, tmp_path, "grpo", order="given", iterations=3, problems_per_iteration=4)
    known = list(training.problems)
    training.problems = {uid: training.problems[uid] for uid in known[:10]}
    assert training.dataset()["uid"] == [*known[:10], *known[:2]]
