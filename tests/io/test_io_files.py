"""Files are written whole or not at all, torn lines are cut, and an error names the file and the remedy."""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo import io

ROWS = [{"id": 1, "ok": True}, {"id": 2, "ok": True}]
WHOLE = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture
def read_only_folder():
    """A folder in which even this process, root or not, may not write."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    shutil.rmtree(folder)


@contextlib.contextmanager
def small_files():
    """No file may grow beyond 4096 bytes: a write is cut short, as on a full disk. Never while pytest writes its own report."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_torn_last_line_is_cut_and_redone(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(WHOLE + '{"id":3,"o')
    assert io.read_jsonl(path) == ROWS
    assert path.read_text() == WHOLE
    io.append_jsonl({"id": 3, "ok": True}, path)
    assert io.read_jsonl(path) == [*ROWS, {"id": 3, "ok": True}]


def test_append_cuts_a_torn_line_without_a_read_before(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(WHOLE + '{"id":3,"o')
    io.append_jsonl({"id": 3}, path)
    assert [row["id"] for row in io.read_jsonl(path)] == [1, 2, 3]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(cut=st.integers(0, 400_000), texts=st.lists(st.text(), min_size=1, max_size=5), long=st.booleans())
def test_a_file_cut_anywhere_keeps_exactly_its_whole_lines(cut, texts, long):
    rows = [{"n": n, "text": text} for n, text in enumerate(texts)] + [{"n": -1, "text": "x" * 200_000}] * long
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        for row in rows:
            io.append_jsonl(row, path)
        data = path.read_bytes()[:cut]
        path.write_bytes(data)
        assert io.read_jsonl(path) == rows[: data.count(b"\n")]
        io.append_jsonl({"n": 99}, path)
        assert io.read_jsonl(path) == [*rows[: data.count(b"\n")], {"n": 99}]


def test_a_file_of_only_a_torn_line_and_an_empty_file_have_no_rows(tmp_path):
    for text in ("", '{"id":'):
        path = tmp_path / "rows.jsonl"
        path.write_text(text)
        assert io.read_jsonl(path) == []
        assert path.read_text() == ""


def test_a_torn_line_in_a_read_only_folder_is_still_ignored(read_only_folder):
    path = read_only_folder / "rows.jsonl"
    os.seteuid(os.getuid())
    path.parent.chmod(0o755)
    path.write_text(WHOLE + '{"id":3')
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(65534)
    assert io.read_jsonl(path) == ROWS


def test_a_broken_line_in_the_middle_names_file_and_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id":1}\n{"id":\n{"id":3}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2 is not JSON .* remove that line"):
        io.read_jsonl(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"rows\.jsonl"):
        io.read_jsonl(tmp_path / "rows.jsonl")
    with pytest.raises(FileNotFoundError, match=r"a\.parquet.*run the rule"):
        io.read_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize("write", [lambda p: io.write_text("a", p), lambda p: io.append_jsonl({"a": 1}, p)], ids=["write", "append"])
def test_a_read_only_folder_is_named_with_a_remedy(read_only_folder, write):
    path = read_only_folder / "run.json"
    with pytest.raises(PermissionError, match=rf"cannot write {path}: no permission: make the folder writable"):
        write(path)


def test_a_folder_that_cannot_be_made_is_named(read_only_folder):
    with pytest.raises(PermissionError, match=r"cannot write .*/sub/run\.json: no permission"):
        io.write_text("a", read_only_folder / "sub" / "run.json")


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(OSError, match=r"results/run\.json: a file is in the place of a folder"):
        io.write_text("a", tmp_path / "results" / "run.json")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_keeps_the_old_file_and_says_so(tmp_path, monkeypatch, code):
    path = tmp_path / "run.json"
    io.write_text("old", path)

    def full(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=rf"cannot write {path}: the disk .* free some space and run again") as caught:
        io.write_text("new", path)
    assert caught.value.errno == code
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="free some space"):
        io.append_jsonl({"a": 1}, path.with_suffix(".jsonl"))
    assert path.with_suffix(".jsonl").read_text() == ""


def test_a_write_cut_short_leaves_whole_lines_and_the_old_file(tmp_path):
    log, file = tmp_path / "rows.jsonl", tmp_path / "run.json"
    io.append_jsonl({"text": "a" * 3000}, log)
    with small_files(), pytest.raises(OSError, match=rf"cannot write {log}"):
        io.append_jsonl({"text": "b" * 3000}, log)
    assert io.read_jsonl(log) == [{"text": "a" * 3000}]
    io.write_text("old", file)
    with small_files(), pytest.raises(OSError, match=rf"cannot write {file}"):
        io.write_text("n" * 5000, file)
    assert file.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [log, file]


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "run.json"
    code = "import sys; from ibtpo import io\nn = 0\nwhile True:\n    n += 1; io.write_json({'n': n, 'pad': 'x' * 100_000}, sys.argv[1])"
    for delay in (0.0, 0.005, 0.02):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
        while not path.exists() and writer.poll() is None:
            time.sleep(0.001)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert len(json.loads(path.read_text())["pad"]) == 100_000
        path.unlink()


def test_parquet_round_trip_and_equal_bytes(tmp_path):
    frame = pd.DataFrame({"uid": ["a", "b"], "reward": [1.0, np.nan], "tokens": [3, 4]}, index=[7, 9])
    io.write_parquet(frame, tmp_path / "new" / "a.parquet")
    io.write_parquet(frame, tmp_path / "b.parquet")
    pd.testing.assert_frame_equal(io.read_parquet(tmp_path / "b.parquet"), frame.reset_index(drop=True))
    assert (tmp_path / "new" / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_torn_parquet_file_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    io.write_parquet(pd.DataFrame({"a": [1]}), path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=rf"{path} is not a readable Parquet file .*delete it and run"):
        io.read_parquet(path)


def test_json_takes_numpy_values_and_refuses_nan(tmp_path):
    path = tmp_path / "a.json"
    io.write_json({"a": np.float32(0.5), "b": np.arange(2), "c": np.bool_(True), "d": "ß"}, path)
    assert json.loads(path.read_text()) == {"a": 0.5, "b": [0, 1], "c": True, "d": "ß"}
    for value in (float("nan"), np.float64("inf")):
        with pytest.raises(ValueError, match=rf"cannot write {path}: .*leave an undefined value out"):
            io.write_json({"a": value}, path)
        with pytest.raises(ValueError, match="leave an undefined value out"):
            io.append_jsonl({"a": value}, tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


def test_provenance_names_the_run_and_is_json(tmp_path):
    made_with = io.provenance("abc", 3)
    assert (made_with["config_hash"], made_with["seed"]) == ("abc", 3)
    assert made_with["packages"]["numpy"] == np.__version__
    io.write_json(made_with, tmp_path / "run.json")
