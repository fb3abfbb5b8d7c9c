"""Rollouts side by side: what samplers cost, in each mode, by the number of trees at once and by the length of responses.

Paper: IB-TPO, Tables 7 and 8, Figure 8, C.3 and C.4. All cases take turns within each repeat, so that a busy machine slows them alike;
CPU seconds tell what other work on it hides. Weights are loaded anew before every run, as between training steps: the prefix cache starts
empty, and the peak of the KV cache is that of the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from ibtpo import IbtpoError
from ibtpo.config import Config
from ibtpo.config.measurements import Case
from ibtpo.engines import Engine
from ibtpo.evaluation.collect import RESPONSES, collect
from ibtpo.io import hardware
from ibtpo.measure.worlds import PolicyWorld, RandomWorld, World
from ibtpo.progress import progress
from ibtpo.rollout.scheduler import Task, run, stable_seed


def main(config: Config, name: str, out: str, policy: str = "", data: str = "") -> None:
    """Writes `costs-<name>`, one row a case and repeat; columns as in `rows`. Resumes after a kill with the next repeat.

    policy, data: folders, for a measurement of the base policy. Raises IbtpoError if there is no measurement of that name.
    """
    if name not in config.measurements:
        raise IbtpoError(f"there is no measurement {name!r}; known: {', '.join(config.measurements)}")
    cases, measurement = config.cases(name), config.measurements[name]
    own = {key: value for key in ("max_sequences", "kv_cache_gib") if (value := getattr(measurement, key))}
    config = config.model_copy(update={"engine": config.engine.model_copy(update=own)})
    if measurement.threads:
        torch.set_num_threads(measurement.threads)
    world: World
    if measurement.model == "random":
        world = RandomWorld(config, measurement, max(case.max_tokens for case in cases))
    else:
        world = PolicyWorld(config, policy, Path(data) / "train.parquet")
    weights = {key: value.clone() for key, value in world.model.state_dict().items()}
    engine = world.engine()
    facts = {
        "parameters": sum(value.numel() for value in world.model.parameters()),
        "engine": "transformers" if measurement.model == "random" else config.engine.kind,
        "max_sequences": config.engine.max_sequences,
        "hardware": machine(config.engine.device),
    }
    with progress(f"measure {name}", len(cases) * measurement.repeats, "run") as bar:
        cost(engine, weights, world.tasks(min(cases, key=_size)._replace(trees=1), measurement.repeats), "asynchronous", 0)  # warms up
        collect(
            out,
            range(measurement.repeats),
            key=str,
            run=lambda part: [rows(name, facts, cases, world, engine, weights, repeat, bar) for repeat in part],
            responses=RESPONSES,  # a chunk, and so a line that is kept, is one repeat
        )
    engine.close()


def rows(name: str, facts: Mapping, cases: Sequence[Case], world: World, engine: Engine, weights: Mapping, repeat: int, bar) -> list[dict]:
    """One row a case: what is measured, the case, the repeat, the mean load of the last minute, `cost`, and the facts that never change."""
    made = []
    for case in cases:
        load = os.getloadavg()[0]
        figures = cost(engine, weights, world.tasks(case, repeat), case.mode, stable_seed("measure", repeat))
        made.append({"what": name, **case._asdict(), "repeat": repeat, "load": load, **figures, **facts})
        bar.update()
    return made


def cost(engine: Engine, weights: Mapping, tasks: list[Task], mode: str, seed: int) -> dict[str, float | None]:
    """Grows the trees of `tasks` with an empty prefix cache.

    seconds, cpu_seconds (this process, all threads), bookkeeping_seconds (trees, samplers, scheduler), tokens (newly generated),
    requests; and what the engine itself counts: kv_peak_tokens (the most that running requests held at once, whole blocks), block_size,
    prefix_queries, prefix_hits (prompt tokens); None where it does not.
    """
    engine.load_weights(weights)
    before, used_cpu = engine.figures(), time.process_time()
    figures = run(tasks, engine, mode, seed)
    used_cpu, after = time.process_time() - used_cpu, engine.figures()
    blocks = "kv_blocks_peak" in after
    return {
        "seconds": figures.seconds,
        "cpu_seconds": used_cpu,
        "bookkeeping_seconds": figures.bookkeeping_seconds,
        "tokens": figures.tokens,
        "requests": figures.requests,
        "kv_peak_tokens": after["kv_blocks_peak"] * after["block_size"] if blocks else None,
        "block_size": after["block_size"] if blocks else None,
        **{key: after[key] - before[key] if key in after else None for key in ("prefix_queries", "prefix_hits")},
    }


def machine(device: str) -> str:
    """What runs here, in words: cores, processor and threads; on "cuda" the GPUs too."""
    found = hardware()
    gpus = f", {' and '.join(found['gpus'])}" if device == "cuda" else ""
    return f"{os.cpu_count()} x {found['cpu']}, {torch.get_num_threads()} thread(s){gpus}"


def _size(case: Case) -> int:
    return case.trees * case.max_tokens
