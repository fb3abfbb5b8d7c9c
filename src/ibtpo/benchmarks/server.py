"""vLLM's OpenAI-compatible server over a local model: started on a free port, waited for, and stopped with whatever it started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ibtpo import IbtpoError, config
from ibtpo.benchmarks import guard

VLLM = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
# No compiler needed, no telemetry, and on a CPU threads that stay where the scheduler put the job.
ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
LAST_LINES = 15


class ServerError(IbtpoError):
    """The server did not come up; the message says where its log is and ends with the last lines of it."""


@contextmanager
def serving(command: list[str], name: str, log: Path, seconds: float, environment: dict[str, str] | None = None) -> Iterator[str]:
    """Runs `command --host --port` and yields the address of its API (".../v1") once it serves the model `name`; stops it at the end.

    log: what the server says is appended there. Raises ServerError if it ends, at the start or later, or does not answer within `seconds`.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    guarded = [sys.executable, guard.__file__, *command, "--host", "127.0.0.1", "--port", str(port)]
    with open(log, "ab") as file:
        process = subprocess.Popen(
            guarded, stdin=subprocess.PIPE, stdout=file, stderr=file, start_new_session=True, env=os.environ | (environment or {})
        )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        _wait(process, url, name, log, seconds)
        try:
            yield url
        except Exception as error:
            if process.poll() is not None:  # what was raised is but a consequence
                raise ServerError(f"the server ended while it was needed. Its log is {log} and ends with:\n{last_lines(log)}") from error
            raise
    finally:
        process.stdin.close()  # the guard ends the server
        process.wait()


def command(model_dir: Path, name: str, settings: config.Config) -> tuple[list[str], dict[str, str]]:
    """vLLM's command line and environment for a policy: its sampling as asked for, never by the model's own generation config."""
    engine = settings.engine
    options = {
        "model": str(model_dir),
        "served-model-name": name,
        "dtype": engine.dtype,
        "max-num-seqs": engine.max_sequences,
        "generation-config": "vllm",
    }
    environment = dict(ENVIRONMENT)
    if engine.device == "cpu":  # eager: compiling needs a C++ compiler; no chunks: vLLM 0.32 fails there for seeded requests
        options |= {"enforce-eager": True, "no-enable-chunked-prefill": True, "kv-cache-memory-bytes": int(engine.kv_cache_gib * 2**30)}
        environment |= {"TORCHDYNAMO_DISABLE": "1"}
    options |= settings.evalscope.server_options
    flags = [part for key, value in options.items() for part in ([f"--{key}"] if value is True else [f"--{key}", str(value)])]
    return [*VLLM, *flags], environment


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(process: subprocess.Popen, url: str, name: str, log: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while name not in _models(url):
        if process.poll() is not None:
            raise ServerError(f"the server ended before it was up. Its log is {log} and ends with:\n{last_lines(log)}")
        if time.monotonic() > deadline:
            raise ServerError(
                f"the server did not answer within {seconds / 60:g} minutes: raise evalscope.start_minutes, or see its log, {log}, "
                f"which ends with:\n{last_lines(log)}"
            )
        time.sleep(0.2)


def _models(url: str) -> list[str]:
    """Names of the models that are served; none while nobody answers. Proxies are for other machines."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/models", timeout=5) as answer:
            return [model["id"] for model in json.load(answer)["data"]]
    except (OSError, ValueError, KeyError):
        return []
