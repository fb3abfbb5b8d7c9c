"""Forests without a model: trees that scripted continuations make, of steps with hostile texts, as the artifact has them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from helpers import grow

from ibtpo.config.methods import Sampler
from ibtpo.evaluation.forest import Growth, rows
from ibtpo.rollout.scheduler import Task
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import ReasoningTree, Segmenter
from ibtpo.verifiers import Verdict

SCRIPT = "<script>window.hacked = 1</script>"
EOS = 0
PIECES = [b"", b"\n\n", SCRIPT.encode(), b"$\\frac{1}{2}$", b"</script>", b"9-5=4", b"&lt;b&gt;", b"{{ 7 * 7 }}", "\u2028½".encode()]
PROMPT = f"2+3= {SCRIPT}"
SHAPE = {"initial": 4, "iterations": 5, "nodes": 1, "branches": 1}
SPECS = {
    "ibtree8": Sampler(name="ibtree", group_size=8, min_room=2, **SHAPE),
    "ibtree-wide": Sampler(name="ibtree", group_size=12, min_room=2, initial=4, iterations=3, nodes=2, branches=2),
    "eptree8": Sampler(name="eptree", group_size=8, min_room=2, **SHAPE),
    "random8": Sampler(name="random", group_size=8, min_room=2, **SHAPE),
    "fixed8": Sampler(name="fixed-width", group_size=8, min_room=2),
    "treepo8": Sampler(name="treepo", group_size=8, min_room=2, initial=4, segment=4, depth=8),
    "independent8": Sampler(name="independent", group_size=8),
}
LIKE = {"independent12": "independent8", "eptree12": "eptree8", "ibtree12": "ibtree8"}  # which of them stands for a sampler of the presets


def task(spec: Sampler, seed: int, uid: str = "q", max_tokens: int = 24) -> Task:
    """An empty tree and the sampler that grows it."""
    tree = make_tree(uid, spec, Segmenter(PIECES, EOS), max_tokens)
    return Task(uid, (1, 2), SAMPLERS[spec.name](tree, spec, np.random.default_rng(seed)), tree, lambda ids: Verdict(0.0, "ok"))


def source(seed: int, rewards=(0.0, 0.0, 1.0)):
    """Continuations of a few steps with one token or two; EOS after a step in one of three; cut off at the room."""
    rng = np.random.default_rng(seed)

    def answer(node, room: int):
        ids: list[int] = []
        while len(ids) < room and EOS not in ids:
            ids += [*rng.integers(2, len(PIECES), size=rng.integers(1, 3)).tolist(), 1]
            if rng.random() < 1 / 3:
                ids.append(EOS)
        ids = ids[:room]
        return ids, np.log(rng.uniform(0.05, 1, len(ids))).tolist(), ids[-1] == EOS, float(rng.choice(rewards))

    return answer


def growth(name: str, seed: int = 0, rewards=(0.0, 0.0, 1.0)) -> Growth:
    """A grown tree with what its sampler saw."""
    made = Growth(task(SPECS[name], seed), SPECS[name])
    grow(made.tree, made.task.sampler, source(seed, rewards))
    return made


def surprisals(tree: ReasoningTree) -> list[list[float]]:
    """In the place of entropies: -log p of each token."""
    return [[-value for value in trajectory.logprobs] for trajectory in tree.trajectories]


def forest(
    method: str, seed: int, sampler: str, spec: Sampler, uids: tuple[str, ...], rewards=(0.0, 0.0, 1.0), draw: int = 0
) -> pd.DataFrame:
    """The artifact of one policy and one sampler; the trees of another `draw` are others."""
    found = []
    for number, uid in enumerate(uids):
        made = Growth(task(spec, draw + number, uid), spec)
        grow(made.tree, made.task.sampler, source(draw + number, rewards))
        known = {"method": method, "seed": seed, "sampler": sampler, "uid": uid, "family": "sums", "prompt": PROMPT, "answer": "5</script>"}
        found += [{**known, **row} for row in rows(made, surprisals(made.tree))]
    return pd.DataFrame(found)


def same(one, other) -> bool:
    """Equal, NaN and None being the same."""
    if one is None or other is None or one != one or other != other:
        return all(value is None or (isinstance(value, float) and math.isnan(value)) for value in (one, other))
    return one == other
