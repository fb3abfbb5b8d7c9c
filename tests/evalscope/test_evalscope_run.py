"""Evaluations with EvalScope's real runner and a fake server: all kinds of problems, kills, mistakes."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from evalscope_helpers import SYSTEM, choice, code, evaluated, ifeval, maths

from ibtpo import IbtpoError
from ibtpo.benchmarks import evaluate, judge, server
from ibtpo.benchmarks.server import ServerError
from ibtpo.evaluation.statistics import pass_rates, sample_matrix
from ibtpo.evaluation.verdicts import COLUMNS
from ibtpo.io import exclusive, read_parquet

ALL = {
    "math500": [*maths("math500", 2, level=3), *maths("math500 x", 2, level=5)],
    "aime24": maths("aime24", 2),
    "amc23": maths("amc23", 2),
    "amc23_46": maths("amc23_46", 3),
    "minerva": maths("minerva", 2),
    "gpqa_diamond": choice("gpqa_diamond", 4),
    "ifeval": ifeval("ifeval"),
    "humaneval": code("humaneval"),
}


@pytest.fixture(scope="module")
def everything(module_run):
    return module_run(ALL)


def test_samples_are_tidy_and_complete(everything):
    samples = read_parquet(everything.out)
    assert list(samples) == ["benchmark", "uid", "family", "sample", "text", "ids", "finished", "status", "tokens"]
    expected = [(name, row["uid"], number) for name, rows in ALL.items() for row in rows for number in range(4)]
    assert list(samples[["benchmark", "uid", "sample"]].itertuples(index=False, name=None)) == expected
    assert samples["tokens"].tolist() == samples["ids"].map(len).tolist()
    seeds = [request["seed"] for request in everything.requests()]
    assert len(set(seeds)) == len(seeds) == len(expected), "every response has a seed of its own"
    assert Counter(samples["finished"]) == Counter(seed % 5 != 0 for seed in seeds)


def test_prompts_are_the_papers_for_maths_and_evalscopes_for_the_rest(everything):
    asked = {request["messages"][-1]["content"]: request for request in everything.requests()}
    question = "What is 1 mod {2}?"
    assert asked[question]["messages"] == [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    others = [request["messages"] for text, request in asked.items() if not text.startswith("What is")]
    assert all(message["role"] == "user" for (message,) in others)
    texts = [message["content"] for (message,) in others]
    assert sum(text.startswith("Answer the following multiple choice question. The last line") for text in texts) == 4
    assert any(text.startswith("Read the following function signature and docstring") for text in texts)
    assert "Write about rivers (0)." in texts


def test_sampling_is_what_the_configuration_says(everything):
    request, sampling = everything.requests()[0], everything.config.sampling
    asked = {key: request[key] for key in ("temperature", "top_p", "top_k", "max_tokens")}
    assert asked == sampling.model_dump(include=set(asked))


def test_a_program_is_judged_in_our_sandbox_and_an_instruction_that_cannot_be_checked_has_no_verdict(everything):
    samples = read_parquet(everything.out).merge(read_parquet(everything.reviews), on=["benchmark", "uid", "sample"])
    programs = samples[samples["benchmark"] == "humaneval"]
    assert programs["reward"].tolist() == programs["text"].str.contains("x * 2", regex=False).astype(float).tolist()
    rules = samples[samples["benchmark"] == "ifeval"].groupby("uid")["reward"].first()
    assert rules.iloc[:2].tolist() == [1.0, 0.0] and rules.isna().iloc[2]


def judged(made, reviews: Path, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Scores, disagreements, and the page."""
    paths = (str(made.out), str(reviews), str(made.data))
    judge.main(made.config, *paths, "base", 0, folder / "scores.parquet", folder / "report")
    return read_parquet(folder / "scores.parquet"), pd.read_csv(folder / "report.csv"), (folder / "report.md").read_text()


def test_scores_and_the_report_of_disagreements(everything, tmp_path):
    scores, rows, page = judged(everything, everything.reviews, tmp_path)
    reviews = read_parquet(everything.reviews)
    assert list(scores) == COLUMNS and scores["reward"].notna().all()
    has = reviews["reward"].notna()
    assert scores["reward"][has].tolist() == reviews["reward"][has].tolist()
    assert 0 < scores[scores["benchmark"].isin(["aime24", "amc23", "math500"])]["reward"].mean() < 1
    assert rows.empty, "all answers are plain here"
    assert "Samples with two verdicts: 0" in page and "pass@2, ours" in page


def test_disagreements_are_listed_with_both_verdicts(everything, tmp_path):
    reviews = read_parquet(everything.reviews)
    flipped = reviews.index[(reviews["benchmark"] == "gpqa_diamond") & (reviews["reward"] == 0)][:2]
    reviews.loc[flipped, "reward"] = 1.0
    reviews.to_parquet(tmp_path / "reviews.parquet")
    scores, rows, page = judged(everything, tmp_path / "reviews.parquet", tmp_path)
    assert rows["uid"].tolist() == reviews.loc[flipped, "uid"].tolist()
    assert rows["evalscope"].tolist() == [1, 1] and rows["ours"].tolist() == [0, 0]
    assert rows["text"].str.contains("ANSWER").all()
    assert "Samples with two verdicts: 2" in page
    assert scores["reward"][flipped].tolist() == [1, 1], "EvalScope's verdict counts"


