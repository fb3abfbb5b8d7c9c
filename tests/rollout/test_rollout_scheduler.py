import math
import random
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo import IbtpoError
from ibtpo.config.models import Sampler
from ibtpo.engines.base import Continuation, EngineError, Request
from ibtpo.engines.scripted import ScriptedEngine
from ibtpo.rollout.scheduler import Task, run, stable_seed
from ibtpo.samplers import SAMPLERS, Branch
from ibtpo.tree import ReasoningTree, Segmenter
from ibtpo.verifiers import GoldError, Verdict

TOKENS = [b"a", b"b", b".\n\n", b"\n", b""]
EOS, MAX_TOKENS = 4, 24
SEGMENTER = Segmenter(TOKENS, EOS)


def policy(weights):
    """An answer that depends on the request alone, token ids drawn with `weights`; [0, ...] never emits EOS or never a delimiter."""

    def answer(request: Request):
        rng, ids = random.Random(str((request.seed, request.prompt_ids))), []
        while len(ids) < request.max_tokens and EOS not in ids:
            ids += rng.choices(range(len(weights)), weights)
        return ids, [math.log(0.1 + 0.8 * rng.random()) for _ in ids], ids[-1] == EOS

    return answer


def empty(request: Request):
    return (), (), False


POLICIES = {
    "usual": policy([3, 3, 2, 1, 1]),
    "never EOS": policy([3, 3, 2, 1, 0]),
    "never a delimiter": policy([3, 3, 0, 0, 1]),
    "neither": policy([1, 1, 0, 0, 0]),
    "EOS at once": policy([0, 0, 0, 0, 1]),
    "empty": empty,
}
SPECS = [
    Sampler(name="independent", group_size=5),
    Sampler(name="ibtree", group_size=12, initial=4, iterations=9, nodes=1, branches=1, min_room=4),
    Sampler(name="ibtree", group_size=14, initial=2, iterations=3, nodes=3, branches=2, min_room=4),
    Sampler(name="random", group_size=8, initial=2, iterations=4, nodes=2, branches=1, min_room=4),
]


def score(ids):
    return Verdict(float(sum(ids) % 3 == 0), "ok")


def make(uid, spec, score=score, seed=0):
    tree = ReasoningTree(uid, SEGMENTER, MAX_TOKENS)
    sampler = SAMPLERS[spec.name](tree, spec, np.random.default_rng(stable_seed(seed, uid)))
    return Task(uid, (1, 2, 3), sampler, tree, score)


def content(tree):
    return [(t.ids, t.logprobs, t.reward, t.status, t.finished, t.branch.index, [n.index for n in t.nodes]) for t in tree.trajectories]


def grow(specs, mode, answer, seed=0, order=0, most=3):
    tasks = [make(f"problem{i}", spec, seed=seed) for i, spec in enumerate(specs)]
    engine = ScriptedEngine(answer, seed=order, most=most)
    figures = run(tasks, engine, mode, seed)
    assert engine.pending == 0
    assert figures.tokens == engine.figures()["generated_tokens"] == sum(task.tree.generated_tokens for task in tasks)
    assert figures.requests == engine.figures()["requests"] == sum(spec.group_size for spec in specs)
    return [task.tree for task in tasks]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(POLICIES)),
    specs=st.lists(st.sampled_from(SPECS), min_size=1, max_size=5),
    seed=st.integers(0, 2**40),
    orders=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    most=st.integers(1, 9),
)
def test_trees_are_whole_and_the_same_in_both_modes(name, specs, seed, orders, most):
    asynchronous = grow(specs, "asynchronous", POLICIES[name], seed, orders[0], most)
    lockstep = grow(specs, "lockstep", POLICIES[name], seed, orders[1])
    assert [content(tree) for tree in asynchronous] == [content(tree) for tree in lockstep]
    for spec, tree in zip(specs, asynchronous, strict=True):
        assert len(tree.trajectories) == tree.root.count == spec.group_size
        assert all(len(t.ids) <= MAX_TOKENS and (EOS in t.ids) == t.finished for t in tree.trajectories)
        if name == "never a delimiter":
            assert all(t.branch is tree.root for t in tree.trajectories)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(spec=st.sampled_from(SPECS), seed=st.integers(0, 2**40), others=st.integers(1, 5))
def test_a_tree_does_not_depend_on_its_batch(spec, seed, others):
    alone = grow([spec], "asynchronous", POLICIES["usual"], seed)[0]
    among = grow([spec] + [SPECS[1]] * others, "lockstep", POLICIES["usual"], seed, order=7)[0]
    assert content(alone) == content(among)


def test_seeds_and_problems_differ():
    spec = SPECS[0]
    first, second = grow([spec, spec], "asynchronous", POLICIES["usual"], seed=0)
    other = grow([spec], "asynchronous", POLICIES["usual"], seed=1)[0]
    assert len({str([row[0] for row in content(tree)]) for tree in (first, second, other)}) == 3


class Slow(ScriptedEngine):
    """Tree A's requests finish only when nothing else is left."""

    def __init__(self):
        super().__init__(POLICIES["usual"])
        self.log = []

    def submit(self, request):
        super().submit(request)
        self.log.append(request.id)

    def step(self):
        name = max(self._waiting)  # "b/..." before "a/..."
        return [self._finish(self._waiting.pop(name))]


