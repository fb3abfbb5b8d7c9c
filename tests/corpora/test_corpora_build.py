"""Builders, end to end on small files: schema, report, and every error with file, line and remedy."""

import json

import pandas as pd
import pytest
from corpora_helpers import verified

from ibtpo.config import ConfigError, load
from ibtpo.corpora.build import build_benchmark, build_corpus
from ibtpo.corpora.fetch import fetch
from ibtpo.corpora.read import DataError
from ibtpo.rollout.problems import load_problems

TEST = [{"problem": "What is the sum of the digits of the number that Ada wrote down on Monday?", "answer": "12", "id": "q1", "level": 2}]
TRAIN = [
    {"problem": "Find $x$ with $x=1$.", "answer": "1"},
    {"problem": "Find $x$ with $x=1$.", "answer": "1"},
    {"problem": "find $x$ with $x = 1$", "answer": "1"},
    {"problem": "What is the sum of the digits of the number that Ada wrote down on Monday? Give it modulo 5.", "answer": "2"},
    {"problem": "求 $x$", "answer": "3"},
]
BENCH = {"role": "benchmark"}
ODD = {"role": "benchmark", "kind": "maths", "title": "Odd", "hub": None, "files": ["odd.csv"], "licence": "any"}


def both(settings, tmp_path, **changes):
    file = settings({"train": TRAIN, "test": TEST}, test=BENCH, **changes)
    build_benchmark(file, "test", tmp_path / "out" / "test.parquet", verified)
    build_corpus(file, "train", [tmp_path / "out" / "test.parquet"], tmp_path / "out" / "train.parquet", verified)
    return pd.read_parquet(tmp_path / "out" / "test.parquet"), pd.read_parquet(tmp_path / "out" / "train.parquet")


def test_schema_is_what_rollouts_read(settings, tmp_path):
    test, train = both(settings, tmp_path)
    columns = ["uid", "source", "source_id", "family", "prompt", "answer", "metadata", "solution", "level", "subject"]
    assert list(test.columns) == list(train.columns) == columns
    assert test.iloc[0].to_dict() == {
        "uid": "test-00000",
        "source": "test",
        "source_id": "q1",
        "family": "maths",
        "prompt": TEST[0]["problem"],
        "answer": "12",
        "metadata": '{"answer": "12"}',
        "solution": "",
        "level": 2,
        "subject": "",
    }
    assert list(train.uid) == ["train-00000"]
    assert [problem.uid for problem in load_problems(tmp_path / "out" / "train.parquet")] == ["train-00000"]


def test_report_counts_and_shows(settings, tmp_path):
    both(settings, tmp_path)
    report = json.loads((tmp_path / "out" / "train.json").read_text())
    assert (report["rows"], report["repeated"], report["written"]) == (5, 1, 1)
    removed = {step["name"]: step["removed"] for step in report["steps"] if step["removed"]}
    assert removed == {"language": 1, "near duplicate": 1, "contamination": 1}
    assert all(step["examples"] for step in report["steps"] if step["removed"] or step["changed"])
    assert [step["before"] - step["removed"] for step in report["steps"]] == [*[step["before"] for step in report["steps"]][1:], 1]
    (row,) = report["contamination"]
    assert (row["benchmark"], row["problems"], row["occurring"]) == ("test", 1, 1)
    page = (tmp_path / "out" / "train.md").read_text()
    assert "| test | 1 | 1 | 0 | 1 | 1 |" in page and "copy of train-00000" in page


def test_same_files_same_bytes(settings, tmp_path):
    both(settings, tmp_path)
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    both(settings, tmp_path)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} and len(first) == 6


def test_a_benchmark_is_never_changed(settings, tmp_path):
    dirty = [{"problem": "1. 求 \x0crac12", "answer": "1"}, {"problem": "1. 求 \x0crac12", "answer": "2"}]
    build_benchmark(settings({"test": dirty}, test=BENCH), "test", tmp_path / "out.parquet", verified)
    assert list(pd.read_parquet(tmp_path / "out.parquet").prompt) == ["1. 求 \x0crac12"] * 2


