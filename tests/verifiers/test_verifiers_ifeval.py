"""IFEval: T11, every kind by hand, agreement with the implementation that EvalScope ships, languages and sentences."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.verifiers import GoldError, check_gold, score
from ibtpo.verifiers.ifeval import CHECKS, follows
from ibtpo.verifiers.language import LANGUAGES, detect
from ibtpo.verifiers.sentences import count_sentences


def gold(name, **arguments):
    return {"instruction_id_list": [name], "kwargs": [arguments]}


def followed(name, text, **arguments):
    return follows(gold(name, **arguments), text) == [True]


def test_t11_paragraphs_are_counted_after_empty_ones_are_dropped():
    arguments = {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "rivers"}
    assert followed("length_constraints:nth_paragraph_first_word", "\n\nRivers bend.\n\nHills rise.", **arguments)
    assert not followed("length_constraints:nth_paragraph_first_word", "\n\nHills rise.\n\nRivers bend.", **arguments)


def test_t11_words_at_the_border():
    arguments = {"num_words": 60, "relation": "less than"}
    assert not followed("length_constraints:number_words", "word " * 60, **arguments)
    assert followed("length_constraints:number_words", "word " * 59, **arguments)


@pytest.mark.parametrize("name", ["number_words", "number_sentences"])
def test_t11_an_unknown_relation_raises(name):
    wrong = gold(f"length_constraints:{name}", relation="at most", **{name.replace("number", "num"): 60})
    with pytest.raises(GoldError, match=r"'at most'.*less than, at least"):
        score("ifeval", wrong, "A response.")
    assert check_gold(wrong, "ifeval").startswith("parse_failed")


@pytest.mark.parametrize(
    ("instructions", "part"),
    [
        (gold("length_constraints:number_letters"), "unknown instruction"),
        (gold("length_constraints:number_words", num_words=3), "takes the arguments"),
        (gold("punctuation:no_comma", num_words=3), "takes the arguments"),
        (gold("language:response_language", language="tlh"), "'tlh'"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}, "1 instructions"),
    ],
)
def test_bad_instructions_raise(instructions, part):
    with pytest.raises(GoldError, match=part):
        score("ifeval", instructions, "A response.")
    assert check_gold({"instruction_id_list": [], "kwargs": []}, "ifeval") == "empty"


# kind, arguments, a response that follows, one that does not
BY_HAND = [
    ("keywords:existence", {"keywords": ["Elm", "oak"]}, "An OAK, an elm.", "An oak."),
    ("keywords:frequency", {"keyword": "oak", "frequency": 2, "relation": "at least"}, "Oak, oak.", "Oak."),
    ("keywords:forbidden_words", {"forbidden_words": ["oak"]}, "Soak it.", "An Oak."),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "## A", "# A"),
    ("language:response_language", {"language": "de"}, "Das ist nicht der Wald.", "This is not the forest."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "One oak", "An oak. An elm."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\nOak\n***\nElm\n***", "Oak\n***\n***\nElm"),
    ("length_constraints:number_words", {"num_words": 2, "relation": "at least"}, "An oak", "Oak"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] [address]", "[name]"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Oak.\nP. P. S. Elm", "Oak.\nP.S. Elm"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* oak\n - elm", "* oak\n**elm**"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "Maybe."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*oak* and *elm*", "*oak* and * *"),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, "Section 1 a Section 2 b", "Section A"),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<Oak>>\nElm", "<<Oak\nElm>>"),
    ("combination:two_responses", {}, "Oak\n******\nElm", "Oak\n******\nOak"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Name a tree."}, "name a tree. Oak", "Oak"),
    ("startend:end_checker", {"end_phrase": "The end."}, '"Oak. the end."', "The end. Oak"),
    ("startend:quotation", {}, ' "oak" ', "'oak'"),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "DON'T", "Don't AXE"),
    ("change_case:english_capital", {}, "THE OAK", "The oak"),
    ("change_case:english_lowercase", {}, "the oak", "der baum und die eiche"),
    ("punctuation:no_comma", {}, "oak; elm", "oak, elm"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "oak"}, '"Oak, elm', "An oak"),
]


def test_all_kinds_are_tried():
    assert {case[0] for case in BY_HAND} == set(CHECKS) and len(CHECKS) == 25


@pytest.mark.parametrize(("name", "arguments", "good", "bad"), BY_HAND, ids=[case[0] for case in BY_HAND])
def test_each_kind_by_hand(name, arguments, good, bad):
    assert followed(name, good, **arguments)
    assert not followed(name, bad, **arguments)
    for empty in ("", " \n\n\t"):  # T11 (c)
        assert not followed(name, empty, **arguments)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(text=st.text() | st.lists(st.sampled_from(["*", "[", "<<", "\n\n", "***", '"', ".", " a", "A ", "```", "{"])).map("".join))
def test_no_response_raises(text):
    for name, arguments, _, _ in BY_HAND:
        assert follows(gold(name, **arguments), text)[0] in (True, False)


def test_strict_is_all_of_them(pool):
    both = {"instruction_id_list": ["punctuation:no_comma", "startend:quotation"], "kwargs": [{"num_words": None}, {}]}
    assert [pool.score("ifeval", both, text).reward for text in ('"oak"', '"oak, elm"', "oak", "")] == [1, 0, 0, 0]


def test_agrees_with_the_implementation_of_evalscope():
    """All kinds that need no download there, on responses made to follow them, nearly follow them, or not."""
    registry = pytest.importorskip("evalscope.benchmarks.ifeval.instructions_registry").INSTRUCTION_DICT
    rng, skipped = random.Random(0), ("language:", "number_sentences", "capital_word", "english_")
    pieces = [
        "*",
        "**",
        "***",
        "******",
        "\n",
        "\n\n",
        "[oak]",
        "<<",
        ">>",
        '"',
        "- oak",
        "* elm",
        "Section 1",
        "P.S.",
        "P. P. S",
        "oak",
        ", ",
    ]
    pieces += ["Oak elm", " ", "```json", "```", "{}", "Name a tree.", "The end.", "My answer is no.", "# #"]
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 12))) for _ in range(400)]
    outcomes = []
    for name, arguments, good, bad in BY_HAND:
        if any(part in name for part in skipped) or arguments.get("letter") == "#":
            continue
        theirs = registry[name](name)
        theirs.build_description(**arguments)
        for text in [good, bad, *texts]:
            if text.strip() and not (name.endswith("first_word") and text.startswith("\n\n")):
                outcomes.append(bool(theirs.check_following(text)))
                assert followed(name, text, **arguments) == outcomes[-1], (name, arguments, text)
    assert sum(outcomes) > 500 and len(outcomes) - sum(outcomes) > 500


# Article 1 of the Universal Declaration of Human Rights in 36 languages
LANGUAGE_SAMPLES = json.loads(Path(__file__).with_name("languages.json").read_text())


OF_THE_DATA_SET = ["hi", "kn", "mr", "vi", "ko", "sw", "de", "pa", "fa", "ru", "bg", "pt", "gu", "te", "it", "ar", "ta", "fi", "ur", "th"]
OF_THE_DATA_SET += ["ne", "bn"]


@pytest.mark.parametrize("language", LANGUAGE_SAMPLES)
def test_languages(language):
    assert detect(LANGUAGE_SAMPLES[language]) == language


def test_languages_of_the_data_set_are_known_and_shouting_is_english_too():
    assert {*OF_THE_DATA_SET} <= LANGUAGES & set(LANGUAGE_SAMPLES)
    assert detect(LANGUAGE_SAMPLES["en"].upper()) == "en"
    assert detect("12 + 3") is None and detect("") is None


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        ("...", 0),
        ("Oaks grow", 1),
        ("Oaks grow.", 1),
        ("Oaks grow. Elms fall.", 2),
        ("Oaks grow! Elms fall? Yes.", 3),
        ("Dr. Oak met Mr. Elm at 5 p.m. on Elm St. in town.", 1),
        ("It costs 3.50 dollars. Really.", 2),
        ('He said "Oaks grow." Then he left.', 2),
        ("Wait... there is more. J. Oak knows.", 2),
        ("A title\n\nOaks grow.\nElms fall.", 2),
    ],
)
def test_sentences(text, n):
    assert count_sentences(text) == n
