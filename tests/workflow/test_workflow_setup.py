"""The Makefile's set-up: it happens once, starts again cleanly, and says what is missing. (`make test` itself shows that it works.)"""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mk dir"
    (folder / "envs").mkdir(parents=True)
    for name in ("Makefile", "envs/cpu.lock"):
        shutil.copy(REPOSITORY / name, folder / name)
    return folder


def make(folder, *arguments):
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # these tests run under make themselves
    done = subprocess.run(["make", *arguments], cwd=folder, env=outside, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def stamp(folder):
    return folder / f".venv/ready-{sha256((folder / 'envs/cpu.lock').read_bytes()).hexdigest()}"


def python(folder, answer):
    """A stand-in for an interpreter that fails where the code it is given contains `answer`."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\ncase "$2" in *"{answer}"*) exit 1;; esac\n')
    path.chmod(0o755)
    return f"PYTHON={path}"


def test_finished_set_up_is_not_done_again(folder):
    stamp(folder).parent.mkdir()
    stamp(folder).touch()
    assert make(folder, "env") == (0, "make: Nothing to be done for 'env'.\n")


def test_changed_lock_starts_from_nothing(folder):
    stamp(folder).parent.mkdir()
    stamp(folder).touch()
    with (folder / "envs/cpu.lock").open("a") as lock:
        lock.write("# changed\n")
    assert "rm -rf .venv" in make(folder, "--dry-run", "env")[1]


def test_set_up_that_was_killed_starts_from_nothing(folder):
    (folder / ".venv/half").mkdir(parents=True)
    code, said = make(folder, "env", python(folder, "nothing"))  # passes the checks and makes no environment
    assert code != 0 and "Error" in said
    assert not (folder / ".venv/half").exists() and not stamp(folder).exists()


@pytest.mark.parametrize("answer, words", [("version_info", "Python 3.11 or later is needed"), ("ensurepip", "has no venv module")])
def test_missing_parts_of_python_are_named_and_nothing_is_removed(folder, answer, words):
    (folder / ".venv").mkdir()
    code, said = make(folder, "env", python(folder, answer))
    assert code != 0 and words in said
    assert (folder / ".venv").exists()
    assert "Python 3.11 or later is needed" in make(folder, "env", "PYTHON=/no/python")[1]