def test_levels_and_columns_choose(settings, tmp_path):
    rows = [{"problem": f"Find {n}.", "answer": "1", "level": f"Level {n}", "year": 2020 + n % 2} for n in range(1, 6)]
    file = settings({"test": rows}, test=BENCH | {"levels": [3, 4, 5], "where": {"year": 2021}, "rows": [3]})
    build_benchmark(file, "test", tmp_path / "out.parquet", verified)
    assert list(pd.read_parquet(tmp_path / "out.parquet").level) == [3, 5]


GOOD = json.dumps(TRAIN[0]) + "\n"


@pytest.mark.parametrize(
    ("rows", "change", "message"),
    [
        (GOOD + '{"problem": "Find", "ans', {}, r"some.jsonl, line 2 is not JSON .*fetch it again"),
        (GOOD + "{oops}\n" + GOOD, {}, r"some.jsonl, line 2 is not JSON .*fetch it again"),
        ([{"problem": "Find"}], {}, r"some.jsonl, line 1 lacks the column\(s\) answer of maths problems; it has problem: fetch it again"),
        ([TRAIN[0], {"answer": "1"}], {}, r"some.jsonl, line 2 lacks the column\(s\) problem that the first row has"),
        ([TRAIN[0], {"problem": {"a": 1}, "answer": "1"}], {}, r"some.jsonl, line 2 is no problem \(ValueError: a text .*take the row out"),
        ([TRAIN[0]], {"rows": [500]}, r"some.jsonl: 1 rows of train, not 500: fetch it again, or correct 'rows'"),
        ([TRAIN[0]], {"sha256": {"some.jsonl": "0" * 64}}, r"some.jsonl has the checksum .*the settings say 0000.*fetch it again"),
        ([TRAIN[0]], {"levels": [5]}, r"some.jsonl: no problem of train is left of 1 rows .*levels \[5\].*correct those"),
        ([TRAIN[0]], {"where": {"year": 2023}}, r"some.jsonl, line 1 lacks the column\(s\) year of 'where'"),
        ([TRAIN[4]], {}, r"nothing of train is left; the step 'language' .*removed 1 of 1: relax it"),
        ("", {}, r"some.jsonl: no problem of train is left of 0 rows"),
    ],
)
def test_bad_input_is_told_with_file_line_and_remedy(settings, tmp_path, rows, change, message):
    file = settings({"train": rows}, train=change)
    with pytest.raises(DataError, match=message):
        build_corpus(file, "train", [], tmp_path / "out.parquet", verified)
    assert not (tmp_path / "out.parquet").exists()


def test_a_benchmark_that_is_not_built_is_told(settings, tmp_path):
    file = settings({"train": TRAIN, "test": TEST}, test=BENCH)
    with pytest.raises(DataError, match="train is to be checked against test: build that first"):
        build_corpus(file, "train", [], tmp_path / "out.parquet", verified)


def test_a_raw_file_that_is_not_there_is_told(settings, tmp_path):
    file = settings({"train": TRAIN})
    (tmp_path / "raw" / "train" / "some.jsonl").unlink()
    with pytest.raises(DataError, match=r"train holds no data \(some.jsonl\): fetch it, or point data_root"):
        build_corpus(file, "train", [], tmp_path / "out.parquet", verified)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"sourcs": {}}, "unknown key 'corpora.sourcs'. Did you mean 'corpora.sources'"),
        ({"against": ["nothing"]}, "corpora: against: 'nothing' is no benchmark. Known: math500"),
        ({"cleaning": {"overlap": 2}}, "corpora.cleaning.overlap"),
        ({"data_root": None}, "corpora.data_root"),
        ({"sources": {"../x": ODD}}, r"corpora: sources: '../x' cannot be a data set's name"),
        ({"sources": {"math500": {"sha256": {"test.jsonl": "ABC"}}}}, "the checksum of test.jsonl is 'ABC'; write the 64"),
    ],
)
def test_wrong_settings_are_told(edit, message):
    with pytest.raises(ConfigError, match=message):
        load("tiny", {"corpora": edit})


