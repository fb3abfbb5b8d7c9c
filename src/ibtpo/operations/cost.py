"""A model of what a job costs, in tokens and in hours of a device (docs/cost-model.md). Its numbers are `plan` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ibtpo.config.models import Config

FORWARD, BACKWARD = 2, 4  # operations a parameter and token
KEPT = 0.5  # a continuation starts in the middle of a response, on average


@dataclass(frozen=True)
class Work:
    """sampled: tokens that are generated; trained: tokens of updates; operations: a parameter and trained token; devices: side by side."""

    sampled: float = 0.0
    trained: float = 0.0
    operations: float = 0.0
    devices: int = 1

    def hours(self, config: Config) -> float:
        """Run time of a job that runs a policy."""
        plan = config.plan
        sampling = self.sampled * plan.parameters / plan.generation
        training = self.trained * self.operations * plan.parameters / (1000 * plan.tflops * plan.utilisation)
        return (sampling + training) / self.devices / 3600 + plan.start_minutes / 60


def work(config: Config, command: str, arguments: Mapping[str, Any]) -> Work | None:
    """What a command of `python -m ibtpo` does, given its arguments; None if it runs no policy."""
    samples, response = config.evaluate.samples, config.plan.response_tokens
    one = config.resources.heavy.gpus or 1
    if command == "train":
        return _training(config, arguments["method"])
    if command in ("sample", "evalscope"):
        return Work(benchmark_problems(config) * samples * response, devices=one)
    if command == "compare":
        return Work(config.comparison.problems * tree_tokens(config, arguments["strategy"]), devices=one)
    if command == "offline":
        return Work(config.offline.problems * _offline(config, config.offline.seeds, config.offline.draws), devices=one)
    if command == "forest":
        return Work(config.forest.problems * tree_tokens(config, arguments["sampler"]), devices=one)
    if command == "measure":
        repeats = config.measurements[arguments["name"]].repeats
        scale = {case: case.max_tokens / config.sampling.max_tokens for case in config.cases(arguments["name"])}
        return Work(repeats * sum(case.trees * tree_tokens(config, case.sampler) * by for case, by in scale.items()), devices=one)
    return Work() if command == "policy" else None


def tree_tokens(config: Config, sampler: str) -> float:
    """Tokens that a sampler generates for one problem; a tree shares prefixes (paper, Table 3)."""
    spec, plan = config.samplers[sampler], config.plan
    return spec.group_size * plan.response_tokens * plan.token_share[spec.name]


def benchmark_problems(config: Config) -> int:
    """Problems of all benchmarks; a data set that is taken whole has the rows that its source declares."""
    return sum(_problems(config, name, config.problems.benchmark) for name in config.evaluate.benchmarks)


def _problems(config: Config, name: str, taken: int) -> int:
    source = config.corpora.sources.get(name) if config.problems.train else None
    if source is None:
        return taken or config.world.benchmark
    there = min(source.rows, default=config.plan.benchmark_problems)
    return min(taken, there) or there


def _training(config: Config, method: str) -> Work:
    """Rollouts, validations with their probes, and the updates: old and reference log-probs, forward, backward."""
    train, plan = config.train, config.plan
    sampler = config.methods[method].sampler
    problems = train.iterations * train.problems_per_iteration
    validations = train.iterations // train.validate_every + 2  # at the start and at the end too
    held_out = config.number("validation")[1] or plan.benchmark_problems
    probe = train.probe_problems * _offline(config, train.probe_seeds, train.probe_draws)
    measured = validations * (held_out * train.validation_samples * plan.response_tokens + probe)
    group = config.samplers[sampler].group_size
    responses = tree_tokens(config, sampler) if train.prefix_sharing else group * plan.response_tokens
    prompts = plan.prompt_tokens * (1 if train.prefix_sharing else group)
    passes = 2 + bool(config.methods[method].regulariser.kl) + train.gradient_checkpointing  # old, new, reference, again for the backward
    operations = passes * FORWARD + BACKWARD
    return Work(problems * tree_tokens(config, sampler) + measured, problems * (responses + prompts), operations, train.processes)


def _offline(config: Config, seeds: int, draws: int) -> float:
    """Tokens for the IB-Scores of one problem: seed trajectories, and fresh rollouts at each of their step nodes."""
    return seeds * config.plan.response_tokens * (1 + config.plan.steps * draws * KEPT)
