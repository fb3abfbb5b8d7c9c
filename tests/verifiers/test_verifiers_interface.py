"""One interface for all kinds, in training and evaluation, and the command that scores a file."""

import json
import math
import time

import pytest

from ibtpo import IbtpoError
from ibtpo.verifiers import FAMILIES, KINDS, GoldError, Verdict, check_gold, cli, score, score_all, verify, workers
from ibtpo.verifiers.workers import Pool

RIGHT, WRONG, UNPARSED = Verdict(1.0, "ok"), Verdict(0.0, "ok"), Verdict(0.0, "parse_failed")
NO_COMMA = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}


@pytest.fixture(autouse=True)
def one_pool(pool, monkeypatch):
    monkeypatch.setattr(workers, "pool", lambda: pool)


@pytest.mark.parametrize(
    ("family", "metadata", "text", "verdict"),
    [
        ("maths", {"answer": "\\frac12"}, "\\boxed{0.5}", RIGHT),
        ("maths", {"answer": "3"}, "\\boxed{0.5}", WRONG),
        ("choice", {"answer": "C"}, "Answer: C", RIGHT),
        ("choice", {"answer": "F", "choices": 6}, "Answer: F", RIGHT),
        ("ifeval", NO_COMMA, "oak", RIGHT),
        ("ifeval", NO_COMMA, "oak, elm", WRONG),
        ("gcd", {"answer": "6"}, "\\boxed{6}", RIGHT),
        ("countdown", {"numbers": [9, 4], "target": 5, "answer": "9-4"}, "\\boxed{9-4}", RIGHT),
        ("countdown", {"numbers": [9, 4], "target": 5, "answer": "9-4"}, "5", UNPARSED),
    ],
)
def test_a_problem_row_is_verified_by_its_family(family, metadata, text, verdict):
    assert verify(family, json.dumps(metadata), text) == verdict
    assert score(family, metadata["answer"] if family == "maths" else metadata, text) == verdict


def test_maths_without_a_box_earns_nothing_but_can_be_scored():
    """D.2 rows 17 and 37; a truncated response has no format either."""
    assert verify("maths", '{"answer": "42"}', "so 6 * 7 = 42") == UNPARSED
    assert score("maths", "42", "so 6 * 7 = 42") == RIGHT


def test_an_answer_is_gold_enough_where_no_more_is_needed():
    assert score("gcd", 6, "\\boxed{6}") == score("gcd", "6", "\\boxed{6}") == RIGHT
    assert score("maths", 42, "\\boxed{42}") == RIGHT


@pytest.mark.parametrize(
    ("kind", "gold", "part"),
    [
        ("sudoku", "1", "'sudoku'.*maths"),
        ("maths", None, "maths"),
        ("maths", ["1"], "maths"),
        ("countdown", "5", "countdown"),
        ("ifeval", "no JSON", "ifeval"),
        ("ifeval", [], "ifeval"),
        ("code", {}, "needs `cases` or `test`"),
    ],
)
def test_bad_gold_is_told(kind, gold, part):
    with pytest.raises(GoldError, match=part):
        score(kind, gold, "```python\n1\n```\n\\boxed{1+2}")


@pytest.mark.parametrize("metadata", ["no JSON", "[]", "{}"])
def test_bad_metadata_is_told(metadata):
    with pytest.raises(GoldError, match="no gold answer"):
        verify("maths", metadata, "\\boxed{1}")


def test_a_completion_must_be_text():
    with pytest.raises(GoldError, match="not NoneType"):
        score("maths", "1", None)


@pytest.mark.parametrize(
    ("gold", "kind", "status"),
    [
        ("\\frac12", "maths", "ok"),
        ("", "maths", "empty"),
        ("a=b=3", "maths", "lossy: b"),
        (None, "maths", "parse_failed"),
        ("C", "choice", "ok"),
        (NO_COMMA, "ifeval", "ok"),
        ({"answer": "6"}, "gcd", "ok"),
        ({"answer": "six"}, "gcd", "unverified"),
        ({"answer": ""}, "gcd", "empty"),
        ({"answer": "9-4", "numbers": [9, 4], "target": 6}, "countdown", "unverified"),
        ({"answer": "9-4"}, "countdown", "parse_failed"),
    ],
)
def test_gold_answers_are_checked(gold, kind, status):
    assert check_gold(gold, kind).startswith(status)


def test_gold_answers_of_an_unknown_kind_are_an_error():
    with pytest.raises(GoldError, match="sudoku"):
        check_gold("1", "sudoku")


def test_a_hanging_gold_answer_is_told(monkeypatch):
    impatient = Pool(1, seconds=0.5)
    monkeypatch.setattr(workers, "pool", lambda: impatient)
    assert check_gold("9^{9^9}", "maths") == "timeout"
    impatient.close()


def test_score_all_keeps_the_order_and_takes_items_as_it_goes():
    taken = []

    def items():
        for n in range(2000):
            taken.append(n)
            yield "gcd", str(n % 2), "\\boxed{0}"

    verdicts = score_all(items())
    assert [next(verdicts).reward for _ in range(10)] == [1, 0] * 5
    assert len(taken) < 400
    assert sum(verdict.reward for verdict in verdicts) == 995


