"""Worker processes: hostile answers (T08, T09), death, limits, and many threads on one pool."""

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ibtpo import IbtpoError
from ibtpo.verifiers import worker, workers
from ibtpo.verifiers.verdict import RIGHT, WRONG
from ibtpo.verifiers.workers import Pool

HANGING = ["9^{9^9}", "9^{9^{9^9}}", "2^{2^{2^{2^{2^{2^2}}}}}", "(10^6)!", "\\sum_{n=1}^{10^9} 1/n"]
HARMLESS = ["9**9**9", "{" * 3000 + "}" * 3000]
PAYLOAD = '__import__("os").system("touch pwned")'
MALICIOUS = [
    PAYLOAD,
    f"[[{PAYLOAD}]]",
    '[[__import__("os").getpid()]]',
    f"\\text{{{PAYLOAD}}}",
    f"\\begin{{pmatrix}}{PAYLOAD}\\end{{pmatrix}}",
]


@pytest.fixture(scope="module")
def impatient():
    pool = Pool(1, seconds=0.5)
    yield pool
    pool.close()


def memory(process: int) -> int:
    return (
        next(int(line.split()[1]) for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmPeak")) << 10
    )


@pytest.mark.parametrize("answer", HANGING + HARMLESS, ids=range(7))
def test_a_hanging_answer_is_killed_and_the_next_item_scored(impatient, answer):
    start = time.monotonic()
    verdict = impatient.score("maths", "1", f"\\boxed{{{answer}}}")
    assert verdict.reward == 0 and verdict.status in ("timeout", "parse_failed")
    assert time.monotonic() - start < 10
    assert impatient.score("maths", "\\frac12", "\\boxed{0.5}") == RIGHT
    assert memory(next(iter(impatient._workers)).process.pid) <= 1 << 30


@pytest.mark.parametrize("answer", MALICIOUS, ids=range(5))
def test_a_malicious_answer_does_nothing(pool, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = pool.score("maths", "1", f"\\boxed{{{answer}}}")
    assert verdict.reward == 0 and verdict.status in ("parse_failed", "ok")
    process = next(iter(pool._workers)).process.pid
    assert not Path(f"/proc/{process}/task/{process}/children").read_text()
    assert not list(tmp_path.iterdir())


def test_a_worker_may_not_act_even_if_an_answer_is_evaluated(tmp_path):
    """What T09 fears, without relying on the parsers: code that runs inside a worker."""
    attempts = f"""
import os, subprocess, socket, sys
sys.addaudithook(__import__("ibtpo.verifiers.worker").verifiers.worker._forbid)
for attempt in (
    lambda: os.system("touch pwned"), lambda: os.fork(), lambda: open({str(tmp_path / "x")!r}, "w"), lambda: open("x", "r+"),
    lambda: os.open("x", os.O_WRONLY | os.O_CREAT), lambda: subprocess.run(["true"]), lambda: socket.socket(), lambda: os.remove("y"),
    lambda: os.execv("/bin/true", ["true"]),
):
    try:
        attempt()
    except PermissionError:
        continue
    print("done")
print(open("y").read())
"""
    (tmp_path / "y").write_text("still readable")
    result = subprocess.run([sys.executable, "-c", attempts], cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout == "still readable\n", result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_a_worker_that_dies_is_replaced(impatient):
    assert impatient.score("maths", "1", "\\boxed{2}") == WRONG
    process = next(iter(impatient._workers)).process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert impatient.score("maths", "1", "\\boxed{1}") == RIGHT
    assert [other.process.pid for other in impatient._workers] != [process.pid]


def test_two_workers_that_die_of_an_item_make_that_item_an_error():
    pool, killed = Pool(1, seconds=60), set()
    with ThreadPoolExecutor(1) as thread:
        assert pool.score("maths", "1", "\\boxed{1}") == RIGHT
        verdict = thread.submit(pool.score, "maths", "1", "\\boxed{9^{9^9}}")
        while not verdict.done():
            time.sleep(0.3)
            for other in [other for other in list(pool._workers) if other._ready]:
                other.process.kill()
                killed.add(other)
        assert math.isnan(verdict.result().reward) and verdict.result().status == "error" and len(killed) == 2
    pool.close()


def test_an_interrupted_item_does_not_answer_for_the_next(pool, monkeypatch):
    def interrupted(self, seconds):
        raise KeyboardInterrupt

    assert pool.score("maths", "1", "\\boxed{1}") == RIGHT
    with monkeypatch.context() as patch:
        patch.setattr(workers.Worker, "_line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.score("maths", "1", "\\boxed{1}")
    assert pool.score("maths", "1", "\\boxed{2}") == WRONG


def test_threads_share_a_pool(pool):
    """math-verify's own alarm works on the main thread only; a pool does not care."""
    with ThreadPoolExecutor(8) as threads:
        rewards = list(threads.map(lambda n: pool.score("maths", str(n % 3), f"\\boxed{{{n % 5}}}").reward, range(60)))
    assert rewards == [float(n % 3 == n % 5) for n in range(60)]


def limit(process: int, name: str) -> str:
    return next(line for line in Path(f"/proc/{process}/limits").read_text().splitlines() if line.startswith(name)).split()[3]


def test_memory_is_limited(pool):
    pool.score("maths", "1", "\\boxed{1}")
    assert limit(next(iter(pool._workers)).process.pid, "Max address space") == str(1 << 30)

    def hungry(gold, text):
        raise MemoryError

    assert worker._judge(hungry, "1", "1") == (0.0, "memory")


def test_a_worker_that_cannot_start_is_told(monkeypatch):
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    with pytest.raises(IbtpoError, match="did not start"):
        Pool(1).score("maths", "1", "\\boxed{1}")


def test_a_busy_worker_without_its_master_ends(pool):
    """Its CPU time is bounded anew with each item."""
    pool.score("maths", "1", "\\boxed{1}")
    assert int(limit(next(iter(pool._workers)).process.pid, "Max cpu time")) < 120
