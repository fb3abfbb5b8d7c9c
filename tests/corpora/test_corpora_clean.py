"""Cleaning: what each step removes, in which order, and copies of benchmarks however they are rewritten."""

import random

import pytest
from corpora_helpers import verified
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.config.corpora import Cleaning
from ibtpo.corpora.clean import clean, contaminated
from ibtpo.corpora.layouts import Item
from ibtpo.corpora.overlap import FEW, Index, grams

SPEC = Cleaning()
PHRASE = "can be written as $\\frac{m}{n}$, where $m$ and $n$ are relatively prime positive integers. Find $m+n$."


def items(*pairs):
    return [Item(prompt, answer, uid=f"t-{number}") for number, (prompt, answer) in enumerate(pairs)]


def benchmark(*pairs):
    return {"bench": [Item(prompt, answer, uid=f"b-{number}") for number, (prompt, answer) in enumerate(pairs)]}


def sentence(seed: int, words: int = 20) -> str:
    """Words of their own, English enough."""
    rng = random.Random(seed)
    return " ".join("the" if n % 5 == 4 else "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for n in range(words))


def run(pairs, spec=SPEC, bench=None, kind="maths"):
    cleaner, table = clean(items(*pairs), kind, spec, bench or {}, verified)
    return [item.uid for item in cleaner.items], {step.name: (step.changed, step.removed) for step in cleaner.steps}, table


def test_duplicates_of_every_kind():
    """T21: exact and near duplicates are merged; the same text with other mathematics is another problem."""
    kept, steps, _ = run([("Find $x$.", "1"), ("Find $x$.", "1"), ("find  x$ .", "1"), ("Find $x-1$.", "0"), ("Find $x+1$.", "2")])
    assert kept == ["t-0", "t-3", "t-4"]
    assert (steps["duplicate"], steps["near duplicate"], steps["conflict"]) == ((0, 1), (0, 1), (0, 0))


def test_two_answers_are_none():
    kept, steps, _ = run([("Find $x$.", "1"), ("Find $y$.", "5"), ("Find x", "2"), ("Find $x$", "1")])
    assert kept == ["t-1"] and steps["conflict"] == (0, 3)


def test_conflicts_appear_only_after_wrappers_are_gone():
    wrapped = 'Find $x$.\n\nRemember to put your answer on its own line after "Answer:".'
    kept, steps, _ = run([(wrapped, "1"), ("Find $x$.", "2")])
    assert kept == [] and steps["wrapper"] == (1, 0) and steps["conflict"] == (0, 2)


def test_empty_foreign_pictures_and_gold():
    rows = [
        ("", "1"),
        ("Find $x$.", ""),
        ("求 $x$", "1"),
        ("Find ![](x.png)", "1"),
        ("See http://a.b", "1"),
        ("Find $z$.", "??"),
        ("Find it.", "7"),
    ]
    kept, steps, _ = run(rows)
    assert kept == ["t-6"]
    assert {name: steps[name][1] for name in ("empty", "language", "picture", "gold")} == {
        "empty": 2,
        "language": 1,
        "picture": 2,
        "gold": 1,
    }
    both, _, _ = run(rows, Cleaning(languages=("en", "zh"), images=True))
    assert both == ["t-2", "t-3", "t-4", "t-6"]


def test_a_bad_gold_answer_can_stop():
    with pytest.raises(Exception, match=r"t-0: gold answer '\?\?': unverified .*cleaning.gold"):
        run([("Find $x$.", "??")], Cleaning(gold="stop"))


def test_a_fault_that_is_known_is_told():
    cleaner, _ = clean([Item("Find $x$.", fault="no box", uid="t"), Item("Find $y$.", "1", uid="u")], "maths", SPEC, {}, verified)
    assert [item.uid for item in cleaner.items] == ["u"]
    assert cleaner.steps[-1].examples[0]["why"] == "gold answer: no box"


@pytest.mark.parametrize(("solutions", "asked"), [(False, {"cases": [1]}), (True, {"cases": [1], "solution": "print()"})])
def test_the_gold_answer_of_code_is_its_metadata(solutions, asked):
    seen = []
    item = Item("Print.", metadata={"cases": [1]}, solution="print()", uid="c")
    clean([item], "code", Cleaning(solutions=solutions), {}, lambda gold, kind: seen.append(gold) or "ok")
    assert seen == [asked]


def test_rewordings_with_the_same_answer_are_merged():
    text = sentence(1)
    first, second = f"Compute this: {text}", f"What is the value of the following: {text}"
    assert run([(first, "3"), (second, "3"), (sentence(2), "3")])[0] == ["t-0", "t-2"]
    assert run([(first, "3"), (second, "4")])[0] == ["t-0", "t-1"]  # which one is right cannot be told


def test_code_is_left_as_it_is():
    prompt = "1. Read $n$ \\\\ldots from [here](https://a.b).\r\n"
    cleaner, _ = clean([Item(prompt, metadata={"cases": [1]}, uid="c")], "code", SPEC, {}, verified)
    assert [item.prompt for item in cleaner.items] == [prompt]


# copies of benchmarks ---------------------------------------------------------------------------------------------------------------------


def rewritten(text: str) -> str:
    tail = "The answer is in the form \\frac{m}{n}, where gcd(m, n) = 1. Please provide the value of m + n."
    return f"{text} What is the probability? {tail}"


def test_a_problem_rewritten_to_an_integer_is_found_by_overlap_and_not_by_equality():
    text = sentence(3)
    removed, (row,) = contaminated(
        items((rewritten(text), "7"), (sentence(4), "7")), benchmark((f"{text} Find the probability.", "\\frac{3}{4}")), SPEC
    )
    assert [item.uid for item, _ in removed] == ["t-0"]
    assert (row["problems"], row["occurring"], row["text"], row["ngram"]) == (1, 1, 0, 1)
    assert row["pairs"][0] | {"share": 0} == {"uid": "t-0", "of": "b-0", "rule": "n-gram", "share": 0}


def test_a_short_problem_is_found_by_equality():
    removed, (row,) = contaminated(
        items(("compute sin 60", "1"), ("Compute $\\sin 61$.", "1")), benchmark(("Compute $\\sin 60$.", "x")), SPEC
    )
    assert [item.uid for item, _ in removed] == ["t-0"] and row["text"] == 1


def test_a_turn_of_phrase_is_no_copy():
    training = items(*[(f"{sentence(10 + n, 4)} {PHRASE}", str(n)) for n in range(12)])
    bench = benchmark((f"{sentence(99, 4)} {PHRASE}", "77"))
    removed, (row,) = contaminated(training, bench, SPEC)
    assert removed == [] and row["any_ngram"] == 12
    assert len(contaminated(training[:5], bench, SPEC)[0]) == 5  # so few cannot tell it: better removed


def test_many_copies_of_a_benchmark_problem_make_no_turn_of_phrase():
    text = sentence(5)
    training = items(*[(f"{sentence(100 + n, 3)} {text}", "7") for n in range(30)])
    assert len(contaminated(training, benchmark((text, "7")), SPEC)[0]) == 30


def test_a_rewording_of_a_copy_is_a_copy():
    """b -> t-0 by its first half; t-1 has only t-0's second half, and its answer."""
    first, second = sentence(6, 16), sentence(7, 40)
    training = items((f"{first} {second}", "9"), (f"{second} {sentence(8, 12)}", "9"), (f"{second} {sentence(9, 12)}", "8"))
    removed, (row,) = contaminated(training, benchmark((f"{first} {sentence(10, 4)}", "1")), SPEC)
    assert [item.uid for item, _ in removed] == ["t-0", "t-1"] and "rewording of t-0" in removed[1][1]
    assert row["ngram"] == 1


def test_every_benchmark_has_its_row():
    text = sentence(11)
    bench = {**benchmark((text, "1")), "other": [Item(sentence(12), "1", uid="o-0")], "same": [Item(text, "1", uid="s-0")]}
    _, table = contaminated(items((text, "1")), bench, SPEC)
    assert [(row["benchmark"], row["occurring"]) for row in table] == [("bench", 1), ("other", 0), ("same", 1)]


WORDS = st.lists(st.sampled_from("abcdef"), min_size=0, max_size=14).map(" ".join)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=5), WORDS, st.sampled_from([0.25, 0.5, 1.0]))
def test_the_index_finds_what_the_definition_says(problems, prompt, share):
    index = Index(items(*[(problem, "1") for problem in problems]), (), n=3, boilerplate=1000)
    found = {match.index for match in index.matches(prompt, share) if match.rule == "n-gram"}
    equal = {match.index for match in index.matches(prompt, share) if match.rule == "text"}
    assert equal == {number for number, problem in enumerate(problems) if problem.replace(" ", "") == prompt.replace(" ", "")}
    for number, problem in enumerate(problems):
        one, other = grams(problem, 3), grams(prompt, 3)
        shorter = min(len(one), len(other))
        copy = shorter > 0 and len(one & other) >= max(share * shorter, min(FEW, shorter))
        assert (number in found) == (copy and number not in equal)
