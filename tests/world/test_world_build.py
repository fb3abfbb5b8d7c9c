"""The data builder: columns, sizes, disjoint splits, same bytes from the same seed."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from ibtpo.config.models import World
from ibtpo.verifiers import verify
from ibtpo.world import DELIMITER, FAMILIES
from ibtpo.world.build import main

SMALL = {"supervised": 300, "train": 40, "validation": 20, "benchmark": 10, "rare_share": 0.05}
WORLD = World()
TASKS = {**WORLD.in_domain, **WORLD.out_of_domain}
COLUMNS = {"uid", "family", "prompt", "answer", "metadata", "solution"}


def build(folder, **changes):
    main(SimpleNamespace(world=World(**{**SMALL, **changes})), folder)
    return {path.stem: pd.read_parquet(path) for path in [*folder.glob("*.parquet"), *folder.glob("benchmarks/*.parquet")]}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("data"))


def test_files_sizes_and_columns(built):
    sizes = {name: len(frame) for name, frame in built.items()}
    assert sizes == {"sft": 300, "train": 40, "validation": 20, **dict.fromkeys(TASKS, 10)}
    assert all(set(frame.columns) == COLUMNS for frame in built.values())


def test_out_of_domain_families_are_rare_and_only_supervised(built):
    counts = built["sft"].family.value_counts()
    assert {family: counts[family] for family in WORLD.out_of_domain} == dict.fromkeys(WORLD.out_of_domain, 15)
    assert counts["chain-sum"] == 270
    for split in ("train", "validation"):
        assert set(built[split].family) == {"chain-sum"}
        terms = built[split].metadata.map(lambda text: json.loads(text)["num_terms"])
        assert terms.value_counts().to_dict() == dict.fromkeys((5, 8), len(built[split]) // 2)


@pytest.mark.parametrize("task", TASKS)
def test_a_benchmark_holds_its_own_task(built, task):
    assert set(built[task].family) == {TASKS[task].get("family", task)}
    assert built[task].uid.str.startswith(f"{task}-").all()


def keys(rows):
    return [
        (row.family, FAMILIES[row.family].key({"answer": row.answer, "metadata": json.loads(row.metadata)})) for row in rows.itertuples()
    ]


def test_no_problem_occurs_twice_anywhere(built):
    rows = pd.concat(built.values())
    assert len(set(keys(rows))) == len(rows)
    assert rows.uid.is_unique


def test_tasks_of_one_family_share_no_problem(tmp_path):
    """Equal options: each stream alone would give the same problems as the other."""
    options = {"family": "gcd", "min_value": 2, "max_value": 99}
    rows = pd.concat(build(tmp_path, in_domain={"here": options}, out_of_domain={"there": options}).values())
    assert len(set(keys(rows))) == len(rows) == 300 + 40 + 20 + 2 * 10


def test_only_the_supervised_split_has_solutions(built):
    assert all(json.loads(solution) for solution in built["sft"].solution)
    assert all((frame.solution == "").all() for name, frame in built.items() if name != "sft")


def test_a_seed_gives_the_same_bytes(tmp_path, built):
    build(tmp_path / "again")
    build(tmp_path / "twice")
    build(tmp_path / "other", seed=8)
    for path in sorted((tmp_path / "again").rglob("*.parquet")):
        name = path.relative_to(tmp_path / "again")
        assert path.read_bytes() == (tmp_path / "twice" / name).read_bytes()
        assert path.read_bytes() != (tmp_path / "other" / name).read_bytes()


def test_done_is_written_last(tmp_path):
    with pytest.raises(ValueError, match="no family 'sudoku'; known: chain-sum"):
        build(tmp_path, out_of_domain={"sudoku": {}})
    assert not (tmp_path / "done.json").exists()


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_slip_rate_is_of_the_families_with_sums(tmp_path, rate):
    frame = build(tmp_path, slip_rate=rate, rough_rate=1.0)["sft"]
    right = [verify(row.family, row.metadata, DELIMITER.join(json.loads(row.solution))).reward for row in frame.itertuples()]
    rates = pd.Series(right).groupby(frame.family).mean()
    assert rates["gcd"] == 1
    assert (rates.drop("gcd") == 1).all() if rate == 0 else (rates.drop("gcd") < 0.5).all()
