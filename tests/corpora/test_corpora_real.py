"""The real files, where they are (the project ships none): counts that were read and checked by hand, and cases that were looked up."""

import json

import pandas as pd
import pytest
from corpora_helpers import REAL

from ibtpo.config import load
from ibtpo.config.corpora import Corpora
from ibtpo.corpora.build import build_benchmark, build_corpus
from ibtpo.corpora.text import key, language, tokens

FOLDERS = {"verifiable_coding": "code_rllm"}
ROWS = {"livecodebench": [400]}
LOCAL = ["math500", "aime24", "aime25", "amc23", "amc22_23", "ifeval", "livecodebench", "humaneval"]
CHECKED = "9ddc2d4104c21d343f840940cff7871b0acdd4336b5383248c0d7812c5a88c92"  # the copy of DAPO-Math-17K whose cleaning was read by hand

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data in {REAL}; set IBTPO_REAL_DATA to a folder that has it")


def ok(gold, kind):
    return "ok"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """All local sets, built: name -> problems; and .report(name)."""
    folder = tmp_path_factory.mktemp("corpora")
    content = load("tiny").corpora.model_dump(mode="json")
    sources = content["sources"] | {"amc22_23": content["sources"]["amc23"] | {"rows": [83], "title": "AMC 2022 and 2023"}}
    names = [name for name in (*LOCAL, "dapo_math_17k", "verifiable_coding") if (REAL / FOLDERS.get(name, name)).is_dir()]
    chosen = {name: sources[name] | {"folder": FOLDERS.get(name), "rows": ROWS.get(name, sources[name].get("rows", []))} for name in names}
    settings = Corpora(**content | {"data_root": str(REAL), "sources": chosen})
    for name in settings.benchmarks:
        build_benchmark(settings, name, folder / f"{name}.parquet", ok)
    for name in settings.trainings:
        build_corpus(settings, name, [folder / f"{benchmark}.parquet" for benchmark in settings.benchmarks], folder / f"{name}.parquet", ok)
    frames = {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}
    return frames, lambda name: json.loads((folder / f"{name}.json").read_text())


def need(built, *names):
    frames, report = built
    for name in names:
        if name not in frames:
            pytest.skip(f"no {name} in {REAL}")
    return [frames[name] for name in names], report


def test_benchmarks_are_whole(built):
    frames, _ = built
    sizes = {"math500": 500, "aime24": 30, "aime25": 30, "amc23": 40, "amc22_23": 83, "ifeval": 541, "livecodebench": 400, "humaneval": 164}
    assert {name: len(frames[name]) for name in LOCAL if name in frames} == {name: sizes[name] for name in LOCAL if name in frames}
    for name, frame in frames.items():
        assert frame.uid.is_unique and frame.prompt.str.strip().ne("").all(), name
        assert set(map(type, map(json.loads, frame.metadata))) == {dict}, name


def test_dapo_counts(built):
    (frame,), report = need(built, "dapo_math_17k")
    found = report("dapo_math_17k")
    if list(found["files"].values()) != [CHECKED] or not set(LOCAL) <= set(built[0]):
        pytest.skip("another copy, or other benchmarks, than the ones that were read by hand")
    assert (found["rows"], found["repeated"], len(frame)) == (17917, 650, 12181)
    assert {step["name"]: step["changed"] or step["removed"] for step in found["steps"]} == {
        "repair": 682,
        "wrapper": 53,
        "empty": 0,
        "language": 3214,
        "picture": 34,
        "conflict": 52,
        "duplicate": 4,
        "near duplicate": 696,
        "contamination": 145,
        "reworded": 941,
        "gold": 0,
    }
    occurring = {row["benchmark"]: row["occurring"] for row in found["contamination"]}
    assert occurring == dict(math500=48, aime24=1, aime25=1, amc23=29, amc22_23=56, ifeval=0, livecodebench=1, humaneval=0)


def test_dapo_is_clean(built):
    (frame,), _ = need(built, "dapo_math_17k")
    assert (frame.prompt.map(language) == "en").all()
    assert not frame.prompt.str.contains("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\u4e00-\u9fff]|Answer:|!\\[|https?:", regex=True).any()
    assert frame.answer.str.fullmatch(r"-?\d+").all()
    assert frame.prompt.map(key).is_unique
    assert frame.prompt.str.contains("form \\frac{m}{n}, where gcd(m, n) = 1", regex=False).sum() > 400  # once "\x0crac"


@pytest.mark.parametrize(
    ("uid", "kept", "why"),
    [
        (35, False, "greatest power of 2: answers 64 and 6"),
        (179, False, "its other copy"),
        (2434, False, "30^2015: answers 2 and 24"),
        (606, True, "the first of three copies of a^2+b^2=ab(a+b)"),
        (1956, False, "the second"),
        (15209, False, "Kayla's dice of AMC 2022, rewritten to k + m"),
        (16480, False, "polyhedron of AMC 2023, word for word"),
        (14719, False, "taxicab distance of AMC 2022, reworded"),
        (15797, False, "taxicab distance once more"),
        (16964, False, "complex operation of AMC 2023, with another question"),
        (17886, False, "polygon of MATH-500, another request for its area"),
        (3957, True, "ends like an AIME problem, but is another one"),
        (2848, True, "likewise"),
        (12584, False, "Chinese with hardly a character"),
        (13980, False, "English with a Chinese condition"),
        (8415, False, "its diagram is a link"),
        (8358, True, "form feed inside a word"),
    ],
)
def test_dapo_cases(built, uid, kept, why):
    (frame, *_), _ = need(built, "dapo_math_17k", *LOCAL)
    rows = frame[frame.source_id == f"dapo-{uid}"]
    assert len(rows) == kept, why


def test_no_beginning_of_a_contest_problem_is_left(built):
    """Another rule than the one that cleaned: the first 16 words and numbers of a problem, in a row. (Ten are shared by other problems.)"""
    (train, *tests), _ = need(built, "dapo_math_17k", "amc23", "amc22_23", "aime24", "aime25")
    texts = " | ".join(" ".join(tokens(prompt)) for prompt in train.prompt)
    left = [uid for frame in tests for uid, prompt in zip(frame.uid, frame.prompt, strict=True) if " ".join(tokens(prompt)[:16]) in texts]
    assert left == []


def test_code_problems_keep_their_tests(built):
    (frame,), _ = need(built, "verifiable_coding")
    assert frame.metadata.map(lambda text: len(json.loads(text)["cases"])).min() >= 1 and (frame.family == "code").all()
