"""Processes that can be killed, for verifiers that can hang: math-verify may not be interrupted in any other way.

(Its own alarm works on the main thread of a process only, and not while a C function runs: 9^{9^9} was still going after 50 s.)
A worker that takes too long is killed, one that dies is replaced, and its item is given to the new one, once: the death may have been
somebody else's doing (a kill, memory).
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import select
import subprocess
import sys
import time
from contextlib import suppress
from functools import lru_cache

from ibtpo import IbtpoError
from ibtpo.verifiers.verdict import Verdict

SECONDS, MEMORY = 3.0, 1 << 30
_START_SECONDS = 120.0
TIMEOUT, DIED = Verdict(0.0, "timeout"), Verdict(float("nan"), "error")


class Worker:
    """One process. `score` may be called from one thread at a time."""

    def __init__(self, memory: int, cpu_seconds: float):
        command = [sys.executable, "-P", "-m", "ibtpo.verifiers.worker", str(memory), str(int(cpu_seconds) + 1)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._answers = select.poll()
        self._answers.register(self.process.stdout, select.POLLIN)
        self._ready = False

    def ask(self, item: tuple, seconds: float) -> list | None:
        """The answer to an item; None if there is none after `seconds`. Raises EOFError or OSError if the process is dead."""
        self._wait_until_ready()
        self.process.stdin.write(json.dumps(item).encode() + b"\n")
        self.process.stdin.flush()
        line = self._line(seconds)
        return None if line is None else json.loads(line)

    def _wait_until_ready(self) -> None:
        with suppress(EOFError):
            self._ready = self._ready or self._line(_START_SECONDS) == b"ready\n"
        if not self._ready:
            raise IbtpoError("a verifier process did not start; its message stands above. Is math-verify installed, and memory left?")

    def _line(self, seconds: float) -> bytes | None:
        deadline, line = time.monotonic() + seconds, b""
        while not line.endswith(b"\n"):
            if not self._answers.poll(1000 * max(0.0, deadline - time.monotonic())):
                return None
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise EOFError("a worker died")
            line += part
        return line

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                stream.close()


class Pool:
    """Up to `size` workers, started when needed. Threads may share a pool: each call has a worker to itself."""

    def __init__(self, size: int, seconds: float = SECONDS, memory: int = MEMORY):
        self.seconds, self.memory = seconds, memory
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        self._workers: set[Worker] = set()
        for _ in range(size):
            self._idle.put(None)

    def score(self, kind: str, gold, text: str) -> Verdict:
        """The verdict on one item; `timeout` if it takes more than `seconds`, `error` (reward NaN) if two workers die of it.

        Raises IbtpoError if no worker starts.
        """
        verdict = self._score(kind, gold, text)
        return self._score(kind, gold, text) if verdict is DIED else verdict

    def _score(self, kind: str, gold, text: str) -> Verdict:
        worker, answer = self._idle.get(), None
        try:
            if worker is None or not worker.alive:
                worker = self._replace(worker)
            answer = worker.ask((kind, gold, text), self.seconds)
            return TIMEOUT if answer is None else Verdict(*answer)
        except IbtpoError:
            raise
        except (EOFError, OSError, ValueError):
            return DIED
        finally:
            if answer is None:  # late, dead or interrupted: what it still says would be taken for the next answer
                self._drop(worker)
            self._idle.put(worker if answer else None)

    def close(self) -> None:
        """Ends all workers. The pool can be used again."""
        for worker in list(self._workers):
            self._drop(worker)

    def _replace(self, worker: Worker | None) -> Worker:
        self._drop(worker)
        worker = Worker(self.memory, self.seconds)
        self._workers.add(worker)
        return worker

    def _drop(self, worker: Worker | None) -> None:
        if worker is not None:
            worker.kill()
            self._workers.discard(worker)


@lru_cache(maxsize=1)
def pool() -> Pool:
    """The pool of this process, one worker for each core it may use, at most eight."""
    shared = Pool(min(8, len(os.sched_getaffinity(0))))
    atexit.register(shared.close)
    return shared


os.register_at_fork(after_in_child=pool.cache_clear)  # a forked child has workers of its own
