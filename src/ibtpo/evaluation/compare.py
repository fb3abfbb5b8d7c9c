"""One sampler on the base policy and a fixed problem set (protocol of the paper's Tables 3 and 6): the same problems for every sampler."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.config.models import Config
from ibtpo.engines import make_engine
from ibtpo.evaluation.collect import collect
from ibtpo.evaluation.sample import grow
from ibtpo.progress import progress
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.rollout.scheduler import stable_seed
from ibtpo.tree import ReasoningTree, ib_score
from ibtpo.tree.statistics import leaf_depths, repeat_share, root_share


def main(config: Config, strategy: str, model_dir: str, data_dir: str, out: str) -> None:
    """Writes `trees-<strategy>`, one row per trajectory; columns as in `rows`. Resumes after a kill.

    Raises IbtpoError if there is no sampler of that name.
    """
    if strategy not in config.samplers:
        raise IbtpoError(f"there is no sampler {strategy!r}; known: {', '.join(config.samplers)}")
    sampler, seed = config.samplers[strategy], config.seeds[0]
    problems = load_problems(Path(data_dir) / "train.parquet", config.comparison.problems)
    engine = make_engine(config.engine.kind, model_dir, config.sampling, config.engine, pi=sampler.pi)
    prompter = Prompter(AutoTokenizer.from_pretrained(model_dir), config.sampling.max_tokens)
    draw = stable_seed("compare", strategy, seed)

    def sample(part: list[Problem]) -> list[list[dict]]:
        trees = grow(part, prompter, engine, sampler, draw, config.engine.mode, bar)
        return [rows(strategy, seed, config.offline.beta, tree) for tree in trees]

    with progress(f"compare {strategy}", len(problems) * sampler.group_size, "sample") as bar:
        collect(out, problems, lambda problem: problem.uid, sample, sampler.group_size)
    engine.close()


def rows(strategy: str, seed: int, beta: float, tree: ReasoningTree) -> list[dict]:
    """One row per trajectory. Of the tree, the same in all its rows: root_repicked and node_repicked, the shares of its expansions that
    picked the root, or a node picked before (NaN without expansions; D.2 row 5), and ib_score, the mean J over its inner nodes, root
    included, when it is grown (literal scoring for every sampler).
    """
    of_tree = {
        "root_repicked": root_share(tree),
        "node_repicked": repeat_share(tree),
        "ib_score": _mean([ib_score(node, beta) for node in tree.nodes if node.children]),
    }
    return [
        {
            "strategy": strategy,
            "group_size": len(tree.trajectories),
            "seed": seed,
            "uid": tree.uid,
            "trajectory": number,
            "reward": trajectory.reward,
            "new_tokens": trajectory.new_tokens,
            "depth": depth,
            **of_tree,
        }
        for number, (trajectory, depth) in enumerate(zip(tree.trajectories, leaf_depths(tree), strict=True))
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
