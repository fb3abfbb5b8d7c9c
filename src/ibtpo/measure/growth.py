"""How the cost of a tree outside of the engine grows: with its depth, with G, with the number of trees that grow at once.

The engine answers from a script, at once, so what is left is the scheduler, the sampler, the tree and its scores: all that should grow no
faster than the work itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ibtpo.config.methods import Sampler
from ibtpo.engines import Continuation, Request
from ibtpo.engines.scripted import ScriptedEngine
from ibtpo.rollout.scheduler import Task, run, stable_seed
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter
from ibtpo.verifiers import Verdict

END, EOS, LETTERS = 0, 1, 64  # ids: the end of a step, the end of a response, then letters
STEP = 8  # tokens of a step
DEPTH, GROUP, TREES = 8, 12, 64  # where two of the three do not change
SEGMENTER = Segmenter([b"\n\n", b"", *[b"a"] * LETTERS], EOS)


class ClockedEngine(ScriptedEngine):
    """Counts the CPU seconds that are spent inside of it."""

    used = 0.0

    def step(self) -> list[Continuation]:
        entered = time.process_time()
        try:
            return super().step()
        finally:
            self.used += time.process_time() - entered


def cost_per_tree(depth: int = DEPTH, group: int = GROUP, trees: int = TREES, seed: int = 0) -> float:
    """CPU seconds outside of the engine for an IBTree of `group` responses, each of `depth` steps, `trees` of them at once."""
    sampler = Sampler(name="ibtree", group_size=group, initial=4, iterations=group - 3, nodes=1, branches=1, min_room=1)
    engine = ClockedEngine(_answers(depth), seed, most=trees)
    rng, tasks = np.random.default_rng(seed), []
    for uid in map(str, range(trees)):
        tree = make_tree(uid, sampler, SEGMENTER, depth * STEP)
        tasks.append(Task(uid, (END,), SAMPLERS[sampler.name](tree, sampler, rng), tree, coin))
    began = time.process_time()
    run(tasks, engine, "asynchronous", seed)
    return (time.process_time() - began - engine.used) / trees


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size with which a cost grows: the slope of a line through the logarithms. 0: not at all, 1: linearly."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def _answers(depth: int) -> Callable[[Request], tuple[tuple[int, ...], tuple[float, ...], bool]]:
    """Whole responses of `depth` steps of STEP tokens, or what is missing of one; log-probs as a policy might have them."""

    def answer(request: Request) -> tuple[tuple[int, ...], tuple[float, ...], bool]:
        rng, length = np.random.default_rng(request.seed), depth * STEP - len(request.prompt_ids) + 1
        ids = rng.integers(EOS + 1, EOS + 1 + LETTERS, length)
        ids[-1 - STEP :: -STEP] = END
        ids[-1] = EOS
        return tuple(ids.tolist()), tuple(-rng.exponential(0.5, length)), True

    return answer


def coin(ids: tuple[int, ...]) -> Verdict:
    """A reward of 0 or 1 that depends on the ids alone."""
    return Verdict(float(stable_seed(*ids) % 2), "ok")
