"""What is recorded of a growing tree, held against the same tree grown again round by round."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from growing import SPECS, growth, surprisals, task
from helpers import hang, make_tree

from ibtpo.advantages import estimate
from ibtpo.config.methods import Advantage
from ibtpo.evaluation import forest
from ibtpo.evaluation.forest import entropies, of_nodes, rows, state
from ibtpo.tree import density, information_gain

SEEDS = range(8)
GROWING = [name for name in SPECS if name != "independent8"]


def again(made, rounds: int):
    """The tree as it was after its first `rounds` rounds: the same trajectories from nodes of the same number."""
    tree = task(made.spec, 0).tree
    for number, trajectory in enumerate(made.tree.trajectories):
        if made.round_of_trajectory(number) < rounds:
            new = slice(len(trajectory.ids) - trajectory.new_tokens, None)
            node = tree.nodes[trajectory.branch.index]
            tree.add(node, trajectory.ids[new], trajectory.logprobs[new], trajectory.finished, trajectory.reward)
    return tree


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name in GROWING if name != "eptree8"])
def test_history_is_what_the_tree_was_before_each_round(name, seed):
    made = growth(name, seed)
    assert len(made.first) > 1
    for number in range(1, len(made.first)):
        before = again(made, number)
        records = {index: record for index, history in made.history.items() for record in history if record["round"] == number}
        assert set(records) == {node.index for node in before.nodes}
        for index, record in records.items():
            expected = state(before, before.nodes[index], made.spec.beta)
            assert {key: record[key] for key in expected} == expected
        assert {index for index, record in records.items() if record["rank"]} == {n.index for n in before.candidates(made.spec.min_room)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["ibtree8", "ibtree-wide"])
def test_ibtree_picks_the_first_of_the_ranking(name, seed):
    """The ranking that is shown is the one that the sampler went by."""
    made = growth(name, seed)
    for number in range(1, len(made.first)):
        asked = {h["rank"]: h["asked"] for history in made.history.values() for h in history if h["round"] == number and h["asked"]}
        assert asked == dict.fromkeys(range(1, made.spec.nodes + 1), made.spec.branches)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SPECS)
def test_rounds_account_for_every_node_trajectory_and_continuation(name, seed):
    made = growth(name, seed)
    assert len(made.tree.trajectories) == made.spec.group_size and made.grown[-1] == len(made.tree.nodes)
    rounds = [made.round_of_trajectory(number) for number in range(len(made.tree.trajectories))]
    assert rounds == sorted(rounds) and set(rounds) == set(range(len(made.first)))
    picked = [(h["round"], index) for index, history in made.history.items() for h in history for _ in range(h["asked"])]
    assert sorted(picked) == sorted((r, t.branch.index) for r, t in zip(rounds, made.tree.trajectories, strict=True) if r)
    for node in made.tree.nodes:
        through = [r for r, t in zip(rounds, made.tree.trajectories, strict=True) if node in t.leaf.path]
        if node.cut:
            assert made.round_of_node(node.index) >= through[0]  # split off by a later fork
        else:
            assert made.round_of_node(node.index) == (through[0] if node.parent else 0)
        assert [h["round"] for h in made.history[node.index]] == list(
            range(max(1, made.round_of_node(node.index) + (not node.cut)), len(made.first))
        )


def test_a_fork_inside_a_step_belongs_to_its_round():
    made = growth("eptree8", 3)
    cut = [node for node in made.tree.nodes if node.cut]
    assert cut
    for node in cut:
        first = made.history[node.index][0]
        assert first["round"] == made.round_of_node(node.index) and first["asked"] == 1


@pytest.mark.parametrize("name", SPECS)
def test_rows_are_the_grown_tree(name):
    made = growth(name, 1, rewards=(0.0, 1.0, math.nan))
    tree, found = made.tree, rows(made, surprisals(made.tree))
    assert [row["node"] for row in found] == list(range(len(tree.nodes)))
    for row, node in zip(found, tree.nodes, strict=True):
        assert row["parent"] == (node.parent.index if node.parent else -1)
        assert (row["ids"], row["pi"], row["draws"], row["wins"]) == (list(node.ids), node.pi, node.draws, node.wins)
        assert {key: row[key] for key in ("count", "density", "ratio", "ib_score")} == state(tree, node, made.spec.beta)
        assert row["entropies"] == pytest.approx([-value for value in node.logprobs])
        assert row["text"] == tree.segmenter.text(node.ids)
    ends = sorted((end | {"leaf": row["node"]} for row in found for end in row["trajectories"]), key=lambda end: end["number"])
    assert [end["leaf"] for end in ends] == [t.leaf.index for t in tree.trajectories]
    assert [end["reward"] for end in ends] == [None if math.isnan(t.reward) else t.reward for t in tree.trajectories]
    assert [end["new_tokens"] for end in ends] == [t.new_tokens for t in tree.trajectories]


@pytest.mark.parametrize("name", ["ibtree8", "eptree8", "independent8"])
def test_advantages_are_those_of_training(name):
    """global + local is the advantage of every token of every scored trajectory; GRPO's is the same on all tokens of one."""
    made = growth(name, 2, rewards=(0.0, 1.0, math.nan))
    found = rows(made, surprisals(made.tree))
    ends = {end["number"]: end for row in found for end in row["trajectories"]}
    rewards = [t.reward for t in made.tree.trajectories if not math.isnan(t.reward)]
    std = statistics.stdev(rewards) + 1e-4
    for row, node in zip(found[1:], made.tree.nodes[1:], strict=True):
        if node.count:
            assert row["global_advantage"] == pytest.approx((density(node) - density(made.tree.root)) / std)
            assert row["local_advantage"] == pytest.approx(0.1 * information_gain(node, 5.0) * node.pi)
    ours, grpo = (estimate([made.tree], Advantage(name=each)) for each in ("ibtpo", "grpo"))
    for number, trajectory in enumerate(made.tree.trajectories):
        if not math.isnan(trajectory.reward):
            parts = [found[node.index] for node in trajectory.nodes]
            assert [part["global_advantage"] + part["local_advantage"] for part in parts] == pytest.approx(ours[number].tolist())
        assert set(grpo[number].tolist()) == {ends[number]["grpo_advantage"]}
    assert found[0]["global_advantage"] is None and found[0]["local_advantage"] is None


