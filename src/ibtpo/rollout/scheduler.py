"""Many samplers through one engine: every sampler asks for rounds of branches, the engine answers all of them together.

IB-TPO (arXiv 2605.28109), C.3: asynchronous expansion, where a tree goes on as soon as its own round is complete, against lockstep, where
all trees wait for the slowest. [OURS]: both are one loop, and a tree is the same in both, as far as the engine keeps a request's result
independent of its batch: seeds name the trajectory and a round enters its tree in the order it was asked for.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ibtpo.engines.base import Continuation, Engine, Request
from ibtpo.samplers import Branch
from ibtpo.tree import Node, ReasoningTree
from ibtpo.verifiers import Verdict

log = logging.getLogger(__name__)
Mode = Literal["asynchronous", "lockstep"]


@dataclass(frozen=True)
class Task:
    """A tree to grow. sampler: yields rounds of branches of `tree`. score: verdict on whole response ids (prefix included)."""

    uid: str
    prompt_ids: tuple[int, ...]
    sampler: Iterator[list[Branch]]
    tree: ReasoningTree
    score: Callable[[tuple[int, ...]], Verdict]


@dataclass(frozen=True)
class RolloutFigures:
    """Cost of one run. tokens: newly generated. bookkeeping_seconds: of `seconds` what neither the engine nor the verifiers took: trees,
    samplers, scheduler. errors: of verifiers."""

    tokens: int
    requests: int
    seconds: float
    bookkeeping_seconds: float
    errors: int


def run(tasks: Sequence[Task], engine: Engine, mode: Mode, seed: int, progress=None, vocabulary: int | None = None) -> RolloutFigures:
    """Grows all trees in place until their samplers are exhausted.

    progress: a tqdm-like bar, advanced once per trajectory. vocabulary: ids from here on are out of vocabulary (sampled from padded
    logits) and make the response's reward 0 with status "oov"; default: the tokens that the tree's segmenter knows. A verifier that raises
    is logged and gives reward NaN, status "error". Raises ValueError for an unknown mode, a repeated uid (uids identify groups) or an
    engine that is busy.
    """
    started = time.perf_counter()
    if mode not in ("asynchronous", "lockstep"):
        raise ValueError(f"rollout mode {mode!r}; known: asynchronous, lockstep")
    if engine.pending:
        raise ValueError(f"the engine still holds {engine.pending} request(s) of an earlier run: step it until it is idle")
    if len({task.uid for task in tasks}) != len(tasks):
        raise ValueError("two tasks have the same uid: groups are identified by uid, give each task its own")
    growths = [_Growth(task, seed, vocabulary) for task in tasks]
    idle, owners, requests, tokens, stepping = growths, {}, 0, 0, 0.0
    while True:
        if mode == "asynchronous" or not engine.pending:
            for growth in idle:  # the requests of one tree stay together: they share a prefix
                for request in growth.ask():
                    engine.submit(request)
                    owners[request.id] = growth
                    requests += 1
            idle = []
        if not engine.pending:
            break
        entered = time.perf_counter()
        continuations = engine.step()
        stepping += time.perf_counter() - entered
        for continuation in continuations:
            growth = owners.pop(continuation.id)
            tokens += len(continuation.ids)
            if growth.take(continuation):
                idle.append(growth)
        if progress is not None and continuations:
            progress.set_postfix(tokens_per_s=f"{tokens / (time.perf_counter() - started):.0f}", refresh=False)
            progress.update(len(continuations))
    seconds = time.perf_counter() - started
    bookkeeping = seconds - stepping - sum(growth.verifying for growth in growths)
    return RolloutFigures(tokens, requests, seconds, bookkeeping, errors=sum(growth.errors for growth in growths))


def stable_seed(*parts: object) -> int:
    """A seed below 2**31 out of the texts of `parts`, the same on every machine (Python's own hash is salted)."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % 2**31


class _Growth:
    """One tree and the round it is in."""

    def __init__(self, task: Task, seed: int, vocabulary: int | None):
        self.task, self.seed = task, seed
        self.vocabulary = len(task.tree.segmenter.token_bytes) if vocabulary is None else vocabulary
        self.asked: dict[str, tuple[Node, tuple[int, ...]]] = {}  # node and ids before the continuation, in request order
        self.answers: dict[str, Continuation] = {}
        self.errors, self.verifying = 0, 0.0  # number, seconds

    def ask(self) -> list[Request]:
        """The requests of the sampler's next round that is not empty; [] when the tree is grown."""
        for branches in self.task.sampler:
            nodes = [branch.node for branch in branches for _ in range(branch.n)]
            if nodes:
                return [self._request(node, number) for number, node in enumerate(nodes, len(self.task.tree.trajectories))]
        return []

    def take(self, continuation: Continuation) -> bool:
        """Keeps an answer; with the last one of the round all are hung into the tree, and True is returned."""
        self.answers[continuation.id] = continuation
        if len(self.answers) < len(self.asked):
            return False
        for name, (node, prefix) in self.asked.items():
            answer = self.answers[name]
            verdict = self._score(prefix + answer.ids)
            self.task.tree.add(node, answer.ids, answer.logprobs, answer.finished, verdict.reward, verdict.status)
        self.asked, self.answers = {}, {}
        return True

    def _request(self, node: Node, number: int) -> Request:
        task, name, prefix = self.task, f"{self.task.uid}/{number}", self.task.tree.prefix_ids(node)
        self.asked[name] = node, prefix
        seed = stable_seed(self.seed, task.uid, number)
        return Request(name, tuple(task.prompt_ids) + prefix, task.tree.room(node), seed, generated=len(prefix))

    def _score(self, ids: tuple[int, ...]) -> Verdict:
        if max(ids, default=0) >= self.vocabulary:
            return Verdict(0.0, "oov")
        entered = time.perf_counter()
        try:
            return self.task.score(ids)
        except Exception:
            log.exception("the verifier failed on a response to %s; its reward is NaN", self.task.uid)
            self.errors += 1
            return Verdict(math.nan, "error")
        finally:
            self.verifying += time.perf_counter() - entered
