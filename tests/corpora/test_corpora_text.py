"""Repair, wrappers, language, and the two forms in which problems are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibtpo.corpora.text import PICTURE, core, key, language, repair, strip_code_wrapper, strip_wrapper, tokens

DAPO = (
    "Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer (without quotes) "
    'where $Answer is the answer to the problem.\n\n{}\n\nRemember to put your answer on its own line after "Answer:".'
)
CHINESE = "让我们一步一步地思考。请以“Answer: \\boxed{<final_answer>}”的格式输出最终答案。如果是选择题"
PROBLEM = st.text(alphabet="abcxyz 0123456789+-=^{}$\\.,!?\n", min_size=1).map(str.strip).filter(bool)


@pytest.mark.parametrize(
    ("damaged", "right"),
    [
        ("in the form \x0crac{m}{n}", "in the form \\frac{m}{n}"),
        ("$m^2=\x0c\\frac{p}{q}$", "$m^2=\\frac{p}{q}$"),
        ("counts backwards by fi\x0cves", "counts backwards by fives"),
        ("so $\x08eta = 2$", "so $\\beta = 2$"),
        ("$3\times 4$", "$3\\times 4$"),
        ("a\ttab and\r\na line", "a\ttab and\na line"),
        ("$a \x14\\le b$ \x88 end", "$a \\le b$  end"),
        ("$a_1,\\\\ldots,a_n$", "$a_1,\\ldots,a_n$"),
        ("a+b&=15,\\\\ab+c&=78,\\\\\\hline", "a+b&=15,\\\\ab+c&=78,\\\\\\hline"),  # line breaks of LaTeX stay
        ("The \ufb01gure; x\u00b2", "The figure; x\u00b2"),  # a ligature is layout, a superscript is mathematics
    ],
)
def test_damage_is_undone(damaged, right):
    assert repair(damaged) == right


@given(PROBLEM)
def test_whole_text_is_not_repaired(problem):
    assert repair(repair(problem)) == repair(problem)


@given(PROBLEM.filter(lambda problem: strip_wrapper(problem) == problem))
def test_what_is_in_a_wrapper_comes_out(problem):
    assert strip_wrapper(DAPO.format(problem)) == problem
    assert strip_wrapper(f"{problem}\n{CHINESE}") == problem


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("**Problem 3.** A number is written.", "A number is written."),
        ("Problem 1: The set $S$ is split.", "The set $S$ is split."),
        ("12. Let $f$ be odd.", "Let $f$ be odd."),
        ("Find $x$.\n\n[i]Proposed by Some One.[/i]", "Find $x$."),
        ("Find $x$.\nProposed by Some One, Some Town", "Find $x$."),
        ("Problems $8, 9$ and $10$ use the data", "Problems $8, 9$ and $10$ use the data"),
        ("200 points are on a circle.", "200 points are on a circle."),
        ("Solve the following system: $x=1$", "Solve the following system: $x=1$"),
    ],
)
def test_numbers_and_credits_leave_and_nothing_else(text, left):
    assert strip_wrapper(text) == left


def test_wrappers_of_code():
    wrapped = (
        "Solve the following coding problem using the programming language python:\n\n{}\n\nNow solve the problem and return the code."
    )
    problem = "12. Read n.\n\nThe input will be stdin and you should print your solution to stdout"
    assert strip_code_wrapper(wrapped.format(problem)) == problem == strip_code_wrapper(problem)
    assert strip_code_wrapper("def f():\n    ") == "def f():\n    "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Compute $\\sum_{i=1}^{60} i$.", "en"),
        ("\\[ \\int_0^1 x\\, dx \\]", "en"),
        ("José has a list of numbers in the country Óxisz.", "en"),
        ("Find the sum of angles $A$ and $B$. 请给出角A和角B的和。", "zh"),
        ("求整数 $n$ 的最大值", "zh"),
        ("Найдите все целые числа", "other"),
        ("Sea ABC un triángulo tal que la suma de los lados es igual a doce; hallar el valor máximo del área", "other"),
        ("[asy]\ndraw((0,0)--(1,1));\nlabel(A, B);\n[/asy] Find the area.", "en"),
    ],
)
def test_language(text, expected):
    assert language(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("find x$ .", "Find  x$."),  # T21
        ("Let \\(x\\) be an integer.", "let $x$ be an integer"),
        ("$\\dfrac{1}{2}$", "$\\frac 12$"),
        ("$a\\leq b$", "$a \\le b$"),
        ("right-angled triangle", "right angled triangle"),
        ("$1, 2, \\ldots, n$", "$1,2,...,n$"),
        ("\uff26\uff49\uff4e\uff44 \uff58\uff0e", "find x."),  # NFKC
        ("$x^{2}+1$", "$x^2 + 1$"),
        ("10,000 people", "10000 people"),
        ("\u201cquoted\u201d \u2013 dash", '"quoted" - dash'),
    ],
)
def test_layout_is_no_difference(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$x-1$", "$x+1$"),
        ("$n!$", "$n$"),
        ("$0.5$", "$05$"),
        ("$\\frac{1}{23}$", "$\\frac{12}{3}$"),
        ("$(1,2)$", "$(12)$"),
        ("$x^{12}$", "$x^1 2$"),
        ("$a<b$", "$a>b$"),
        ("$2x$", "$3x$"),
    ],
)
def test_mathematics_is_a_difference(one, other):
    assert key(one) != key(other)


@given(st.lists(st.sampled_from(["find", "x", "the", "sum", "five", "of"]), min_size=1), st.data())
def test_key_does_not_see_case_and_space(words, data):
    noise = st.sampled_from([" ", "  ", "\n", ", ", ". ", "; "])
    noisy = "".join(data.draw(st.sampled_from([word, word.upper(), word.title()])) + data.draw(noise) for word in words)
    assert key(noisy) == key(" ".join(words))


def test_tokens_are_words_and_numbers():
    assert tokens("Let $\\left(a_1\\right)^2 = \\dfrac{1}{20}$. [asy]draw(A);[/asy] Find-it!") == [
        "let",
        "a",
        "1",
        "2",
        "frac",
        "1",
        "20",
        "find",
        "it",
    ]


@pytest.mark.parametrize(
    "tail",
    [
        "The answer is in the form \\frac{m}{n}, where gcd(m, n) = 1. Please provide the value of m + n.",
        " The original answer is in \\(\\frac{k}{m}\\) format, please give the value of \\(k + m\\).",
        " Express your answer as a common fraction.The answer is in the form k\\sqrt{m}+n,. Please provide the value of k + m + n.",
    ],
)
def test_core_has_no_request_for_a_form(tail):
    assert key(core("What is the area of the region?" + tail)) == key("What is the area of the region?")


def test_core_of_a_problem_is_the_problem():
    problem = "Let $a_n$ be the result of expressing $n$ in base 2. Find the answer to the ultimate question."
    assert core(problem) == problem


def test_pictures():
    assert PICTURE.search("as here ![](a.jpg)") and PICTURE.search("[img]x[/img]") and PICTURE.search("1994 Problem 2.png")
    assert not PICTURE.search("f(x)! [asy]draw(A)[/asy]")
