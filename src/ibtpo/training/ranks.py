"""The processes that train one run together: the ranks of accelerate.

Each rank has the model (or a shard of it), an engine of its own and whole trees of its own problems. What a single process would see at
once is gathered here, so every rank knows the same numbers; rank 0 alone writes. With one process all of this does nothing.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object

from ibtpo import IbtpoError

WAIT = timedelta(hours=6)  # for the slowest rank: rollouts are uneven
PR_SET_PDEATHSIG = 1  # of Linux' prctl


def join(processes: int, cpu: bool) -> None:
    """Joins the other ranks. Raises IbtpoError unless `processes` of them were started together."""
    started = PartialState(cpu=cpu, timeout=WAIT).num_processes
    if started != processes:
        raise IbtpoError(
            f"train.processes is {processes}, but the number of processes started is {started}: start them together as docs/multi-gpu.md "
            f"shows (the workflow does), or set train.processes: {started}"
        )
    if processes > 1 and sys.platform == "linux":  # ranks whose launcher was killed would go on writing the run beside the next attempt
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def first() -> bool:
    """Whether this is rank 0, which writes."""
    return PartialState().is_main_process


def own(items: list) -> list:
    """This rank's share of a list: every n-th item."""
    state = PartialState()
    return items[state.process_index :: state.num_processes]


def engine_options(kind: str) -> dict[str, str]:
    """Of an engine that lives beside those of other ranks: vLLM must take their process group as it is, and be a group of one in it."""
    return {"distributed_executor_backend": "external_launcher"} if kind == "vllm" and PartialState().num_processes > 1 else {}


def agree(decide: Callable[[], Any]) -> Any:
    """What rank 0 decides, on every rank."""
    return broadcast_object_list([decide() if first() else None])[0]


def gather(values: np.ndarray) -> np.ndarray:
    """`values` (n, ...) of all ranks one after the other, on every rank; n may differ."""
    return np.concatenate(gather_object([values]))
