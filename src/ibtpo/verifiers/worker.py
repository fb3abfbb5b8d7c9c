"""A worker process: scores one item a line until its input ends. Its master (`workers.py`) kills it when an item takes too long.

Protocol: a line of JSON in, [kind, gold, text]; a line of JSON out, the verdict. Item and answer never touch anything but the standard
streams: after the imports an audit hook forbids to write files, to start programs and to open sockets, for whatever sympy's parsers
might be led to evaluate [OURS].
"""

from __future__ import annotations

import io
import json
import logging
import os
import resource
import sys

_FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir", "os.kill", "os.putenv")
_FORBIDDEN_ROOMS = ("subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "urllib.", "ftplib.", "smtplib.")


def main(memory: int, cpu_seconds: int) -> None:
    """Serves standard input. `memory` in bytes bounds the address space; `cpu_seconds` bounds an item should the master be gone."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing that prints may write into the answers; once it runs, it prints nowhere
    logging.disable(logging.CRITICAL)
    from ibtpo.verifiers import ifeval, maths

    judges = {"maths": maths.judge, "maths-gold": lambda gold, _: (0.0, maths.check(gold)), "ifeval": ifeval.judge}
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.addaudithook(_forbid)
    maths.judge("\\frac{1}{2}", "\\boxed{0.5}")  # the first answer takes a fifth of a second longer
    answers.write("ready\n")
    for line in io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8"):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(usage.ru_utime + usage.ru_stime) + cpu_seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        kind, gold, text = json.loads(line)
        answers.write(json.dumps(_judge(judges[kind], gold, text)) + "\n")


def _judge(judge, gold, text) -> tuple[float, str]:
    try:
        return tuple(judge(gold, text))
    except MemoryError:
        return 0.0, "memory"
    except RecursionError:
        return 0.0, "parse_failed"
    except Exception:  # a fault of the verifier on this one item; the reward is unknown
        return float("nan"), "error"


def _forbid(event: str, arguments: tuple) -> None:
    writes = event == "open" and (set(str(arguments[1])) & set("wax+") or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR))
    if writes or event in _FORBIDDEN or event.startswith(_FORBIDDEN_ROOMS):
        raise PermissionError(f"a verifier may not {event}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