def test_golden_advantages():
    """D.1: pi = .9, .8, .7, .6 and rewards 1, 0, 0, 0."""
    tree = make_tree()
    for text, reward, pi in zip("abcd", (1, 0, 0, 0), (0.9, 0.8, 0.7, 0.6), strict=True):
        hang(tree, tree.root, text + "$", reward, pi)
    whole, from_root = of_nodes(tree, Advantage(name="ibtpo")), of_nodes(tree, Advantage(name="ibtpo", local_weight=0.0))
    assert [from_root[i] for i in range(1, 5)] == pytest.approx([1.4997, -0.4999, -0.4999, -0.4999], abs=1e-4)
    assert [whole[i] - from_root[i] for i in range(1, 5)] == pytest.approx([0.252, -0.096, -0.084, -0.072], abs=1e-4)


class Echo:
    """A model whose logits at a position are `scale` at the token there and 0 elsewhere, out of `size` tokens."""

    device = torch.device("cpu")

    def __init__(self, size: int, scale: list[float]):
        self.size, self.scale = size, torch.tensor(scale)

    def __call__(self, ids):
        one_hot = torch.nn.functional.one_hot(ids, self.size) * self.scale[ids].unsqueeze(-1)
        return type("Output", (), {"logits": one_hot})


def test_entropies_are_those_before_each_token_at_the_temperature():
    """The distribution of token t is what the model says behind token t - 1; here logits of (x, 0, 0)."""
    scale = [0.0, 1.0, 4.0]

    def entropy(logit):
        p = torch.softmax(torch.tensor([logit, 0.0, 0.0], dtype=torch.float64), 0)
        return float(-(p * p.log()).sum())

    for temperature in (1.0, 0.5):
        found = entropies(Echo(3, scale), (0, 2), (1, 0, 2), temperature)
        assert found == pytest.approx([entropy(scale[token] / temperature) for token in (2, 1, 0)], abs=1e-5)
    assert entropies(Echo(3, scale), (0,), (), 1.0) == []


def test_entropies_are_taken_a_few_tokens_at_a_time(monkeypatch):
    """In float64, all logits of a long response at once would take gigabytes. Slices change no value."""
    sizes, categorical = [], torch.distributions.Categorical

    def counted(logits):
        sizes.append(len(logits))
        return categorical(logits=logits)

    model, ids = Echo(3, [0.0, 1.0, 4.0]), [0, 1, 2, 2, 1]
    whole = entropies(model, (0, 2), ids, 0.7)
    monkeypatch.setattr(forest, "SLICE", 2)
    monkeypatch.setattr(torch.distributions, "Categorical", counted)
    assert entropies(model, (0, 2), ids, 0.7) == whole and len(whole) == len(ids)
    assert sizes == [2, 2, 1]
