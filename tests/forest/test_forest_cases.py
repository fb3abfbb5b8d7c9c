"""Case studies: each rule on trajectories and picks by hand, the tidy tables they read, and the page's context."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
from growing import LIKE, PROMPT, SPECS, forest, growth

from ibtpo.config import load
from ibtpo.io import read_parquet, write_parquet
from ibtpo.site import case_rules as rules
from ibtpo.site.cases import cases
from ibtpo.site.forests import PICKS, TRAJECTORIES, path_of, picks, trajectories
from ibtpo.site.inputs import Inputs
from ibtpo.site.trees import STATE, trees


def answers(*rows):
    """Trajectories: (uid, reward, ids, entropy[, sampler, round])."""
    known = []
    for number, (uid, reward, ids, entropy, *more) in enumerate(rows):
        sampler, round = [*more, *["s", 0][len(more) :]]
        known.append({"method": "m", "seed": 0, "sampler": sampler, "uid": uid, "number": number, "round": round, "reward": reward})
        known[-1] |= {"ids": list(ids), "entropy": entropy}
    return pd.DataFrame(known, columns=TRAJECTORIES)


def picked(*rows):
    """Picks: (uid, round, node, depth)."""
    known = [{"method": "m", "seed": 0, "sampler": "s", "uid": u, "round": r, "node": n, "depth": d} for u, r, n, d in rows]
    return pd.DataFrame(known, columns=PICKS)


def test_overlap_is_the_share_of_common_tokens():
    assert rules.overlap([1, 2, 3, 4], [1, 2, 3, 5]) == 0.75
    assert rules.overlap([1, 2], [1, 2]) == 1 and rules.overlap([1], [2]) == 0


def test_most_alike_is_the_highest_overlap_then_the_lowest_entropy():
    rows = answers(
        ("p", 1, "abcd", 0.5), ("p", 1, "abcx", 0.4), ("p", 1, "abcd", 0.1), ("p", 0, "abcy", 0.0), ("q", 1, "abcz", 0.0),
        ("q", 1, "wwwz", 0.0), ("q", 1, "xyzz", 0.9),
    )  # fmt: skip
    found = rules.most_alike(rows)
    assert (found["first"].number, found["second"].number) == (1, 2)  # equal answers and a wrong one do not count, nor other problems
    assert found["overlap"] == 0.75 and found["entropy"] == pytest.approx(0.25)
    assert rules.identical_share(rows) == pytest.approx(1 / 6)


def test_no_pair_of_right_answers_no_case():
    assert rules.most_alike(answers(("p", 1, "ab", 0.1), ("p", 1, "ab", 0.1), ("q", 1, "ac", 0.1))) is None
    assert math.isnan(rules.identical_share(answers(("p", 1, "ab", 0.1))))


def test_highest_entropy_leaves_out_empty_answers_and_takes_the_first():
    assert rules.highest_entropy(answers(("p", 1, "a", 0.5), ("p", 0, "b", 0.7), ("q", 0, "c", 0.7), ("q", 0, "", math.nan)))["number"] == 1
    assert rules.highest_entropy(answers(("p", 0, "", math.nan))) is None


def test_most_contrasting_compares_the_shares_of_samplers():
    rows = answers(
        ("p", 1, "a", 0.1, "s"), ("p", 0, "a", 0.1, "t"), ("p", 1, "a", 0.1, "t"), ("q", 1, "a", 0.1, "s"), ("q", 0, "a", 0.1, "t")
    )  # fmt: skip
    assert rules.most_contrasting(rows) == {"uid": "q", "shares": {"s": 1.0, "t": 0.0}, "range": 1.0}
    assert rules.most_contrasting(answers()) is None


def test_latest_success_needs_first_rollouts_that_all_failed():
    rows = answers(
        ("p", 0, "a", 0.1, "s", 0), ("p", 1, "b", 0.1, "s", 3), ("p", 1, "c", 0.1, "s", 8), ("q", 1, "d", 0.1, "s", 0),
        ("q", 1, "e", 0.1, "s", 9), ("r", 1, "f", 0.1, "s", 5), ("r", 1, "g", 0.1, "s", 6),
    )  # fmt: skip
    found = rules.latest_success(rows)
    assert (found["uid"], found["round"], found["number"]) == ("r", 5, 5)
    assert rules.latest_success(rows[rows["uid"] == "q"]) is None


def test_deepest_and_most_frequent_picks():
    rows = picked(("p", 1, 4, 2), ("p", 2, 7, 3), ("p", 3, 4, 2), ("q", 1, 5, 3), ("q", 5, 4, 3), ("q", 6, 5, 3))
    found = rules.deepest_pick(rows)
    assert (found["uid"], found["round"], found["node"]) == ("q", 6, 5)
    again = rules.most_picked(rows)
    assert (again["tree"]["uid"], again["node"], again["times"], again["rounds"]) == ("p", 4, 2, [1, 3])
    assert rules.deepest_pick(picked()) is None and rules.most_picked(picked()) is None


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    """An artifact as it is read from a file."""
    path = tmp_path_factory.mktemp("forest") / "f.parquet"
    write_parquet(forest("base", 0, "ibtree12", SPECS["ibtree8"], ("q0", "q1")), path)
    return read_parquet(path)


def test_tidy_trajectories_are_those_of_the_trees(frame):
    found = trajectories(frame)
    assert list(found.columns) == TRAJECTORIES
    for number, (_, rows) in enumerate(found.groupby("uid")):
        tree = growth("ibtree8", number).tree
        assert rows["ids"].tolist() == [list(t.ids) for t in tree.trajectories]
        assert rows["nodes"].tolist() == [[node.index for node in t.leaf.path] for t in tree.trajectories]
        assert rows["reward"].tolist() == [t.reward for t in tree.trajectories]
        shared = [value for t in tree.trajectories for value in [sum(-p for n in t.leaf.path for p in n.logprobs) / len(t.ids)]]
        assert rows["entropy"].tolist() == pytest.approx(shared)


def test_tidy_picks_are_the_expansions(frame):
    found = picks(frame)
    assert list(found.columns) == PICKS
    for number, (_, rows) in enumerate(found.groupby("uid")):
        made = growth("ibtree8", number)
        assert rows["node"].tolist() == [node.index for node in made.tree.expansions]
        assert rows["rank"].tolist() == [1] * len(rows) and rows["round"].tolist() == list(range(1, len(rows) + 1))
        assert rows["candidates"].tolist() == [
            sum(bool(h["rank"]) for hs in made.history.values() for h in hs if h["round"] == r) for r in rows["round"]
        ]


def test_path_of():
    assert path_of(pd.Series({0: -1, 1: 0, 2: 1, 3: 0}), 2) == [0, 1, 2]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Forests of two policies and three samplers, and no other artifact."""
    policies = {"base": ("base", 0), "grpo-seed0": ("grpo", 0)}
    made = Inputs(load("tiny", {"forest": {"policies": ["base", "grpo"]}}), tmp_path_factory.mktemp("site"))
    for draw, (policy, (method, seed)) in enumerate(policies.items()):
        for sampler, spec in LIKE.items():
            path = made.out / f"{policy}-{sampler}.parquet"
            write_parquet(forest(method, seed, sampler, SPECS[spec], ("q0", "q1", "q2"), draw=9 * draw), path)
            made._frames[f"forest-{policy}-{sampler}"] = read_parquet(path)
    return made


