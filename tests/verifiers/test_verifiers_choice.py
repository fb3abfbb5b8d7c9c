"""Multiple choice: the project's rows of T10, and text that must not be taken for a choice."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.verifiers import GoldError, check_gold, score
from ibtpo.verifiers.choice import letter
from ibtpo.verifiers.verdict import RIGHT, WRONG, Verdict

ABSTAINED = Verdict(0.0, "abstained")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # T10
        ("Answer probably C, let me check.\n\nAnswer: C", "C"),
        ("The answer is D since a wheel turns.", "D"),
        ("ANSWER: **B**", "B"),
        ("ANSWER: $B$", "B"),
        ("Answer: $B", "B"),
        ("We have \\boxed{\\Delta C > 0} throughout. Answer: A", "A"),
        ("Answer: A … on reflection … Answer: C", "C"),
        ("A clean solution does not exist here.", None),
        ("Actually I am unsure", None),
        ("HTTP 429 from backend", None),
        # more of the kind
        ("", None),
        ("C", "C"),
        ("(C).", "C"),
        ("answer: c", "C"),
        ("**Answer:** D", "D"),
        ("**Answer**: D", "D"),
        ("Answer: (C) 42", "C"),
        ("Answer: \n\nB", "B"),
        ("Final answer: option D", "D"),
        ("The correct option is (B)", "B"),
        ("\\boxed{\\text{(D)}}", "D"),
        ("\\boxed{C}", "C"),
        ("Answer: A clean one is lacking", None),
        ("Answer: a wheel", None),
        ("The answer is a wheel", None),
        ("The answer is A because wheels turn", "A"),
        ("The answer is not B", None),
        ("Answer: B = 3", None),
        ("Answer: C > 0", None),
        ("Answer: $\\Delta C$", None),
        ("Answer: A or B", ""),
        ("\\boxed{A} or \\boxed{B}", ""),
        ("Answer: E", None),
    ],
)
def test_letter(text, expected):
    assert letter(text) == expected


def test_verdicts():
    assert score("choice", "C", "Answer: C") == RIGHT
    assert score("choice", "C", "Answer: B") == WRONG
    assert score("choice", "A", "A clean solution does not exist here.") == ABSTAINED
    assert score("choice", "A", "Answer: A or B") == WRONG
    assert score("choice", {"answer": "J", "choices": 10}, "Answer: J") == RIGHT
    assert score("choice", '{"answer": "J", "choices": 10}', "Answer: J") == RIGHT


@pytest.mark.parametrize("gold", ["E", "c", "", "AB", "1", None, 3, {}])
def test_a_gold_answer_that_is_no_choice_is_told(gold):
    with pytest.raises(GoldError, match="choice"):
        score("choice", gold, "Answer: A")
    assert check_gold(gold, "choice").split(":")[0] in ("empty", "parse_failed")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(noise=st.text(alphabet="abc xyz.,\n$*()", max_size=60), stated=st.sampled_from("ABCD"))
def test_the_last_explicit_statement_counts_whatever_comes_before(noise, stated):
    assert letter(f"Answer: D\n{noise}\nAnswer: {stated}") == stated


@pytest.mark.parametrize("unit", ["answer: ", "(", "\\boxed{", "answer **", "\\text{", "` ' "])
def test_long_texts_take_no_time(unit):
    start = time.process_time()
    letter("\\boxed{" + unit * 50_000)
    assert time.process_time() - start < 1
