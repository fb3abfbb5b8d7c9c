"""Watching a run from its files alone, whatever state it is in."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from ibtpo import IbtpoError
from ibtpo.__main__ import main as command_line
from ibtpo.watch import found, main
from ibtpo.watch.run import read, sparkline
from ibtpo.watch.screen import frame

TOTAL = 8


def row(step: int) -> dict:
    return {
        "step": step, "train/reward": step / 10, "train/eff_rate": 0.5, "train/covariance": -0.01, "train/tokens": 600.0,
        "train/loss": 0.1, "train/root_repicked": None, "seconds/rollout": 3.0, "seconds/prepare": 1.0, "seconds/update": 2.0,
    }  # fmt: skip


def validation(step: int) -> dict:
    return {"step": step, "validation/accuracy": 0.25 + step / 100, "seconds/validation": 12.0}


def run(folder, done: int = 0, age: float = 0.0, title: str = "IB-TPO"):
    """A run of 8 iterations of which `done` are in the log, last written `age` seconds ago."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"method": {"title": title}, "seed": 2, "train": {"iterations": TOTAL}}))
    if done:
        log = [validation(0), *(row(step) for step in range(1, done + 1)), validation(done)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    for file in folder.iterdir():
        os.utime(file, (time.time() - age,) * 2)
    return folder


def shown(*folders) -> str:
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115  closed with the console
    console.print(frame([read(folder) for folder in folders]))
    return console.export_text()


def test_a_run_in_numbers(tmp_path):
    seen = read(run(tmp_path / "r", done=4))
    assert (seen.title, seen.done, seen.total, seen.state) == ("IB-TPO seed 2", 4, 8, "training")
    assert seen.series("tokens/s") == [200.0] * 4 and seen.series("train/root_repicked") == []
    assert seen.pace == pytest.approx((4 * 6 + 2 * 12) / 4) and seen.remaining == pytest.approx(4 * 12)
    assert seen.elapsed == pytest.approx(48)


def test_the_pace_is_that_of_the_last_iterations(tmp_path):
    folder = run(tmp_path / "r", done=4)
    log = [row(step) | {"seconds/rollout": 1000.0 if step < 13 else 3.0} for step in range(1, 21)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    assert read(folder).pace == pytest.approx(6)


@pytest.mark.parametrize(
    "done, age, state, words",
    [
        (4, 1, "training", "48 s to go"),
        (8, 9999, "finished", "finished"),
        (0, 1, "waiting", "waiting"),
        (4, 1800, "quiet", "no news for 30 min"),
        (0, 1800, "quiet", "no news for 30 min"),
        (4, -500, "training", "news 0 s ago"),
    ],
)
def test_every_state_is_told(tmp_path, done, age, state, words):
    folder = run(tmp_path / "r", done, age)
    assert read(folder).state == state
    assert words in shown(folder) and f"{done}/8 iterations" in shown(folder)


def test_a_slow_run_is_not_taken_for_a_dead_one(tmp_path):
    folder = run(tmp_path / "r", done=4)
    (folder / "metrics.jsonl").write_text(json.dumps(row(1) | {"seconds/update": 600.0}) + "\n")
    os.utime(folder / "metrics.jsonl", (time.time() - 1800,) * 2)
    os.utime(folder / "run.json", (time.time() - 1800,) * 2)
    assert read(folder).state == "training"


def test_the_frame_shows_reward_effective_groups_covariance_and_speed(tmp_path):
    said = shown(run(tmp_path / "r", done=4))
    for name, now in [("reward", "0.400"), ("Eff-Rate", "0.50"), ("Cov", "-0.0100"), ("tokens/s", "200"), ("held-out", "0.290")]:
        assert re.search(rf"^ {re.escape(name)} +{re.escape(now)} ", said, re.MULTILINE), name
    assert "▁▃▆█" in said


def test_several_runs_are_rows(tmp_path):
    run(tmp_path / "runs" / "b", done=8, title="GRPO")
    run(tmp_path / "runs" / "a", done=2)
    (tmp_path / "runs" / "no run").mkdir()
    assert [seen.folder.name for seen in found(tmp_path / "runs")] == ["a", "b"]
    said = shown(tmp_path / "runs" / "a", tmp_path / "runs" / "b")
    assert re.search(r"IB-TPO seed 2 +2/8 .* to go", said) and re.search(r"GRPO seed 2 +8/8 .* finished", said)


def test_titles_are_text_and_no_markup(tmp_path):
    assert "[bold]x[/nonsense] seed 2" in shown(run(tmp_path / "r", done=1, title="[bold]x[/nonsense]"))


def test_watching_changes_nothing_and_a_torn_line_is_no_row(tmp_path):
    folder = run(tmp_path / "r", done=3)
    with open(folder / "metrics.jsonl", "a") as log:
        log.write('{"step": 4, "train/re')
    before = (folder / "metrics.jsonl").read_bytes()
    assert read(folder).done == 3
    assert (folder / "metrics.jsonl").read_bytes() == before, "its writer would be disturbed"
    assert {path.name for path in folder.iterdir()} == {"run.json", "metrics.jsonl"}


def test_what_cannot_be_watched_is_named(tmp_path):
    with pytest.raises(IbtpoError, match="holds no run"):
        main(tmp_path, once=True)
    folder = run(tmp_path / "r", done=1)
    (folder / "metrics.jsonl").write_text("nonsense\n")
    with pytest.raises(IbtpoError, match=r"metrics\.jsonl, line 1 is not JSON"):
        main(folder, once=True)
    for content in ("{", "{}", '{"method": 3}'):
        (folder / "run.json").write_text(content)
        with pytest.raises(IbtpoError, match=r"run\.json does not describe a training run"):
            main(folder, once=True)


def test_once_prints_one_frame_on_the_command_line(tmp_path, capsys):
    folder = run(tmp_path / "r", done=4)
    assert command_line(["watch", str(folder), "--once"]) == 0
    assert "4/8 iterations" in capsys.readouterr().out
    assert command_line(["watch", str(tmp_path / "nowhere"), "--once"]) == 1
    assert "holds no run" in capsys.readouterr().err


def on_a_terminal(*arguments) -> tuple[subprocess.Popen, int]:
    """The command on a terminal of its own; what it shows can be read from the file descriptor."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ibtpo", "watch", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    return process, ours


def read_until(terminal: int, words: str) -> str:
    seen = ""
    try:
        while words not in seen:
            seen += os.read(terminal, 4096).decode(errors="ignore")
    except OSError:  # the other side is closed
        assert words in seen, seen
    return seen


def test_a_terminal_follows_the_run_until_it_is_finished(tmp_path):
    folder = run(tmp_path / "r", done=4)
    process, terminal = on_a_terminal(str(folder), "--every", "0.05")
    read_until(terminal, "4/8 iterations")
    run(tmp_path / "whole", done=8)
    os.replace(tmp_path / "whole" / "metrics.jsonl", folder / "metrics.jsonl")
    read_until(terminal, "8/8 iterations")
    assert process.wait(timeout=60) == 0
    os.close(terminal)


def test_ctrl_c_leaves_quietly(tmp_path):
    process, terminal = on_a_terminal(str(run(tmp_path / "r", done=4)), "--every", "0.05")
    read_until(terminal, "4/8 iterations")
    process.send_signal(signal.SIGINT)
    assert "Traceback" not in read_until(terminal, "\x1b[?25h")  # the cursor is shown again
    assert process.wait(timeout=60) == 0
    os.close(terminal)


def test_sparklines():
    assert sparkline([0, 1, 2, 7], 10) == "▁▂▃█"
    assert sparkline([0.0, 0.0, 7.0, 7.0], 2) == "▁█"
    assert sparkline([3.0, 3.0], 10) == "▁▁" and sparkline([], 10) == ""