def test_the_viewer_has_every_tree(inputs):
    context = trees(inputs)
    data = context["data"]
    assert context["pairs"] == 6 and [one["name"] for one in data["forests"]] == list(inputs.paths.forests)
    assert data["problems"]["q0"]["prompt"] == PROMPT and data["state"] == list(STATE)
    for one in data["forests"]:
        for uid, tree in one["trees"].items():
            frame = inputs.frame(one["name"])
            rows = frame[frame["uid"] == uid]
            assert [node["text"] for node in tree["nodes"]] == rows["text"].tolist()
            assert [node["parent"] for node in tree["nodes"]] == rows["parent"].tolist()
            assert [node["ib_score"] is None for node in tree["nodes"]] == rows["ib_score"].isna().tolist()
            assert [end["number"] for end in tree["trajectories"]] == list(range(8))
            assert tree["rounds"] == (1 if one["strategy"] == "independent" else 5)
    json.dumps(data, allow_nan=False)


def test_the_cases_are_found_by_their_rules(inputs):
    context = cases(inputs)
    found = {case["id"]: case for case in context["cases"]}
    assert list(found) == ["alike", "drift", "contrast", "late", "deep", "again"]
    highest = {name: trajectories(inputs.frame(f"forest-{name}-independent12"))["entropy"].max() for name in ("base", "grpo-seed0")}
    assert f"mean entropy {max(highest.values()):.3f}" in found["drift"]["found"]
    assert [row["highest mean entropy"] for row in found["drift"]["rows"]] == [f"{value:.3f}" for value in highest.values()]
    deepest = max(picks(inputs.frame(f"forest-{name}-ibtree12"))["depth"].max() for name in highest)
    assert f"at depth {deepest}" in found["deep"]["found"]
    assert [tree["forest"] for tree in found["contrast"]["trees"]] == [f"forest-base-{s}12" for s in ("independent", "eptree", "ibtree")]
    assert all(case["rule"] and (case["found"] is None) == (not case["answers"] and not case["trees"]) for case in found.values())
    drawn = {(one["name"], uid) for one in context["data"]["forests"] for uid in one["trees"]}
    assert drawn == {(tree["forest"], tree["problem"]) for case in found.values() for tree in case["trees"]}
    json.dumps(context["data"], allow_nan=False)
    assert cases(inputs) == context


def test_a_preset_without_forests_has_pages_that_say_so(tmp_path):
    bare = Inputs(load("tiny", {"forest": {"policies": []}}), tmp_path)
    assert trees(bare) == {"pairs": 0, "data": {"problems": {}, "state": list(STATE), "forests": []}}
    assert cases(bare)["cases"] == []
