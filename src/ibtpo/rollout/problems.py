"""From a problem to a task for the scheduler: prompt ids, an empty tree, the sampler that grows it and the verifier that scores it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ibtpo import IbtpoError
from ibtpo.config.models import Sampler
from ibtpo.io import read_parquet
from ibtpo.rollout.chat import encode_prompt
from ibtpo.rollout.scheduler import Task, stable_seed
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter
from ibtpo.verifiers import KINDS, Verdict, last_boxed, maths_answer, verify

REWARDS = ("verifier", "random", "format")


@dataclass(frozen=True)
class Problem:
    """One row of a problem set. `uid` identifies the group; two problems with the same text are two groups.

    system: system prompt, "" for none. examples: JSON list of pairs of prompt and response that open the chat, "" for none.
    """

    uid: str
    family: str
    prompt: str
    metadata: str
    system: str = ""
    examples: str = ""


def load_problems(path: str | Path, limit: int | None = None) -> list[Problem]:
    """Reads a problem set (Parquet). Raises IbtpoError if it is empty, lacks a column, a verifier or a gold answer, or repeats a uid."""
    frame = read_parquet(path)
    missing = {"uid", "family", "prompt", "metadata"} - set(frame.columns)
    if missing:
        raise IbtpoError(f"{path}: missing column(s) {sorted(missing)}; rebuild the data (columns: docs/data.md)")
    if frame.empty:
        raise IbtpoError(f"{path} holds no problems; rebuild the data")
    if frame["uid"].duplicated().any():
        raise IbtpoError(f"{path}: uid {frame['uid'][frame['uid'].duplicated()].iloc[0]!r} occurs twice; rebuild the data")
    rows = frame.head(limit) if limit else frame
    columns = [field.name for field in fields(Problem) if field.name in frame.columns]
    problems = [Problem(**row) for row in rows[columns].to_dict("records")]
    for problem in problems:
        where = f"{path}: {problem.uid}"
        if problem.family not in KINDS:
            raise IbtpoError(f"{where} is of the family {problem.family!r}, which no verifier knows; known: {', '.join(KINDS)}")
        if problem.family == "maths" and not maths_answer(problem.metadata):
            raise IbtpoError(f'{where} has no gold answer; metadata of maths problems are a JSON text such as {{"answer": "42"}}')
    return problems


class Prompter:
    """Everything of the tokenizer that a rollout needs. Ids are never re-tokenised; text is decoded only to be verified.

    max_tokens: response tokens. reward: "verifier", or a control [OURS]: "random", a coin of probability 1/2 that is a hash of (seed, uid
    of the problem, response ids), or "format", 1 iff the response has a boxed answer that is not blank. Raises ValueError for another one.
    """

    def __init__(self, tokenizer, max_tokens: int, reward: str = "verifier", seed: int = 0):
        if reward not in REWARDS:
            raise ValueError(f"reward {reward!r}; known: {', '.join(REWARDS)}")
        self.tokenizer = tokenizer
        self.segmenter = Segmenter.from_tokenizer(tokenizer)
        self.max_tokens = max_tokens
        self.reward, self.seed = reward, seed

    def encode(self, problem: Problem) -> tuple[int, ...]:
        """Ids of the chat prompt up to where the response begins."""
        examples = json.loads(problem.examples) if problem.examples else ()
        return tuple(encode_prompt(self.tokenizer, problem.prompt, problem.system, examples))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of response ids, without special tokens."""
        return self.segmenter.text(ids)

    def task(self, problem: Problem, sampler: Sampler, seed: int, uid: str | None = None, prefix: tuple[int, ...] = ()) -> Task:
        """A tree rooted behind `prefix`, a part of a response to `problem` (empty: at the problem itself).

        `uid` names the tree if several are grown for one problem. Rewards are of the whole response, prefix included.
        """
        uid = uid or problem.uid
        tree = make_tree(uid, sampler, self.segmenter, self.max_tokens - len(prefix), seed)
        rng = np.random.default_rng(stable_seed(seed, uid))
        rounds, score = SAMPLERS[sampler.name](tree, sampler, rng), self._score(problem, prefix)
        return Task(uid, self.encode(problem) + prefix, rounds, tree, score, generated=len(prefix))

    def _score(self, problem: Problem, prefix: tuple[int, ...]) -> Callable[[tuple[int, ...]], Verdict]:
        def verified(ids: tuple[int, ...]) -> Verdict:
            return verify(problem.family, problem.metadata, self.decode(prefix + ids))

        def coin(ids: tuple[int, ...]) -> Verdict:
            return Verdict(float(stable_seed("reward", self.seed, problem.uid, *prefix, *ids) % 2), "ok")

        def boxed(ids: tuple[int, ...]) -> Verdict:
            return Verdict(1.0, "ok") if last_boxed(self.decode(prefix + ids)).strip() else Verdict(0.0, "parse_failed")

        return {"verifier": verified, "random": coin, "format": boxed}[self.reward]