def test_an_unknown_data_set_is_told(settings, tmp_path):
    file = settings({"train": TRAIN, "test": TEST}, test=BENCH)
    with pytest.raises(ConfigError, match=r"there is no training data set 'test'. Known: train"):
        build_corpus(file, "test", [], tmp_path / "out.parquet", verified)


def test_the_settings_of_the_project():
    found = load("tiny").corpora
    assert found.trainings == ["dapo_math_17k", "math_levels_3_5", "verifiable_coding"]
    assert {"math500", "aime24", "aime25", "amc23", "amc24", "minerva", "gpqa_diamond", "ifeval", "livecodebench"} <= set(found.benchmarks)
    assert found.against is None and found.cleaning.gold == "drop"


# fetching, with a hub of our own ----------------------------------------------------------------------------------------------------------


class Hub:
    """Stands in for the two calls of huggingface_hub."""

    def __init__(self, monkeypatch, text=GOOD, error=None):
        import huggingface_hub

        self.text, self.error, self.asked = text, error, []
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", self.download)

    def dataset_info(self, hub, revision):
        if self.error:
            raise self.error
        self.asked.append((hub, revision))
        return type("Info", (), {"sha": "c0ffee"})

    def download(self, hub, file, repo_type, revision, local_dir):
        self.asked.append((hub, file, repo_type, revision))
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / file).write_text(self.text)


def test_fetch_pins_and_records(settings, tmp_path, monkeypatch):
    file = settings({"train": ""}, train={"revision": "v1"})
    hub = Hub(monkeypatch)
    origin = json.loads(fetch(file, "train").read_text())
    assert hub.asked == [("someone/some", "v1"), ("someone/some", "some.jsonl", "dataset", "c0ffee")]
    assert (origin["revision"], origin["asked"], list(origin["sha256"])) == ("c0ffee", "v1", ["some.jsonl"])
    build_corpus(file, "train", [], tmp_path / "out.parquet", verified)
    assert json.loads((tmp_path / "out.json").read_text())["revision"] == "c0ffee"
    (tmp_path / "raw" / "train" / "some.jsonl").write_text(GOOD * 2)
    with pytest.raises(DataError, match=r"checksum .*origin.json say .*fetch it again"):
        build_corpus(file, "train", [], tmp_path / "out.parquet", verified)


class GatedRepoError(Exception):
    pass


class RevisionNotFoundError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (GatedRepoError("gated"), "accept the terms"),
        (RevisionNotFoundError("none"), "correct hub, revision or files"),
        (ConnectionError("no route\nmore"), "put the files into .*train yourself"),
    ],
)
def test_fetch_says_what_to_do(settings, monkeypatch, error, remedy):
    Hub(monkeypatch, error=error)
    with pytest.raises(DataError, match=f"cannot fetch someone/some .*{remedy}"):
        fetch(settings({"train": ""}), "train")


def test_fetch_refuses_another_file_than_the_pinned(settings, tmp_path, monkeypatch):
    Hub(monkeypatch, text="other\n")
    with pytest.raises(DataError, match="has the checksum"):
        fetch(settings({"train": ""}, train={"sha256": {"some.jsonl": "0" * 64}}), "train")
    assert not (tmp_path / "raw" / "train" / "origin.json").exists()


def test_fetch_of_a_name_that_is_not_to_be_fetched(settings):
    with pytest.raises(DataError, match=r"no data set 'x'; known: train"):
        fetch(settings({"train": ""}), "x")
    with pytest.raises(DataError, match=r"train is published nowhere .*put some.jsonl into train yourself"):
        fetch(settings({"train": ""}, train={"hub": None}), "train")
