"""Slices of the configuration: what changes the numbers of an artifact, and nothing else. Their hashes name folders and files.

Titles, resources and what only changes speed (concurrency, cache, checkpoints) are in no slice. `evaluate` is in no slice of training.
Values that equal their default are left out, so a new key keeps the old hashes; a change of a default or of code that changes numbers
raises REVISION.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ibtpo.config.cards import load_card
from ibtpo.config.models import Config
from ibtpo.config.resources import SPEED

LENGTH = 10  # hex digits: 40 bits, no clash in any number of runs that somebody keeps
REVISION = {
    "data": 3,
    "policy": 2,
    "train": 2,
    "samples": 2,
    "comparison": 2,
    "offline": 1,
    "forest": 1,
    "costs": 2,
    "scores": 0,
    "problems": 1,
    "corpora": 1,
}  # raise one when a change of the code changes its numbers
CHECKED = {"licence", "template_sha256", "delimiter_tokens", "delimiters", "layers", "width"}  # of a card: filled in, they change nothing
BASE = "base"  # name of the policy before reinforcement learning


def slice_hash(content: Any) -> str:
    """Short hash of plain data, the same on every machine and for every order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def data(config: Config) -> dict[str, Any]:
    """Slice of the training and validation problems; in the tiny world, of everything."""
    if not config.problems.train:
        return {"revision": REVISION["data"], "world": _plain(config.world)}
    return _problems(config, *config.problems.train, *config.problems.validation) | {
        "train": list(config.problems.train.items()),  # their order counts
        "validation": list(config.problems.validation.items()),
    }


def benchmarks(config: Config) -> dict[str, Any]:
    """Slice of the benchmarks."""
    if not config.problems.train:
        return data(config)
    chosen = {"benchmarks": list(config.evaluate.benchmarks), "benchmark": config.problems.benchmark}
    return _problems(config, *config.evaluate.benchmarks) | chosen


def _problems(config: Config, *names: str) -> dict[str, Any]:
    """What the problems of these names are made of."""
    sets = [name for name in names if name in config.corpora.sources]
    tasks = {  # a task's benchmark is drawn before its other problems
        "world": _plain(config.world),
        "shots": config.problems.shots,
        "benchmark": config.problems.benchmark,
    }
    return {
        "revision": REVISION["problems"],
        "system": config.problems.system,
        "corpora": {name: corpus(config, name) for name in sets},
        **(tasks if len(sets) < len(names) else {}),
    }


def corpus(config: Config, name: str) -> dict[str, Any]:
    """Slice of a built data set: where its raw files lie, its titles and the size of its report change nothing."""
    source = config.corpora.sources[name]
    against = config.corpora.checked if source.role == "training" else ()
    return {
        "revision": REVISION["corpora"],
        "source": _plain(source, {"title", "folder", "licence"}),
        "cleaning": _plain(config.corpora.cleaning, {"examples"}),
        "against": {benchmark: corpus(config, benchmark) for benchmark in against},
    }


def policy(config: Config) -> dict[str, Any]:
    if config.policy.card:
        card = load_card(config.policy.card)
        checked = CHECKED if card.revision else CHECKED - {"template_sha256"}  # a commit tells the template, too
        return {"revision": REVISION["policy"], "model": _plain(card, checked), "eos": config.policy.eos}
    return {"revision": REVISION["policy"], "data": data(config), "policy": _plain(config.policy, SPEED)}


def train(config: Config, method: str, seed: int) -> dict[str, Any]:
    chosen = config.methods[method]
    return {
        "revision": REVISION["train"],
        **_with(data, config, BASE, seed),
        "sampler": _plain(config.samplers[chosen.sampler]),
        "advantage": _plain(chosen.advantage),
        "regulariser": _plain(chosen.regulariser),
        "train": _plain(config.train.model_copy(update={"loss": chosen.loss or config.train.loss}), SPEED),
        "reward": chosen.reward,
        "probe_beta": config.offline.beta,
        "seed": seed,
        **_sampling(config),
    }


def samples(config: Config, method: str, seed: int, max_tokens: int = 0) -> dict[str, Any]:
    """Slice of the samples (and so of the scores) of one policy; `method` is BASE for the base policy.

    max_tokens: of the responses, where it is not that of the training (0).
    """
    content = {
        "revision": REVISION["samples"],
        **_with(benchmarks, config, method, seed),
        "samples": config.evaluate.samples,
        "benchmarks": list(config.evaluate.benchmarks),
        **_sampling(config),
    }
    if max_tokens:
        return content | {"sampling": _plain(config.sampling.model_copy(update={"max_tokens": max_tokens}))}
    runner = {"evalscope": _plain(config.evalscope, {"concurrency", "start_minutes"})}
    return content | runner if config.evaluate.runner == "evalscope" else content


