"""The tiny verifier: boxes, hostile answers, and agreement with reasoning-gym's own checker."""

import json
import time

import pytest
import reasoning_gym
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.verifiers import FAMILIES, Verdict, last_boxed, verify
from ibtpo.world import FAMILIES as WORLD_FAMILIES

COUNTDOWN = json.dumps({"numbers": [9, 4, 7], "target": 12, "answer": "9 - 4 + 7"})
SUM = json.dumps({"answer": "-12"})
RIGHT, WRONG, UNPARSED = Verdict(1.0, "ok"), Verdict(0.0, "ok"), Verdict(0.0, "parse_failed")
exact = settings(derandomize=True, deadline=None, max_examples=300)


def test_every_family_of_the_world_has_a_verifier():
    assert set(FAMILIES) == set(WORLD_FAMILIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\boxed{-12}", RIGHT),
        ("first \\boxed{5}, then\n\n\\boxed{-12}", RIGHT),
        ("\\boxed{-12} checks: \\boxed{-12}", RIGHT),
        ("\\boxed{-12} and so \\boxed{5}", WRONG),
        ("\\boxed{3} or \\boxed{-12}", WRONG),
        ("\\boxed{-12} or \\boxed{-12}", RIGHT),
        ("\\boxed{\\boxed{-12}}", RIGHT),
        ("\\boxed{ - 12 }", RIGHT),
        ("\\boxed{-12.0}", RIGHT),
        ("\\boxed{-12.5}", UNPARSED),
        ("\\boxed{12}", WRONG),
        ("", UNPARSED),
        ("-12", UNPARSED),
        ("\\boxed{}", UNPARSED),
        ("\\boxed{ \n}", UNPARSED),
        ("\\boxed{-12", UNPARSED),
        ("\\boxed{-12} no, \\boxed{5", UNPARSED),
        ("\\boxed{\\text{-12}}", UNPARSED),
        ("\\boxed{-\u0661\u0662}", UNPARSED),
    ],
)
def test_integer_answers(text, expected):
    assert verify("chain-sum", SUM, text) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("9-4+7", RIGHT),
        ("7 + 9 - 4", RIGHT),
        ("-4+9+7", RIGHT),
        ("+9-4+7", RIGHT),
        ("9+4-7", WRONG),
        ("9+4-1", WRONG),
        ("16-4", WRONG),
        ("9-4+7+0", WRONG),
        ("12", WRONG),
        ("9-4+7=12", UNPARSED),
        ("9-4+07", UNPARSED),
        ("(9-4)+7", UNPARSED),
        ("9--4", UNPARSED),
        ("9-4+7-", UNPARSED),
    ],
)
def test_countdown_answers(answer, expected):
    assert verify("countdown", COUNTDOWN, f"9-4=5\n\n5+7=12.\n\n\\boxed{{{answer}}}") == expected


HOSTILE = [
    "9**9**9",
    "9^{9^9}",
    "(10^6)!",
    "9//4",
    "1e9",
    "9" * 5000,
    "9-" * 5000 + "4",
    '__import__("os").system("touch pwned")',
    '[[__import__("os").getpid()]]',
    '\\text{__import__("os")}',
    "{" * 3000 + "}" * 3000,
    "\\boxed{" * 2000,
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_score_zero_at_once(family, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = time.process_time()
    verdict = verify(family, COUNTDOWN if family == "countdown" else SUM, f"\\boxed{{{answer}}}")
    assert verdict == UNPARSED
    assert time.process_time() - start < 0.1
    assert not list(tmp_path.iterdir())


@exact
@given(
    family=st.sampled_from(FAMILIES),
    text=st.text() | st.lists(st.sampled_from(["\\boxed{", "}", "{", "9", "-", "4", " or ", "\n\n", "$"])).map("".join),
)
def test_no_text_raises(family, text):
    verdict = verify(family, COUNTDOWN if family == "countdown" else SUM, text)
    assert verdict in (RIGHT, WRONG, UNPARSED)
    assert last_boxed(text) in text


def test_unknown_family_is_named():
    with pytest.raises(ValueError, match=r"'sudoku'.*countdown"):
        verify("sudoku", "{}", "\\boxed{1}")


SCORERS = {name: reasoning_gym.create_dataset(family.dataset) for name, family in WORLD_FAMILIES.items()}


@exact
@given(expected=st.integers(-30, 30), answer=st.integers(-30, 30), form=st.sampled_from(["{}", "{:+d}", "{}.0", "{:03d}", " {} "]))
def test_integers_agree_with_reasoning_gym(expected, answer, form):
    entry = {"answer": str(expected), "metadata": {}}
    text = form.format(answer)
    reward = verify("chain-sum", json.dumps({"answer": str(expected)}), f"\\boxed{{{text}}}").reward
    assert reward == (SCORERS["chain-sum"].score_answer(text, entry) == 1.0)


@settings(exact, max_examples=150)
@given(data=st.data(), numbers=st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_countdown_agrees_with_reasoning_gym(data, numbers):
    signs = data.draw(st.lists(st.sampled_from("+-"), min_size=len(numbers), max_size=len(numbers)))
    used = data.draw(st.permutations(numbers) | st.lists(st.integers(0, 6), min_size=len(numbers), max_size=len(numbers)))
    total = sum(int(f"{sign}{number}") for sign, number in zip(signs, used, strict=True))
    target = data.draw(st.sampled_from([total, total + 1, 1]))
    answer = "".join(f"{sign}{number}" for sign, number in zip(signs, used, strict=True))
    metadata = {"numbers": numbers, "target": target}
    score = SCORERS["countdown"].score_answer(answer, {"answer": "", "metadata": metadata})
    assert verify("countdown", json.dumps(metadata), f"\\boxed{{{answer}}}").reward == (score == 1.0)


def test_scores_more_than_two_thousand_texts_a_second():
    texts = [f"9-4=5\n\n5+7={number}.\n\n\\boxed{{9-4+{number}}}" for number in range(4000)]
    start = time.process_time()
    rewards = [verify("countdown", COUNTDOWN, text).reward for text in texts]
    assert time.process_time() - start < len(texts) / 2000
    assert sum(rewards) == 1
