"""Whole trees of one policy and one sampler, kept to be looked at: what each node was worth when the sampler chose, and in the end.

Every number comes from the rooms that also serve the samplers and the training: scores from `tree`, advantages from `advantages`. [OURS]:
the same problems and the same seeds for every policy and sampler, so with one policy samplers start from the same first rollouts;
IB-Scores and A_IB at the sampler's beta, lambda = 0.1; entropies at the sampling temperature, over the full vocabulary, as in training.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.advantages import estimate
from ibtpo.config.methods import Advantage, Sampler
from ibtpo.config.models import Config
from ibtpo.engines import make_engine
from ibtpo.evaluation.collect import collect
from ibtpo.evaluation.offline import policy_of
from ibtpo.evaluation.sample import spread
from ibtpo.io import read_parquet
from ibtpo.progress import progress
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.rollout.scheduler import Task, run, stable_seed
from ibtpo.samplers import Branch
from ibtpo.tree import Node, ReasoningTree, density, ib_score, ratio

SLICE = 256  # tokens whose logits are in float64 at once: of 2048 with a vocabulary of 150,000 each copy would take 2.5 GB


def main(config: Config, model_dir: str, name: str, sampler: str, data_dir: str, out: str) -> None:
    """Writes `forest-<name>-<sampler>`, one row per node: method, seed, sampler, uid, family, prompt, answer, and the columns of `rows`.

    A kill loses all of it, which is minutes. Raises IbtpoError if there is no sampler of that name or another process is at work on `out`.
    """
    if sampler not in config.samplers:
        raise IbtpoError(f"there is no sampler {sampler!r}; known: {', '.join(config.samplers)}")
    spec, file = config.samplers[sampler], Path(data_dir) / f"{config.forest.source}.parquet"
    problems, answers = spread(load_problems(file), config.forest.problems), read_parquet(file).set_index("uid")["answer"]
    method, seed = policy_of(name, config.seeds[0])

    def look(_) -> list[list[dict]]:
        growths = grow(config, model_dir, spec, problems, f"forest {name} {sampler}")
        model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32).to(config.engine.device).eval()
        found = []
        for problem, growth in zip(problems, growths, strict=True):
            entropy = [entropies(model, growth.task.prompt_ids, t.ids, config.sampling.temperature) for t in growth.tree.trajectories]
            known = {"uid": problem.uid, "family": problem.family, "prompt": problem.prompt, "answer": str(answers[problem.uid])}
            found += [{"method": method, "seed": seed, "sampler": sampler, **known, **row} for row in rows(growth, entropy)]
        return [found]

    collect(out, ["all problems"], str, look, responses=1)


def grow(config: Config, model_dir: str, spec: Sampler, problems: Sequence[Problem], label: str) -> list[Growth]:
    """The grown tree of each problem. The engine is gone afterwards: its memory is wanted for the model that reads the trees."""
    prompter = Prompter(AutoTokenizer.from_pretrained(model_dir), config.sampling.max_tokens)
    draw = stable_seed("forest", config.seeds[0])
    growths = [Growth(prompter.task(problem, spec, draw), spec) for problem in problems]
    engine = make_engine(config.engine.kind, model_dir, config.sampling, config.engine, pi=spec.pi)
    with closing(engine), progress(label, len(problems) * spec.group_size, "sample") as bar:
        run([growth.task for growth in growths], engine, config.engine.mode, draw, progress=bar)
    return growths


class Growth:
    """A task whose tree is looked at each time its sampler asks for a round; `task` is the one to run.

    first, grown: trajectories before each round, nodes after it. history: of each node (by index), a record for every round but the
    first at whose start it was there: round, count, density, ratio, ib_score (None without draws), rank (1 = the best IB-Score of the
    candidates, ties as in IBTree; None for no candidate), asked (continuations that the sampler asked for there).
    """

    def __init__(self, task: Task, spec: Sampler) -> None:
        self.tree, self.spec = task.tree, spec
        self.first: list[int] = []
        self.grown: list[int] = []
        self.history: dict[int, list[dict]] = defaultdict(list)
        self.task = replace(task, sampler=self._watch(task.sampler))

    def round_of_node(self, index: int) -> int:
        """In which round a node was made; a node that a round's fork split off counts to that round."""
        return bisect_right(self.grown, index)

    def round_of_trajectory(self, number: int) -> int:
        return bisect_right(self.first, number) - 1

    def _watch(self, sampler: Iterator[list[Branch]]) -> Iterator[list[Branch]]:
        for branches in sampler:
            asked: Counter[Node] = Counter()
            for branch in branches:
                asked[branch.node] += branch.n
            if not asked.total():
                continue
            if self.first:
                self._look(asked)
            self.first.append(len(self.tree.trajectories))
            yield branches
            self.grown.append(len(self.tree.nodes))

    def _look(self, asked: Counter[Node]) -> None:
        states = {node: state(self.tree, node, self.spec.beta) for node in self.tree.nodes}
        candidates = self.tree.candidates(self.spec.min_room)
        order = sorted(candidates, key=lambda node: (-states[node]["ib_score"], node.depth, node.index))
        rank = {node: place for place, node in enumerate(order, start=1)}
        for node, values in states.items():
            record = {"round": len(self.first), **values, "rank": rank.get(node), "asked": asked[node]}
            self.history[node.index].append(record)


