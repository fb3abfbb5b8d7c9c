"""A job that is killed, fails, or finds what it needs broken: what it keeps, and that the study ends in the same bytes all the same."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psutil
import pytest
from study import ITERATIONS, POLICY
from workspace import TIMEOUT

from ibtpo.io import read_jsonl
from ibtpo.verifiers.sandbox import Job, run
from ibtpo.verifiers.verdict import RIGHT
from ibtpo.verifiers.workers import Pool

CHECKPOINT = "results/smoke/runs/*/checkpoints/checkpoint-4/checksums.json"  # of the second iteration: two optimiser steps each
PARTIAL = f"results/smoke/artifacts/samples-{POLICY}-*.partial.jsonl"


def in_small_chunks() -> None:
    """Samples are written problem by problem, as if there were many more of them."""
    from ibtpo.evaluation import collect

    collect.RESPONSES = 1


def with_engine_that_breaks(death: str, at: int) -> None:
    """The engine raises, or takes its process along, in the middle of its `at`-th step."""
    from ibtpo.engines.transformers import TransformersEngine

    step, count = TransformersEngine.step, iter(range(1, at + 1))

    def broken(self):
        if next(count) == at:
            if death == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return step(self)

    TransformersEngine.step = broken


def with_clock_going_backwards() -> None:
    """Every look at the clock finds it a minute earlier."""
    import tqdm.std

    now, looks = time.time(), iter(range(1 << 30))
    time.time = lambda: now - 60 * next(looks)
    tqdm.std.time = time.time


def lines(study) -> int:
    return sum(path.read_bytes().count(b"\n") for path in study.folder.glob(PARTIAL))


def assert_same(study, undisturbed) -> None:
    study.finish()
    study.check_counts()
    assert study.outcome() == undisturbed.outcome()


def killed_in_training(study, how=signal.SIGKILL):
    """A study whose training was killed after its second iteration."""
    process = study.start(study.command("train"))
    study.project.wait_for(CHECKPOINT)
    os.kill(process.pid, how)
    process.join()
    assert process.exitcode == -how and not (study.run_folder / "done.json").exists()
    return study


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killed_training_goes_on_from_its_last_checkpoint(undisturbed, tmp_path, how):
    study = killed_in_training(undisturbed.copy(tmp_path / "killed"), how)
    lock = study.run_folder.with_name(f"{study.run_folder.name}.lock")
    assert lock.exists(), "the file stays, but it locks nothing without its process"
    study.run(study.command("train"))
    assert not lock.exists()
    assert_same(study, undisturbed)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killed_sampling_keeps_what_it_drew(undisturbed, tmp_path, how):
    study = undisturbed.copy(tmp_path / "killed", keep="train")
    command = study.command("sample")
    process = study.start(command, in_small_chunks)
    while lines(study) < 2:
        assert process.is_alive(), (study.folder / command.log).read_text()
        time.sleep(0.01)
    os.kill(process.pid, how)
    process.join()
    (partial_file,) = study.folder.glob(PARTIAL)
    drawn = read_jsonl(partial_file)
    with partial_file.open("a") as file:
        file.write('{"key": "gcd/torn", "ro')
    study.run(command, partial(_refuse_to_draw_again, [line["key"] for line in drawn]))
    assert_same(study, undisturbed)


def _refuse_to_draw_again(keys: list[str]) -> None:
    from ibtpo.evaluation import sample

    rows = sample.rows

    def checked(benchmark, problem, *rest):
        assert f"{benchmark}/{problem.uid}" not in keys, "drawn twice"
        return rows(benchmark, problem, *rest)

    sample.rows = checked


@pytest.mark.parametrize("name, at", [("train", 40), ("sample", 5)])
@pytest.mark.parametrize("death", ["raises", "killed"])
def test_engine_that_breaks_ends_its_job_and_the_job_goes_on(undisturbed, tmp_path, name, at, death):
    """The engine lives in the job's own process, so there is no worker that could be lost alone."""
    study = undisturbed.copy(tmp_path / "broken", keep="train" if name == "sample" else "")
    said = study.run(study.command(name), partial(with_engine_that_breaks, death, at), fails=True)
    assert death == "killed" or "illegal memory access" in said
    assert_same(study, undisturbed)


