"""`python guard.py COMMAND...` runs a command for as long as its own standard input stays open, then ends it and all its children.

The input is a pipe from the process that wants the command. The kernel closes a pipe however its owner ends, so nothing is left behind
even when that is killed. Standard library only, and run as a file: it starts at once, and needs nothing that its owner might take along.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

GRACE = 10.0  # seconds between asking and killing


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while child.poll() is None and not _closed(0.2):
            pass
    finally:
        code = end(child)
    return code


def end(child: subprocess.Popen) -> int:
    """Asks a child to end, gives it time to clear away what it shares with its own children, and kills what is left of its group."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    return child.wait()


def _closed(seconds: float) -> bool:
    ready, _, _ = select.select([0], [], [], seconds)
    return bool(ready) and not os.read(0, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
