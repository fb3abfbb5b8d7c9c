"""What jobs say of their progress in their logs appears in Snakemake's output."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from contextlib import redirect_stderr

from ibtpo.progress import newest_bar, progress, relay

BAR = "IB-TPO seed 0:  {}%|##    | 4/16 [00:12<00:36,  3.01s/iteration, reward=0.45]"
WORKFLOW = """
from pathlib import Path
from ibtpo.progress import relay

onstart:
    relay(Path("logs"), 0.1)

rule train:
    output: "done"
    log: "logs/train/run a.log"
    shell: "for n in 25 50; do printf '\\\\r{}' $n >> {{log:q}}; sleep 1; done; touch {{output}}"
"""


def test_a_bar_in_a_log_is_found(tmp_path):
    log = tmp_path / "a.log"
    with open(log, "w") as file, redirect_stderr(file):
        with progress("grow", 4, "tree") as bar:
            bar.update(3)
        print("something else, 100% sure", file=file)
    assert newest_bar(log).startswith("grow:  75%|") and newest_bar(log).endswith("]")
    log.write_text("x" * 10000 + "\r" + BAR.format(50) + "\r" + BAR.format(75)[:-9])
    assert newest_bar(log) == BAR.format(50), "a line that is being written is not whole"
    log.write_bytes(b"\xff\xfe no bar")
    assert newest_bar(log) is None and newest_bar(tmp_path / "gone.log") is None


def test_a_bar_that_is_not_to_be_shown_says_nothing(capsys):
    with progress("grow", 4, "tree", shown=False) as bar:
        bar.update(2)
        bar.set_postfix(reward="0.5")
    assert capsys.readouterr().err == ""


def test_only_what_is_new_is_told(tmp_path):
    (tmp_path / "train").mkdir()
    for name in ("old", "new"):
        (tmp_path / "train" / f"{name}.log").write_text(BAR.format(25))
    with redirect_stderr(io.StringIO()) as said:  # capsys would lose what is printed while it is read
        end = relay(tmp_path, 0.05)
        (tmp_path / "train" / "new.log").write_text(BAR.format(25) + "\r" + BAR.format(50))
        deadline = time.monotonic() + 60
        while not said.getvalue().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        end.set()
    assert said.getvalue() == f"train/new: {BAR.format(50)}\n"


def test_it_can_be_turned_off(tmp_path, capsys, monkeypatch):
    before = threading.active_count()
    monkeypatch.setenv("IBTPO_PROGRESS", "0")
    relay(tmp_path)
    assert threading.active_count() == before


def test_snakemake_shows_what_its_jobs_do(tmp_path):
    (tmp_path / "Snakefile").write_text(WORKFLOW.format(BAR.replace("%", "%%").format("%s")))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "rules"]
    said = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stderr
    lines = [line for line in said.stderr.splitlines() if line.startswith("train/run a: ")]
    assert lines == [f"train/run a: {BAR.format(number)}" for number in (25, 50)], said.stderr
