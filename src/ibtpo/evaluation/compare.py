"""Samplers side by side on one fixed policy and one fixed problem set (protocol of the paper's Table 3)."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer

from ibtpo.config.models import Config
from ibtpo.engines import make_engine
from ibtpo.evaluation.collect import collect
from ibtpo.evaluation.sample import CHUNK, grow
from ibtpo.progress import progress
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.rollout.scheduler import stable_seed
from ibtpo.tree import ReasoningTree


def main(config: Config, model_dir: str, data_dir: str, out: str) -> None:
    """Writes `samplers`: strategy, group_size, seed, uid, trajectory, reward, new_tokens, depth. Resumes after a kill."""
    problems = load_problems(Path(data_dir) / "train.parquet", config.comparison.problems)
    engine = make_engine(config.engine.kind, model_dir, config.sampling, config.engine)
    prompter = Prompter(AutoTokenizer.from_pretrained(model_dir), config.sampling.max_tokens)
    units = [(strategy, problem) for strategy in config.comparison.strategies for problem in problems]
    total = sum(config.samplers[strategy].group_size for strategy, _ in units)
    seed = config.seeds[0]

    def sample(part: list[tuple[str, Problem]]) -> list[list[dict]]:
        done = []
        for strategy in dict.fromkeys(name for name, _ in part):
            chosen = [problem for name, problem in part if name == strategy]
            draw = stable_seed("compare", strategy, seed)
            done += grow(chosen, prompter, engine, config.samplers[strategy], draw, config.engine.mode, bar)
        return [rows(strategy, seed, tree) for (strategy, _), tree in zip(part, done, strict=True)]

    with progress("compare samplers", total, "sample") as bar:
        collect(out, units, lambda unit: f"{unit[0]}/{unit[1].uid}", sample, CHUNK)
    engine.close()


def rows(strategy: str, seed: int, tree: ReasoningTree) -> list[dict]:
    return [
        {
            "strategy": strategy,
            "group_size": len(tree.trajectories),
            "seed": seed,
            "uid": tree.uid,
            "trajectory": number,
            "reward": trajectory.reward,
            "new_tokens": trajectory.new_tokens,
            "depth": trajectory.leaf.depth,
        }
        for number, trajectory in enumerate(tree.trajectories)
    ]