def test_the_right_letter_is_in_evalscopes_order_of_the_options(everything):
    """Both judges find the same letters right, though EvalScope shuffles what our data have in another order."""
    joined = read_parquet(everything.out).merge(read_parquet(everything.reviews), on=["benchmark", "uid", "sample"])
    letters = joined[joined["benchmark"] == "gpqa_diamond"]
    assert letters["reward"].tolist() == (letters["text"].str[-1] == letters["gold"]).astype(float).tolist()
    ours = [json.loads(row["metadata"])["answer"] for row in ALL["gpqa_diamond"]]
    assert letters.groupby("uid")["gold"].first().tolist() != ours


def test_pass_at_k_of_evalscopes_report_is_ours(everything):
    (path,) = (everything.work / "run" / "reports").glob("*/ibtpo-amc23-46.json")
    metrics = json.loads(path.read_text())["metrics"]
    reported = {(m["identity"]["aggregation"], (m["identity"].get("dimensions") or {}).get("k")): m["score"] for m in metrics}
    reviews = read_parquet(everything.reviews)
    matrix = sample_matrix(reviews[reviews["benchmark"] == "amc23_46"], 4)
    assert reported["mean", None] == pytest.approx(matrix.mean(), abs=1e-3)
    for k in (1, 2, 3, 4):
        assert reported["pass_at_k", k] == pytest.approx(pass_rates(matrix, k).mean(), abs=1e-3)


DRIVER = """
import pickle, sys
from pathlib import Path
from ibtpo.benchmarks import evaluate, server
server.VLLM, arguments = pickle.loads(Path(sys.argv[1]).read_bytes())
evaluate(*arguments)
"""


def test_a_killed_run_goes_on_without_generating_again_and_leaves_no_process(bench, tmp_path):
    made = bench({"amc23": maths("amc23", 10)}, mode="slow", concurrency=2)
    arguments = (made.config, "model", "base", str(made.data), made.work, made.out, made.reviews)
    (tmp_path / "call").write_bytes(pickle.dumps((server.VLLM, arguments)))
    said = tmp_path / "said"
    with open(said, "w") as file:
        process = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path / "call")], stdout=file, stderr=file)
    predictions = made.work / "run" / "predictions" / "base" / "ibtpo-amc23_amc23.jsonl"
    while not predictions.exists() or len(predictions.read_text().splitlines()) < 6:
        assert process.poll() is None, said.read_text()
        time.sleep(0.05)
    server_pids = [int(pid) for pid in Path(f"{made.log}.pids").read_text().split()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait(lambda: not any(alive(pid) for pid in server_pids))
    with open(predictions, "a") as file:
        file.write('{"index": 39, "mod')  # a row that the kill tore

    before = len(made.requests())
    kept = len(predictions.read_text().splitlines()) - 1
    evaluate(*arguments)
    assert len(made.requests()) - before == 40 - kept, "what was there is not asked again"
    samples = read_parquet(made.out)
    seeds = [request["seed"] for request in made.requests()]
    assert len(samples) == 40 and len(set(seeds)) == 40, "a resumed run draws what the first one would have drawn"

    requests = len(made.requests())
    made.out.unlink()
    made.log.with_name(f"{made.log.name}.pids").unlink()
    evaluate(*arguments)
    assert len(made.requests()) == requests and not Path(f"{made.log}.pids").exists(), "nothing left to generate: no server is started"
    pd.testing.assert_frame_equal(samples, read_parquet(made.out))


def test_a_second_run_in_the_same_folder_is_refused_and_leaves_the_first_alone(bench):
    made = bench({"amc23": maths("amc23", 1)}, samples=1)
    with exclusive(made.work), pytest.raises(IbtpoError, match="another process is at work on"):
        evaluated(made)
    assert not made.work.exists() and not made.requests()
    assert len(read_parquet(evaluated(made).out)) == 1


def test_other_settings_need_another_folder(run):
    made = run({"amc23": maths("amc23", 1)}, samples=1)
    other = made.config.model_copy(update={"sampling": made.config.sampling.model_copy(update={"temperature": 0.1})})
    with pytest.raises(IbtpoError, match="with other sampling: delete it, or give another folder"):
        evaluate(other, "model", "base", str(made.data), made.work, made.out, made.reviews)


@pytest.mark.parametrize(
    "mode, error, message",
    [
        ("fails", ServerError, "ended before it was up(.|\n)*no memory left"),
        ("hangs", ServerError, "did not answer within 0.02 minutes: raise evalscope.start_minutes"),
        ("dies", ServerError, "ended while it was needed"),
        ("refuse", IbtpoError, "refused a request: .*maximum context length is 8 tokens.*lower sampling.max_tokens"),
    ],
)
def test_what_is_wrong_with_the_server_is_said(bench, monkeypatch, mode, error, message):
    monkeypatch.setattr("ibtpo.benchmarks.run.RETRIES", {"retries": 1, "retry_interval": 0})
    made = bench({"amc23": maths("amc23", 3)}, mode=mode, start_minutes=0.02 if mode == "hangs" else 0.5)
    with pytest.raises(error, match=message):
        evaluate(made.config, "model", "base", str(made.data), made.work, made.out, made.reviews)
    assert not made.out.exists()
    if mode == "fails":
        assert (made.work / "server.log").read_text().count("no memory left") == 1, "it is not tried again for every request"


def test_logging_is_left_as_it_was(run, caplog):
    import logging

    before = list(logging.getLogger().handlers)
    run({"amc23": maths("amc23", 1)}, samples=1)
    assert logging.getLogger().handlers == before
    assert not [handler for handler in logging.getLogger("evalscope").handlers if isinstance(handler, logging.FileHandler)]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait(condition, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
