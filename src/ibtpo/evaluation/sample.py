"""Sampling the benchmarks: n independent responses a problem, cached apart from their scores (D.2 row 31)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from ibtpo.config.models import Config, Sampler
from ibtpo.engines import make_engine
from ibtpo.evaluation.collect import collect
from ibtpo.progress import progress
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.rollout.scheduler import run, stable_seed
from ibtpo.tree import ReasoningTree


def main(config: Config, model_dir: str, name: str, data_dir: str, out: str, max_tokens: int = 0) -> None:
    """Writes `samples-<policy>`: benchmark, uid, family, sample, text, ids, finished, status, tokens. Resumes after a kill.

    max_tokens: of a response; 0: sampling.max_tokens, the maximum of the training.
    """
    problems = [
        (benchmark, problem)
        for benchmark in config.evaluate.benchmarks
        for problem in load_problems(Path(data_dir) / "benchmarks" / f"{benchmark}.parquet")
    ]
    engine = make_engine(config.engine.kind, model_dir, config.sampling, config.engine)
    prompter = Prompter(AutoTokenizer.from_pretrained(model_dir), max_tokens or config.sampling.max_tokens)
    sampler = independent(config.evaluate.samples)
    seed = stable_seed("evaluate", name)

    def sample(part: list[tuple[str, Problem]]) -> list[list[dict]]:
        trees = grow([problem for _, problem in part], prompter, engine, sampler, seed, config.engine.mode, bar)
        return [rows(benchmark, problem, tree, prompter) for (benchmark, problem), tree in zip(part, trees, strict=True)]

    with progress(f"sample {name}", len(problems) * config.evaluate.samples, "sample") as bar:
        collect(out, problems, lambda unit: f"{unit[0]}/{unit[1].uid}", sample, config.evaluate.samples)
    engine.close()


def spread(problems: list[Problem], count: int) -> list[Problem]:
    """`count` problems evenly spaced over the set, so that every family is among them; all if there are no more."""
    return [problems[i] for i in np.linspace(0, len(problems) - 1, min(count, len(problems))).round().astype(int)]


def independent(samples: int) -> Sampler:
    return Sampler.model_construct(name="independent", group_size=samples)


def grow(problems, prompter: Prompter, engine, sampler: Sampler, seed: int, mode: str, bar=None) -> list[ReasoningTree]:
    """One tree per problem, grown by `sampler` through `engine`."""
    tasks = [prompter.task(problem, sampler, seed) for problem in problems]
    run(tasks, engine, mode, seed, progress=bar)
    return [task.tree for task in tasks]


def rows(benchmark: str, problem: Problem, tree: ReasoningTree, prompter: Prompter) -> list[dict]:
    return [
        {
            "benchmark": benchmark,
            "uid": problem.uid,
            "family": problem.family,
            "sample": number,
            "text": prompter.decode(trajectory.ids),
            "ids": list(trajectory.ids),
            "finished": trajectory.finished,
            "status": trajectory.status,
            "tokens": len(trajectory.ids),
        }
        for number, trajectory in enumerate(tree.trajectories)
    ]
