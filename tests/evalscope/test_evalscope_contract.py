"""What is relied on of EvalScope 1.14.1: its two multiple-choice fixes, names and columns of its files, and traps it has."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest
from evalscope_helpers import choice, maths

from ibtpo.io import read_jsonl


@pytest.fixture(scope="module", autouse=True)
def logging_kept():
    """EvalScope sets up logging anew when it is imported."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    import evalscope  # noqa: F401

    root.handlers = handlers
    root.setLevel(level)


# ---- multiple choice -------------------------------------------------------------------------------------------------------------------


def letters(text: str, choices: int = 4) -> str:
    """What EvalScope takes for the answer in a completion."""
    from evalscope.utils.multi_choices import parse_answers

    state = SimpleNamespace(choices=[None] * choices, output=SimpleNamespace(completion=text))
    return "".join(sorted(parse_answers(state)))


@pytest.mark.parametrize(
    "text, letter",
    [
        ("The last line must be ANSWER: [LETTER].\nSo it is the second.\nANSWER: B", "B"),  # the format, restated, is no answer
        ("I think of A and C.</think>ANSWER: D", "D"),  # an answer right behind the end of a thought
        ("Answer probably C, let me check.\n\nAnswer: C", "C"),
        ("Answer: A ... on reflection ... Answer: C", "C"),
        ("ANSWER: **B**", "B"),
        ("ANSWER: $B$", "B"),
        ("so $\\boxed{\\Delta C > 0}$ ... Answer: A", "A"),
        ("ANSWER: B, not C", "B"),
        ("HTTP error from P", ""),  # "P" is none of the options
        ("A clean solution does not exist here.", "A"),  # no answer, but EvalScope takes one: our verifier abstains
    ],
)
def test_the_answer_is_the_letter_that_is_stated(text, letter):
    """First fix: github.com/modelscope/evalscope, issue 1546 (pull request 1549)."""
    assert letters(text) == letter


def test_filters_reach_the_answer():
    """First fix, second half: what a filter takes off the answer is not searched for letters."""
    from evalscope.api.registry import get_benchmark
    from evalscope.config import TaskConfig

    settings = {"gpqa_diamond": {"filters": {"remove_until": "</think>"}}}
    adapter = get_benchmark("gpqa_diamond", TaskConfig(model="m", datasets=["gpqa_diamond"], dataset_args=settings, eval_type="mock_llm"))
    text = "ANSWER: A</think>It is the second.\nANSWER: B"
    state = SimpleNamespace(choices=[None] * 4, output=SimpleNamespace(completion=text))
    assert adapter.filter_prediction(text, state) == "B"
    assert adapter.filter_prediction("ANSWER: A</think>Neither, i think.", state) == ""


def test_brackets_in_an_option_are_kept_and_the_order_is_always_the_same():
    """Second fix: issue 1446, "[...]" was cut out of options, which left some empty; the order hangs on the question alone."""
    from evalscope.api.registry import get_benchmark

    record = {"Question": "Which?", "Correct Answer": "ln(2) = [ (T_1 - T_2) / (T1*T2)]"}
    record |= {"Incorrect Answer 1": "[a]", "Incorrect Answer 2": "b [1]", "Incorrect Answer 3": "c"}
    samples = [get_benchmark("gpqa_diamond").record_to_sample(record) for _ in range(3)]
    assert sorted(samples[0].choices) == ["[a]", "b [1]", "c", "ln(2) = [ (T_1 - T_2) / (T1*T2)]"]
    assert samples[0].choices["ABCD".index(samples[0].target)] == record["Correct Answer"]
    assert len({(*sample.choices, sample.target) for sample in samples}) == 1


# ---- files -----------------------------------------------------------------------------------------------------------------------------


def test_names_and_columns_of_the_files(run):
    made = run({"math500": maths("math500", 2, level=3), "gpqa_diamond": choice("gpqa_diamond", 1)}, samples=2)
    found = {path.relative_to(made.work / "run").as_posix() for path in (made.work / "run").rglob("*.jsonl")}
    names = ("ibtpo-math500_Level 3.jsonl", "ibtpo-gpqa-diamond_default.jsonl")  # the first has a space
    assert found == {f"{kind}/base/{name}" for kind in ("predictions", "reviews") for name in names}
    prediction = read_jsonl(made.work / "run" / "predictions" / "base" / names[0])[0]
    assert {"index", "model_output", "metadata"} <= set(prediction)
    output = prediction["model_output"]
    assert output["choices"][0]["stop_reason"] in ("stop", "max_tokens") and output["usage"]["output_tokens"] > 0
    reviews = sorted(read_jsonl(made.work / "run" / "reviews" / "base" / names[0]), key=lambda row: row["index"])
    assert [row["index"] for row in reviews] == [0, 1, 2, 3], "sample k of problem p has the index samples * p + k"
    assert [row["sample_score"]["sample_metadata"]["uid"] for row in reviews] == ["math500-00000"] * 2 + ["math500-00001"] * 2
    assert {"value", "extracted_prediction", "status"} <= set(reviews[0]["sample_score"]["score"])
    assert reviews[0]["target"] == ["0"]


def test_the_length_of_an_answer_is_limited_by_max_tokens_alone():
    from evalscope.api.model import GenerateConfig
    from evalscope.models.utils.openai import openai_completion_params

    given = GenerateConfig(**{"max_tokens": 16, "max_new_tokens": 99})
    assert openai_completion_params(model="m", config=given, tools=False) == {"model": "m", "max_tokens": 16}


def test_without_a_primary_metric_a_run_fails_after_all_its_work(run, monkeypatch):
    """The reason for adapters.PASS_AT_1."""
    import ibtpo.benchmarks.adapters as adapters

    monkeypatch.setattr(adapters, "PASS_AT_1", None)
    with pytest.raises(ValueError, match="primary"):
        run({"amc23": maths("amc23", 1)}, samples=2)


def test_a_run_is_known_by_its_settings_and_not_by_the_servers_port(run):
    made = run({"amc23": maths("amc23", 1)}, samples=1)
    text = (made.work / "run" / "configs" / "task_config.yaml").read_text()
    assert "127.0.0.1" not in text and "Deferred" in text


def test_evalscopes_own_benchmarks_stay_what_they_are(run):
    run({"aime24": maths("aime24", 1)}, samples=1)
    from evalscope.api.registry import BENCHMARK_REGISTRY

    assert BENCHMARK_REGISTRY["aime24"].dataset_id == "evalscope/aime24"
    assert BENCHMARK_REGISTRY["aime24"].data_adapter.__module__.startswith("evalscope.")
    assert json.dumps(BENCHMARK_REGISTRY["aime24"].subset_list) == '["default"]'