def state(tree: ReasoningTree, node: Node, beta: float) -> dict:
    """What changes of a node while its tree grows: count, density, ratio (None at the root), ib_score (None without draws)."""
    return {
        "count": node.count,
        "density": density(node, tree.scoring),
        "ratio": ratio(node, tree.scoring) if node.parent else None,
        "ib_score": ib_score(node, beta, tree.scoring) if node.children else None,
    }


def rows(growth: Growth, entropy: Sequence[Sequence[float]]) -> list[dict]:
    """One row per node of a grown tree; entropy: of each token (nats), one list a trajectory.

    node: creation order, the root is 0. parent: -1 at the root. round: in which it was made. text, ids, and logprobs and entropies (nats)
    of the step's tokens at its first draw. terminal, cut, depth, pi, draws, wins as in `Node`; count, density, ratio, ib_score as in
    `state`, when the tree is grown. global_advantage: A_GL; local_advantage: lambda A_IB; their sum is IB-TPO's advantage of the step in
    every scored trajectory through it (null at the root and at a step without tokens). history: as in `Growth`. trajectories: those that
    end here: number, round, branch (the node they started from), reward (null if unscorable), status, finished, new_tokens,
    grpo_advantage.
    """
    tree, spec = growth.tree, growth.spec
    whole = of_nodes(tree, Advantage(name="ibtpo", beta=spec.beta))
    global_part = of_nodes(tree, Advantage(name="ibtpo", local_weight=0.0))
    of_tokens = _first_draws(tree, entropy)
    ends = _trajectories(growth)
    return [
        {
            "node": node.index,
            "parent": node.parent.index if node.parent else -1,
            "round": growth.round_of_node(node.index),
            "text": tree.segmenter.text(node.ids),
            "ids": list(node.ids),
            "logprobs": list(node.logprobs),
            "entropies": of_tokens.get(node.index, []),
            "terminal": node.terminal,
            "cut": node.cut,
            "depth": node.depth,
            "pi": node.pi,
            "draws": node.draws,
            "wins": node.wins,
            **state(tree, node, spec.beta),
            "global_advantage": global_part.get(node.index),
            "local_advantage": whole[node.index] - global_part[node.index] if node.index in whole else None,
            "history": growth.history[node.index],
            "trajectories": ends[node.index],
        }
        for node in tree.nodes
    ]


def of_nodes(tree: ReasoningTree, spec: Advantage) -> dict[int, float]:
    """The advantage of each step (by index of its node) that a scored trajectory passes, for an estimator with one value a step."""
    values: dict[int, float] = {}
    for trajectory, row in zip(tree.trajectories, estimate([tree], spec), strict=True):
        if not math.isnan(trajectory.reward):
            values |= zip((node.index for node in trajectory.nodes), row.tolist(), strict=True)
    return values


@torch.no_grad()
def entropies(model, prompt_ids: Sequence[int], ids: Sequence[int], temperature: float) -> list[float]:
    """Entropy (nats, to 5 digits) of softmax(logits / temperature) over the full vocabulary at each token of `ids`; shape (len(ids),)."""
    if not ids:
        return []
    logits = model(torch.tensor([[*prompt_ids, *ids]], device=model.device)).logits[0, len(prompt_ids) - 1 : -1]
    parts = [torch.distributions.Categorical(logits=part.double() / temperature).entropy() for part in logits.split(SLICE)]
    return [round(value, 5) for value in torch.cat(parts).tolist()]


def _first_draws(tree: ReasoningTree, entropy: Sequence[Sequence[float]]) -> dict[int, list[float]]:
    """Of each node (by index) the entropies of its tokens, from the first trajectory through it."""
    found: dict[int, list[float]] = {}
    for trajectory, values in zip(tree.trajectories, entropy, strict=True):
        for node in trajectory.leaf.path:
            found.setdefault(node.index, list(values[node.prefix_length - len(node.ids) : node.prefix_length]))
    return found


def _trajectories(growth: Growth) -> dict[int, list[dict]]:
    """The records of the trajectories that end in each node (by index)."""
    ends: dict[int, list[dict]] = defaultdict(list)
    grpo = estimate([growth.tree], Advantage(name="grpo"))
    for number, (trajectory, advantage) in enumerate(zip(growth.tree.trajectories, grpo, strict=True)):
        ends[trajectory.leaf.index].append(
            {
                "number": number,
                "round": growth.round_of_trajectory(number),
                "branch": trajectory.branch.index,
                "reward": None if math.isnan(trajectory.reward) else trajectory.reward,
                "status": trajectory.status,
                "finished": trajectory.finished,
                "new_tokens": trajectory.new_tokens,
                "grpo_advantage": float(advantage[0]) if len(advantage) else None,
            }
        )
    return ends
