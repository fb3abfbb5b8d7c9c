"""Slices of the configuration: what changes the numbers of an artifact, and nothing else. Their hashes name folders and files.

Titles, resources and what only changes speed (concurrency, cache, checkpoints) are in no slice. `evaluate` is in no slice of training.
Values that equal their default are left out, so a new key keeps the old hashes; a change of a default or of code that changes numbers
raises REVISION.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ibtpo.config.models import Config

LENGTH = 10  # hex digits: 40 bits, no clash in any number of runs that somebody keeps
REVISION = {
    "data": 3,
    "policy": 2,
    "train": 2,
    "samples": 2,
    "comparison": 2,
    "offline": 1,
}  # raise one when a change of the code changes its numbers
SPEED = {"checkpoint_every", "micro_batch", "prefix_sharing"}  # keys of policy and train that change speed and memory only
BASE = "base"  # name of the policy before reinforcement learning


def slice_hash(content: Any) -> str:
    """Short hash of plain data, the same on every machine and for every order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def data(config: Config) -> dict[str, Any]:
    return {"revision": REVISION["data"], "world": _plain(config.world)}


def policy(config: Config) -> dict[str, Any]:
    return {"revision": REVISION["policy"], "data": data(config), "policy": _plain(config.policy, SPEED)}


def train(config: Config, method: str, seed: int) -> dict[str, Any]:
    chosen = config.methods[method]
    return {
        "revision": REVISION["train"],
        "policy": policy(config),
        "sampler": _plain(config.samplers[chosen.sampler]),
        "advantage": _plain(chosen.advantage),
        "regulariser": _plain(chosen.regulariser),
        "train": _plain(config.train.model_copy(update={"loss": chosen.loss or config.train.loss}), SPEED),
        "reward": chosen.reward,
        "probe_beta": config.offline.beta,
        "seed": seed,
        **_sampling(config),
    }


def samples(config: Config, method: str, seed: int) -> dict[str, Any]:
    """Slice of the samples (and so of the scores) of one policy; `method` is BASE for the base policy."""
    return {
        "revision": REVISION["samples"],
        "policy": policy(config) if method == BASE else train(config, method, seed),
        "samples": config.evaluate.samples,
        "benchmarks": list(config.evaluate.benchmarks),
        **_sampling(config),
    }


def comparison(config: Config, strategy: str) -> dict[str, Any]:
    """Slice of the trees that one sampler grows on the base policy."""
    return {
        "revision": REVISION["comparison"],
        "policy": policy(config),
        "problems": config.comparison.problems,
        "strategy": _plain(config.samplers[strategy]),
        "seed": config.seeds[0],
        **_sampling(config),
    }


def offline(config: Config, method: str, seed: int) -> dict[str, Any]:
    """Slice of the offline IB-Score of one policy; `method` is BASE for the base policy."""
    return {
        "revision": REVISION["offline"],
        "policy": policy(config) if method == BASE else train(config, method, seed),
        "offline": _plain(config.offline),
        **_sampling(config),
    }


def report(config: Config) -> dict[str, Any]:
    """What tables and figures show beside their artifacts: the configuration (titles, captions, intervals) and the code that draws."""
    sources = ["report/*.py", "report/*.yaml", "evaluation/statistics.py"]
    plain = config.model_dump(mode="json", exclude={"resources", "artifacts", "engine"})
    return {"config": plain, "code": source_hash(*sources)}


def source_hash(*patterns: str) -> str:
    """Hash of files of the package. Used where running again is cheap: tables and figures follow every edit."""
    package = Path(__file__).parents[1]
    files = sorted(file for pattern in patterns for file in package.glob(pattern))
    return slice_hash({file.relative_to(package).as_posix(): file.read_text(encoding="utf-8") for file in files})


def _sampling(config: Config) -> dict[str, Any]:
    """Engines agree up to rounding only, so which one sampled, and how it was scheduled, belongs to the numbers."""
    return {"sampling": _plain(config.sampling), "engine": [config.engine.kind, config.engine.mode]}


def _plain(model: Any, exclude: set[str] | None = None) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude=exclude, exclude_defaults=True)
