"""The page of case studies: single answers and trees, each picked by the rule it states, beside what the paper reports of its own."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from ibtpo.site import case_rules as rules
from ibtpo.site.forests import mean, picks, trajectories
from ibtpo.site.inputs import Inputs
from ibtpo.site.reading import read_yaml
from ibtpo.site.trees import policy_title, viewer


def cases(inputs: Inputs) -> dict[str, Any]:
    """Context of the page: `cases` in the order of cases.yaml, and `data` for the trees drawn on it."""
    studies = Studies(inputs)
    found = [
        {"id": name, "reported": None, **words, **NOTHING, **(getattr(studies, name)() or {})}
        for name, words in read_yaml("cases.yaml").items()
    ]
    shown = {(tree["forest"], tree["problem"]) for case in found for tree in case["trees"]}
    parts = {name: frame[[(name, uid) in shown for uid in frame["uid"]]] for name, frame in studies.frames.items()}
    return {"cases": found if studies.frames else [], "data": viewer(inputs, {name: part for name, part in parts.items() if len(part)})}


NOTHING = {"found": None, "rows": [], "answers": [], "trees": []}  # of a case


class Studies:
    """One method a case. Each returns what replaces NOTHING, or None where its rule finds nothing.

    found: a sentence. rows: of a table, by column. answers: full texts, each a title and its steps. trees: forest, problem, round and node.
    """

    def __init__(self, inputs: Inputs):
        self.inputs = inputs
        self.frames = {name: inputs.frame(name) for name in inputs.paths.forests}
        self.answers = {name: trajectories(frame) for name, frame in self.frames.items()}

    def alike(self) -> dict[str, Any]:
        pairs = {name: rules.most_alike(rows) for name, rows in self._of("independent").items()}
        found = {"rows": [self._pair(name, pair) for name, pair in pairs.items()]}
        name = min((name for name in pairs if pairs[name]), key=lambda name: pairs[name]["entropy"], default=None)
        if name is None:
            return found
        first, second, share = pairs[name]["first"], pairs[name]["second"], pairs[name]["overlap"]
        entropies = f"mean entropies {first.entropy:.3f} and {second.entropy:.3f}"
        text = f"{self._where(name, first.uid)}: {share:.0%} of the tokens in common, {entropies}."
        return {**found, "found": text, "answers": self._side_by_side(name, first, second)}

    def drift(self) -> dict[str, Any] | None:
        highest = {name: row for name, rows in self._of("independent").items() if (row := rules.highest_entropy(rows)) is not None}
        if not highest:
            return None
        name = max(highest, key=lambda name: highest[name]["entropy"])
        return {
            "found": f"{self._where(name, highest[name]['uid'])}: mean entropy {highest[name]['entropy']:.3f}.",
            "rows": [self._highest(other, row) for other, row in highest.items()],
            "answers": [self._answer(name, highest[name])],
        }

    def contrast(self) -> dict[str, Any] | None:
        policies = self.inputs.paths.forests
        first = [name for name, (policy, _) in policies.items() if policy == next(iter(policies.values()))[0]]
        found = rules.most_contrasting(self._together(first))
        if found is None:
            return None
        shares = ", ".join(f"{sampler} {share:.0%}" for sampler, share in found["shares"].items())
        trees = [self._tree(name, found["uid"]) for name in first]
        return {"found": f"{self._where(first[0], found['uid'])}: {shares} right.", "trees": trees}

    def late(self) -> dict[str, Any] | None:
        found = rules.latest_success(self._together(self._of("ibtree")))
        if found is None:
            return None
        name, uid, round, branch = self._name(found), found["uid"], found["round"], found["branch"]
        text = f"{self._where(name, uid)}: the first right answer came in round {round}, from {place(branch)}."
        return {"found": text, "trees": [self._tree(name, uid, round, branch)]}

    def deep(self) -> dict[str, Any] | None:
        found = rules.deepest_pick(self._picks)
        if found is None:
            return None
        name, uid, round, node = self._name(found), found["uid"], found["round"], found["node"]
        score = f"with the IB-Score {found['ib_score']:.3f}, rank {found['rank']} of {found['candidates']}"
        text = f"{self._where(name, uid)}: {place(node)} at depth {found['depth']}, in round {round}, {score}."
        return {"found": text, "trees": [self._tree(name, uid, round, node)]}

    def again(self) -> dict[str, Any] | None:
        found = rules.most_picked(self._picks)
        if found is None:
            return None
        name, uid, node, rounds = self._name(found["tree"]), found["tree"]["uid"], found["node"], found["rounds"]
        text = f"{self._where(name, uid)}: {place(node)} in {found['times']} rounds ({', '.join(map(str, rounds))})."
        return {"found": text, "trees": [self._tree(name, uid, rounds[-1], node)]}

    def _of(self, strategy: str) -> dict[str, pd.DataFrame]:
        """Trajectories of the forests that one strategy grew."""
        samplers = self.inputs.config.samplers
        return {name: rows for name, rows in self.answers.items() if samplers[self.inputs.paths.forests[name][1]].name == strategy}

    def _together(self, names) -> pd.DataFrame:
        parts = [self.answers[name] for name in names]
        return pd.concat(parts, ignore_index=True) if parts else trajectories(EMPTY)

    @cached_property
    def _picks(self) -> pd.DataFrame:
        parts = [picks(self.frames[name]) for name in self._of("ibtree")]
        return pd.concat(parts, ignore_index=True) if parts else picks(EMPTY)

    def _name(self, row) -> str:
        """The forest that a row comes from."""
        names = {(*self.inputs.paths.policies[policy], sampler): name for name, (policy, sampler) in self.inputs.paths.forests.items()}
        return names[row["method"], row["seed"], row["sampler"]]

    def _title(self, name: str) -> str:
        return policy_title(self.inputs, self.inputs.paths.forests[name][0])

    def _where(self, name: str, uid: str) -> str:
        frame = self.frames[name]
        return f"{self._title(name)}, problem {frame.loc[frame['uid'] == uid, 'prompt'].iloc[0]}"

    def _tree(self, name: str, uid: str, round: int | None = None, node: int | None = None) -> dict[str, Any]:
        address = {"problem": uid, "left": name} | ({} if round is None else {"round": round, "node": node})
        caption = f"{self._title(name)}, {self.inputs.paths.forests[name][1]}"
        return {"forest": name, "problem": uid, "round": round, "node": node, "caption": caption, "address": urlencode(address)}

    def _pair(self, name: str, pair: dict | None) -> dict[str, str]:
        both = (pair["first"], pair["second"]) if pair else ()
        return {
            "policy": self._title(name),
            "equal pairs, %": percent(rules.identical_share(self.answers[name])),
            "closest other pair: overlap, %": percent(pair["overlap"]) if pair else "",
            "tokens": " and ".join(str(len(one.ids)) for one in both),
            "mean entropies": " and ".join(f"{one.entropy:.3f}" for one in both),
            "mean entropy of all answers": f"{self.answers[name]['entropy'].mean():.3f}",
        }

    def _highest(self, name: str, row: Any) -> dict[str, str]:
        return {
            "policy": self._title(name),
            "highest mean entropy": f"{row.entropy:.3f}",
            "tokens": str(len(row.ids)),
            "outcome": outcome(row),
            "mean entropy of all answers": f"{self.answers[name]['entropy'].mean():.3f}",
        }

    def _steps(self, name: str, row: Any) -> list[dict[str, Any]]:
        """Steps of an answer: text, mean entropy (nats), differs (False)."""
        frame = self.frames[name]
        nodes = frame[frame["uid"] == row.uid].set_index("node").loc[row.nodes[1:]]
        entropies = [f"{mean(list(step.entropies)):.3f}" for step in nodes.itertuples()]
        return [{"text": text.strip(), "entropy": value, "differs": False} for text, value in zip(nodes["text"], entropies, strict=True)]

    def _answer(self, name: str, row: Any) -> dict[str, Any]:
        return {"title": f"{self._title(name)}, {len(row.ids)} tokens, {outcome(row)}", "steps": self._steps(name, row)}

    def _side_by_side(self, name: str, *both: Any) -> list[dict[str, Any]]:
        answers = [self._answer(name, row) for row in both]
        texts = [{step["text"] for step in answer["steps"]} for answer in answers]
        for answer, others in zip(answers, reversed(texts), strict=True):
            for step in answer["steps"]:
                step["differs"] = step["text"] not in others
        return answers


EMPTY = pd.DataFrame(columns=["method", "seed", "sampler", "uid", "node", "parent", "trajectories", "ids", "entropies", "history", "depth"])


def outcome(row: Any) -> str:
    """right, wrong or not scored; and cut off, if it did not end by itself."""
    word = "not scored" if row.reward != row.reward else "right" if row.reward == 1 else "wrong"
    return word if row.finished else f"{word}, cut off"


def place(node: int) -> str:
    return f"node {node}" if node else "the problem"


def percent(share: float) -> str:
    return "" if share != share else f"{100 * share:.0f}"