@pytest.mark.parametrize("mode", ["asynchronous", "lockstep"])
def test_only_lockstep_waits_for_the_slowest(mode):
    engine = Slow()
    run([make("a", SPECS[1]), make("b", SPECS[1])], engine, mode, seed=0)
    start = [f"a/{i}" for i in range(4)] + [f"b/{i}" for i in range(4)]  # the requests of a tree stay together
    assert engine.log[:8] == start
    rest = (
        [f"{uid}/{i}" for i in range(4, 12) for uid in "ba"] if mode == "lockstep" else [f"{uid}/{i}" for uid in "ba" for i in range(4, 12)]
    )
    assert engine.log[8:] == rest


def test_rounds_without_branches_are_passed_over():
    tree = ReasoningTree("u", SEGMENTER, MAX_TOKENS)

    def sampler():
        for n in (0, 2, 0, 1):
            yield [Branch(tree.root, n)]
        yield []

    figures = run([Task("u", (1,), sampler(), tree, score)], ScriptedEngine(POLICIES["usual"]), "lockstep", 0)
    assert figures.requests == len(tree.trajectories) == 3


def test_out_of_vocabulary_ids():
    asked = []

    def remember(ids):
        asked.append(ids)
        return Verdict(1.0, "ok")

    def answer(request):
        return ((0, 5) if request.id.endswith("/1") else (0, EOS)), (-0.1, -0.2), True

    task = make("u", SPECS[0], remember)
    run([task], ScriptedEngine(answer), "asynchronous", 0)
    assert [(t.reward, t.status) for t in task.tree.trajectories] == [(1, "ok"), (0, "oov"), (1, "ok"), (1, "ok"), (1, "ok")]
    assert asked == [(0, EOS)] * 4, "the verifier must not see ids that it cannot decode"
    task = make("v", SPECS[0], remember)
    run([task], ScriptedEngine(answer), "asynchronous", 0, vocabulary=EOS)
    assert {t.status for t in task.tree.trajectories} == {"oov"}


def test_a_failing_verifier_is_reported(caplog):
    def fail(ids):
        if ids[0] == 0:
            raise RuntimeError("sandbox is gone")
        return Verdict(1.0, "ok")

    task = make("u", SPECS[0], fail)
    figures = run([task], ScriptedEngine(POLICIES["usual"]), "lockstep", 0)
    wrong = [t for t in task.tree.trajectories if t.ids[0] == 0]
    assert 0 < len(wrong) == figures.errors < 5
    assert all(math.isnan(t.reward) and t.status == "error" for t in wrong)
    assert task.tree.root.count == task.tree.root.wins == 5 - len(wrong)
    assert caplog.text.count("sandbox is gone") >= len(wrong)


def test_a_verifier_that_cannot_work_ends_the_run():
    """A sandbox or a worker that is missing fails on every response; a bad gold answer only on those to its problem."""

    def fail(error):
        def score(ids):
            raise error

        return score

    with pytest.raises(IbtpoError, match="no worker starts"):
        run([make("u", SPECS[0], fail(IbtpoError("no worker starts")))], ScriptedEngine(POLICIES["usual"]), "lockstep", 0)
    task = make("u", SPECS[0], fail(GoldError("no gold answer")))
    assert run([task], ScriptedEngine(POLICIES["usual"]), "lockstep", 0).errors == len(task.tree.trajectories) > 0


def test_refusals():
    engine = ScriptedEngine(POLICIES["usual"])
    with pytest.raises(ValueError, match="same uid"):
        run([make("u", SPECS[0]), make("u", SPECS[0])], engine, "lockstep", 0)
    with pytest.raises(ValueError, match="known: asynchronous, lockstep"):
        run([], engine, "eager", 0)
    engine.submit(Request("x", (1,), 1, 0))
    with pytest.raises(ValueError, match="still holds 1 request"):
        run([make("u", SPECS[0])], engine, "lockstep", 0)


def test_a_request_the_engine_refuses_is_an_error():
    with pytest.raises(EngineError, match="exceeds the model length 8"):
        run([make("u", SPECS[0])], ScriptedEngine(POLICIES["usual"], max_model_len=8), "lockstep", 0)


def test_figures_and_progress():
    class Sleepy(ScriptedEngine):
        def step(self) -> list[Continuation]:
            time.sleep(0.01)
            return super().step()

    updates, postfix = [], []
    bar = SimpleNamespace(update=updates.append, set_postfix=lambda **values: postfix.append(values))
    tasks = [make("a", SPECS[0]), make("b", SPECS[1])]
    figures = run(tasks, Sleepy(POLICIES["usual"]), "asynchronous", 0, progress=bar)
    assert sum(updates) == 17 and float(postfix[-1]["tokens_per_s"]) == pytest.approx(figures.tokens / figures.seconds, rel=0.2)
    assert figures.seconds - figures.bookkeeping_seconds >= 0.01 * len(postfix) > 0 < figures.bookkeeping_seconds
    assert run([], Sleepy(POLICIES["usual"]), "lockstep", 0).tokens == 0


def test_stable_seed():
    assert stable_seed("a", 1, 2) == 1742963268
    assert stable_seed("a", 12) != stable_seed("a", 1, 2)
    seeds = {stable_seed(0, "u", i) for i in range(5000)}
    assert len(seeds) == 5000 and all(0 <= seed < 2**31 for seed in seeds)