# --- the command ---

ROWS = [
    {"gold": "\\frac12", "pred": "\\boxed{0.5}", "kind": "maths", "id": 7},
    {"gold": "1", "pred": "\\boxed{2}", "kind": "maths"},
    {"gold": "1", "pred": "\\boxed{", "kind": "maths"},
    {"gold": "A", "pred": "A clean solution does not exist.", "kind": "choice"},
    {"gold": NO_COMMA, "pred": "oak", "kind": "ifeval"},
]
SCORED = [
    ROWS[0] | {"correct": True, "status": "ok"},
    ROWS[1] | {"correct": False, "status": "ok"},
    ROWS[2] | {"correct": False, "status": "parse_failed"},
    ROWS[3] | {"correct": False, "status": "abstained"},
    ROWS[4] | {"correct": True, "status": "ok"},
]


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(path)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_command_writes_the_same_rows_with_verdicts_and_prints_a_table(tmp_path, capsys):
    out = tmp_path / "new" / "out.jsonl"
    cli.main(write(tmp_path / "in.jsonl", ROWS), str(out))
    assert read(out) == SCORED
    assert [path.name for path in out.parent.iterdir()] == ["out.jsonl"]
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table == [
        ["kind", "status", "rows", "correct", "share"],
        ["choice", "abstained", "1", "0", "100.0%"],
        ["ifeval", "ok", "1", "1", "100.0%"],
        ["maths", "ok", "2", "1", "66.7%"],
        ["maths", "parse_failed", "1", "0", "33.3%"],
        ["all", "5", "2"],
    ]


def test_what_the_verifier_could_not_score_is_neither_right_nor_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "score_all", lambda items: (Verdict(math.nan, "error") for _ in items))
    cli.main(write(tmp_path / "in.jsonl", ROWS[:1]), str(tmp_path / "out.jsonl"))
    assert read(tmp_path / "out.jsonl")[0]["correct"] is None
    assert "error" in capsys.readouterr().out


def test_a_finished_file_is_never_overwritten(tmp_path):
    (tmp_path / "out.jsonl").write_text("precious")
    with pytest.raises(IbtpoError, match="exists already"):
        cli.main(write(tmp_path / "in.jsonl", ROWS), str(tmp_path / "out.jsonl"))
    assert (tmp_path / "out.jsonl").read_text() == "precious"


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    source, out = write(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    marked = [SCORED[0] | {"status": "memory"}, SCORED[1]]  # to see that they are not scored again
    write(tmp_path / "out.jsonl.part", marked)
    with open(tmp_path / "out.jsonl.part", "a") as part:
        part.write('{"gold": "1", "pr')  # torn
    cli.main(source, str(out))
    assert read(out) == [*marked, *SCORED[2:]]
    assert "memory" in capsys.readouterr().out


def test_the_part_of_another_file_is_not_continued(tmp_path):
    source = write(tmp_path / "in.jsonl", ROWS)
    write(tmp_path / "out.jsonl.part", [SCORED[1]])
    with pytest.raises(IbtpoError, match=r"out.jsonl.part, line 1, is not of .*in.jsonl; delete"):
        cli.main(source, str(tmp_path / "out.jsonl"))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ('{"gold": "1", "pred": "2", "kind": "gcd"}\n{"gold": "1", oops}\n', "line 2 is not JSON"),
        ('{"gold": "1", "kind": "gcd"}\n', "line 1 has no pred"),
        ("[1]\n", "line 1 has no gold, pred, kind"),
        ("\n", "holds no rows"),
        ('{"gold": "1", "pred": "2", "kind": "gcd"}\n\n{"gold": "1", "pred": "2", "kind": "sudoku"}\n', "line 3: .*'sudoku'"),
        ('{"gold": "Z", "pred": "2", "kind": "choice"}\n', "line 1: .*none of the 4 choices"),
    ],
)
def test_bad_input_is_named_with_file_and_line(tmp_path, content, part):
    (tmp_path / "in.jsonl").write_text(content)
    with pytest.raises(IbtpoError, match=rf"in\.jsonl.*{part}"):
        cli.main(str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"))
    assert not (tmp_path / "out.jsonl").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(IbtpoError, match=r"no such file.*nothing\.jsonl"):
        cli.main(str(tmp_path / "nothing.jsonl"), str(tmp_path / "out.jsonl"))


def test_many_rows_are_no_problem(tmp_path, capsys):
    rows = [{"gold": str(n % 7), "pred": "\\boxed{0}", "kind": "gcd"} for n in range(10_000)]
    start = time.process_time()
    cli.main(write(tmp_path / "in.jsonl", rows), str(tmp_path / "out.jsonl"))
    assert time.process_time() - start < 10
    assert sum(row["correct"] for row in read(tmp_path / "out.jsonl")) == 1429


def test_all_kinds_are_named():
    assert set(KINDS) == {"maths", "choice", "ifeval", "code", *FAMILIES}