def scores(config: Config, method: str, seed: int, max_tokens: int = 0) -> dict[str, Any]:
    """Slice of the scores of these samples: other verifiers judge the same samples anew."""
    return samples(config, method, seed, max_tokens) | ({"scores": REVISION["scores"]} if REVISION["scores"] else {})


def comparison(config: Config, strategy: str) -> dict[str, Any]:
    """Slice of the trees that one sampler grows on the base policy."""
    return {
        "revision": REVISION["comparison"],
        **_with(data, config, BASE, config.seeds[0]),
        "problems": config.comparison.problems,
        **_plain(config.offline, set(type(config.offline).model_fields) - {"beta"}),
        "strategy": _plain(config.samplers[strategy]),
        "seed": config.seeds[0],
        **_sampling(config),
    }


def offline(config: Config, method: str, seed: int) -> dict[str, Any]:
    """Slice of the offline IB-Score of one policy; `method` is BASE for the base policy."""
    return {
        "revision": REVISION["offline"],
        **_with(data, config, method, seed),
        "offline": _plain(config.offline),
        **_sampling(config),
    }


def forest(config: Config, method: str, seed: int, sampler: str) -> dict[str, Any]:
    """Slice of the trees that one sampler grows with one policy, to be looked at; `method` is BASE for the base policy."""
    return {
        "revision": REVISION["forest"],
        **_with(data, config, method, seed),
        "sampler": _plain(config.samplers[sampler]),
        "problems": config.forest.problems,
        "source": config.forest.source,
        "seed": config.seeds[0],
        **_sampling(config),
    }


def costs(config: Config, measurement: str) -> dict[str, Any]:
    """Slice of a measurement of what sampling costs: here all of the engine's settings count, those of speed too."""
    row = config.measurements[measurement]
    return {
        "revision": REVISION["costs"],
        **(_with(data, config, BASE, config.seeds[0]) if row.model == "policy" else {}),
        "measurement": _plain(row),
        "cases": config.cases(measurement),
        "threads": row.threads or config.resources.heavy.threads,
        "samplers": {name: _plain(config.samplers[name]) for name in row.samplers},
        "sampling": _plain(config.sampling),
        "engine": _plain(config.engine),
    }


def report(config: Config) -> dict[str, Any]:
    """What tables and figures show beside their artifacts: the configuration (titles, captions, intervals) and the code that draws."""
    sources = ["report/*.py", "report/*.yaml", "evaluation/statistics.py"]
    plain = config.model_dump(mode="json", exclude={"resources", "artifacts", "engine", "evalscope", "corpora", "outputs", "plan"})
    return {"config": plain, "changes": config.changes, "code": source_hash(*sources)}


def site(config: Config) -> dict[str, Any]:
    """What the report shows beside its artifacts, as `report`: the whole configuration, and the code of the pages too."""
    sources = ["site/*.py", "site/*.yaml", "site/templates/*.html", "site/static/*"]
    return {**report(config), "whole": config.model_dump(mode="json"), "site": source_hash(*sources)}


def source_hash(*patterns: str) -> str:
    """Hash of files of the package. Used where running again is cheap: tables and figures follow every edit."""
    package = Path(__file__).parents[1]
    files = sorted(file for pattern in patterns for file in package.glob(pattern))
    return slice_hash({file.relative_to(package).as_posix(): file.read_text(encoding="utf-8") for file in files})


def _with(problems: Callable[[Config], dict[str, Any]], config: Config, method: str, seed: int) -> dict[str, Any]:
    """A policy, and the problems it meets; those of the tiny world are in the slice of the policy that is trained on them."""
    made = policy(config) if method == BASE else train(config, method, seed)
    return {"policy": made} | ({"data": problems(config)} if config.policy.card else {})


def _sampling(config: Config) -> dict[str, Any]:
    """Engines agree up to rounding only, so which one sampled, and how it was scheduled, belongs to the numbers."""
    dtype = [] if config.engine.dtype == "float32" else [config.engine.dtype]
    return {"sampling": _plain(config.sampling), "engine": [config.engine.kind, config.engine.mode, *dtype]}


def _plain(model: Any, exclude: set[str] | None = None) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude=exclude, exclude_defaults=True)