@pytest.mark.parametrize("name", ["train", "sample"])
def test_second_process_at_the_same_output_is_refused(undisturbed, tmp_path, name):
    """As after a cluster's driver was killed: its jobs are still running when the next driver submits them again."""
    study = undisturbed.copy(tmp_path / "two", keep="train" if name == "sample" else "")
    first = study.start(study.command(name), in_small_chunks)
    study.project.wait_for("results/smoke/runs/*/metrics.jsonl" if name == "train" else PARTIAL)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        said = study.run(study.command(name), fails=True)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert f"ibtpo {name}: another process is at work on" in said and "Traceback" not in said
    first.join()
    assert first.exitcode == 0
    assert_same(study, undisturbed)


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.pt", "trainer_state.json"])
def test_checkpoint_that_rotted_is_set_aside(undisturbed, tmp_path, file):
    """A byte in its middle changed: no format that it is written in would notice."""
    study = killed_in_training(undisturbed.copy(tmp_path / "rotten"))
    newest = max(study.run_folder.glob("checkpoints/checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    content = bytearray((newest / file).read_bytes())
    content[len(content) // 2] ^= 1
    (newest / file).write_bytes(content)
    said = study.run(study.command("train"))
    assert f"moved to broken-{newest.name}" in said and (newest.parent / f"broken-{newest.name}" / file).exists()
    assert_same(study, undisturbed)


def test_broken_checkpoint_of_the_base_policy_is_set_aside(world, tmp_path, capsys):
    from ibtpo.policy import train

    config = world.config.model_copy(update={"policy": world.config.policy.model_copy(update={"steps": 2})})
    checkpoint = tmp_path / "checkpoints" / "latest.pt"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"PK\x03\x04 no more a checkpoint")
    train.main(config, world.data, tmp_path)
    assert "latest.pt is not usable" in capsys.readouterr().out and (tmp_path / "done.json").exists()


def test_full_disk_in_training(undisturbed, disk):
    """Nothing that was whole is lost, and there is a sentence that says what to do."""
    study = undisturbed.copy(disk.folder / "study")
    process = study.start(study.command("train"))
    study.project.wait_for(CHECKPOINT)
    disk.resize(disk.used + 100_000)
    process.join()
    log = study.folder / study.command("train").log
    assert process.exitcode == 1 and "the disk is full: free some space" in log.read_text()
    disk.resize(1 << 30)
    assert_same(study, undisturbed)


def test_full_disk_in_sampling(undisturbed, disk):
    study = undisturbed.copy(disk.folder / "study", keep="train")
    disk.resize(disk.used + 20_000)
    said = study.run(study.command("sample"), fails=True)
    assert "the disk is full: free some space" in said and lines(study) > 0
    disk.resize(1 << 30)
    assert_same(study, undisturbed)


def test_clock_that_goes_backwards(undisturbed, tmp_path):
    """Nothing is ordered by the clock: what is newer, which checkpoints stay, when a validation is due."""
    study = killed_in_training(undisturbed.copy(tmp_path / "clock"))
    for path in study.run_folder.glob("checkpoints/*"):
        os.utime(path, times=(time.time() + 86400,) * 2)  # written when the clock was a day ahead
    study.run(study.command("train"), with_clock_going_backwards)
    left = {path.name for path in study.run_folder.glob("checkpoints/checkpoint-*")}
    assert left == {f"checkpoint-{2 * iteration}" for iteration in (ITERATIONS - 1, ITERATIONS)}
    study.run(study.command("sample"), with_clock_going_backwards)
    assert_same(study, undisturbed)


def test_verifier_worker_killed_at_an_item_changes_no_verdict():
    """By the out-of-memory killer, say. The item was not to blame, so a new worker gets it."""
    pool = Pool(1, seconds=30)
    assert pool.score("maths", "1", "\\boxed{1}") == RIGHT
    process = next(iter(pool._workers)).process
    os.kill(process.pid, signal.SIGSTOP)  # the next item is in its hands and stays there
    killer = threading.Timer(0.5, process.kill)
    killer.start()
    assert pool.score("maths", "\\frac12", "\\boxed{0.5}") == RIGHT
    killer.join()
    pool.close()


def test_killed_sandbox_changes_no_verdict():
    job = Job("import time; time.sleep(1); print(1)", ({"input": "", "output": "1"},), stdin=True)
    with ThreadPoolExecutor(1) as thread:
        assert run(job) == "passed"
        before = {process.pid for process in psutil.Process().children()}
        outcome = thread.submit(run, job)
        while not (keepers := [process for process in psutil.Process().children() if process.pid not in before]):
            time.sleep(0.01)
        time.sleep(0.3)
        keepers[0].kill()
        assert outcome.result(TIMEOUT) == "passed"
