"""From a cell to what it was made of: complete (an artifact that moves a cell is among its sources), checked, and from a clone as well."""

import csv
import json
import shutil

import pandas as pd
import pytest

from ibtpo import IbtpoError
from ibtpo.__main__ import main
from ibtpo.config import Paths
from ibtpo.config.publish import publish
from ibtpo.io import read_parquet, sha256, write_bytes, write_json, write_parquet
from ibtpo.operations.trace import REPORTED, SETTING, trace
from ibtpo.report import main_table
from ibtpo.report.tables import TABLES

OTHER = {"reward": lambda v: 1 - v, "new_tokens": lambda v: v + 7, "ib_score": lambda v: v + 1, "dead": lambda v: ~v}
OTHER |= {"seconds": lambda v: v * 1.5 + v**2}
OTHER |= {name: lambda v: v / 2 + 0.01 for name in ("root_repicked", "node_repicked", "covariance", "mean_pi")}


@pytest.fixture
def project(config, tmp_path, monkeypatch):
    """The paths of a project in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Paths(config)


@pytest.fixture
def make(project, inputs):
    """Function: makes a table of artifacts that lie where the workflow has them, and returns its path; other files for `changed` ones."""

    def table(name, **changed):
        for artifact, file in zip(project.shown(name), inputs(name), strict=True):
            write_bytes(file.read_bytes(), project.computed(artifact))
        files = [changed.get(project.computed(artifact).name, project.computed(artifact)) for artifact in project.shown(name)]
        main_table(name, project.config, files, project.stem(name))
        return f"{project.stem(name)}.csv"

    return table


def lines(table):
    with open(table, newline="") as file:
        return {(line["grid"], line["row"], line["column"]): line for line in csv.DictReader(file)}


@pytest.mark.parametrize("name", TABLES)
def test_whatever_moves_a_cell_is_among_its_sources(project, make, name, tmp_path):
    before = lines(make(name))
    sources = {key: trace(f"{project.stem(name)}.csv", *key[1:], grid=key[0])["cells"][0]["artifacts"] for key in before}
    assert any(sources.values())
    for artifact in [name for name in project.shown(name) if not name.endswith("-seed1")]:
        file = project.computed(artifact)
        frame = pd.read_parquet(file)
        if "status" in frame:
            frame["status"] = frame["status"].map({"ok": "parse_failed", "parse_failed": "ok"})
        moved = frame.assign(**{column: change(frame[column]) for column, change in OTHER.items() if column in frame})
        write_parquet(moved, tmp_path / "moved" / file.name)
        after = lines(make(name, **{file.name: tmp_path / "moved" / file.name}))
        cells = [key for key in before if before[key] != after[key]]
        assert cells and all(file.name in sources[key] for key in cells)


@pytest.mark.parametrize(
    "name, row, column, kinds",
    [
        ("table1", "ibtpo", "gcd", ["scores-ibtpo"]),
        ("table1", "ibtpo", "Avg - GRPO", ["scores-ibtpo", "scores-grpo"]),
        ("table1", "ibtpo", "p (Holm)", ["scores-base", "scores-grpo", "scores-ibtpo"]),
        ("table3", "ibtree12", "tokens vs. independent, G = 12", ["trees-ibtree12", "trees-independent12"]),
        ("ibscore", "ibtpo", "mean pi", ["offline-ibtpo"]),
    ],
)
def test_a_plain_cell_has_the_sources_of_its_row_alone(make, name, row, column, kinds):
    titles = {"ibtpo": "IB-TPO", "ibtree12": "IBTree, G = 12, beta = 5"}
    found = trace(make(name), titles[row].lower(), column.upper())["cells"][0]["artifacts"]
    assert {artifact.rsplit("-", 1)[0].split("-seed")[0] for artifact in found} == set(kinds)


def test_reported_numbers_and_settings_have_no_artifacts(make):
    reported = trace(make("table1"), "GRPO", "MATH-500")["cells"]
    assert [(cell["origin"], cell["artifacts"], cell["reported"]) for cell in reported] == [(REPORTED, [], "81.5")]
    setting = trace(make("table6"), "ibtree12", "B0")["cells"]
    assert [(cell["origin"], cell["artifacts"]) for cell in setting] == [(SETTING, [])]


def test_cells_of_the_same_name_in_several_grids(make):
    table = make("erpo1")
    assert [cell["grid"].split(": ")[1] for cell in trace(table, "GRPO", "gcd")["cells"]] == ["accuracy, avg@4", "format rate"]
    assert len(trace(table, "GRPO", "gcd", grid="Format")["cells"]) == 1


def only_table1(config):
    return Paths(config.model_copy(update={"outputs": ("table1",), "forest": config.forest.model_copy(update={"policies": ()})}))


def record_everything(paths):
    """What the jobs behind the artifacts leave behind, in short."""
    for policy in paths.policies:
        write_json({"config_hash": paths.run(policy).name, "seed": 3}, paths.run(policy) / "run.json")
        write_json({"job": policy}, paths.computed(f"samples-{policy}").with_suffix(".run.json"))
    write_parquet(pd.DataFrame({"uid": ["a"]}), paths.data / "train.parquet")
    write_json({"train": 1}, paths.data / "done.json")


def test_the_records_are_those_of_this_machine_or_else_the_published_ones(project, make, config):
    record_everything(project)
    table = make("table1")
    found = trace(table, "IB-TPO", "Avg")
    runs = [f"runs/{project.run(f'ibtpo-seed{seed}').name}" for seed in config.seeds]
    assert set(runs) < set(found["records"])
    assert [found["records"][run]["config_hash"] for run in runs] == [run.removeprefix("runs/") for run in runs]
    data = found["records"][f"data/{project.data.name}"]
    assert data == {"done": {"train": 1}, "files": {"train.parquet": sha256(project.data / "train.parquet")}}
    assert found["records"][f"artifacts/{project.key('samples-ibtpo-seed0')}"] == {"job": "ibtpo-seed0"}
    assert all(found["records"].values())

    publish(only_table1(config))
    for name in ("artifacts", "runs", "policy", "data"):
        shutil.rmtree(project.root / name)
    clone = trace(table, "IB-TPO", "Avg")
    assert clone["records"] == found["records"]
    assert {artifact["state"] for artifact in clone["artifacts"].values()} == {"as the table was made of it"}
    assert all("published" in artifact["file"] for artifact in clone["artifacts"].values())


def test_publishing_again_from_a_clone_keeps_the_records(project, make, config):
    record_everything(project)
    make("table1")
    paths = only_table1(config)
    publish(paths)
    first = (project.root / "published" / "provenance.json").read_bytes()
    for name in ("artifacts", "runs", "policy", "data"):
        shutil.rmtree(project.root / name)
    publish(paths)
    assert (project.root / "published" / "provenance.json").read_bytes() == first and b"ibtpo-seed1" in first


def test_publishing_takes_what_was_computed_since(project, make, config):
    """Records and artifacts are of the same run, also where an older copy is published and would be read."""
    record_everything(project)
    make("table1")
    paths = only_table1(config)
    publish(paths)
    newer = paths.computed("scores-ibtpo-seed0")
    write_parquet(read_parquet(newer).assign(tokens=7), newer)
    publish(paths)
    assert paths.published("scores-ibtpo-seed0").read_bytes() == newer.read_bytes()


def test_an_artifact_that_changed_or_is_gone_is_said(project, make):
    table = make("table1")
    first, second = (project.computed(f"scores-ibtpo-seed{seed}") for seed in (0, 1))
    write_parquet(pd.read_parquet(first).assign(reward=1.0), first)
    second.unlink()
    states = {name: artifact["state"] for name, artifact in trace(table, "IB-TPO", "gcd")["artifacts"].items()}
    assert states == {first.name: "changed since the table was made", second.name: "not on this machine"}


def test_the_command_prints_a_tree_or_json(project, make, config, capsys, monkeypatch):
    monkeypatch.setattr("ibtpo.__main__.load", lambda *_: config)
    table = make("table1")
    assert main(["trace", table, "IB-TPO", "gcd"]) == 0
    tree = capsys.readouterr().out
    assert f"{project.key('scores-ibtpo-seed0')}.parquet:" in tree and "no record here" in tree
    assert main(["trace", table, "IB-TPO", "gcd", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == trace(table, "IB-TPO", "gcd")
    assert main(["trace", table, "IBTPO", "gcd"]) == 1
    assert "Did you mean 'IB-TPO'? Known: base policy; GRPO; IB-TPO" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("IBTPO", "gcd"), ["no row 'IBTPO'", "Did you mean 'IB-TPO'?", "base policy; GRPO; IB-TPO"]),
        (("IB-TPO", "AIME"), ["no column 'AIME'", "chain-sum-5; gcd; Avg"]),
        (("IB-TPO", "gcd", "nowhere"), ["no grid 'nowhere'", "avg@4"]),
    ],
)
def test_an_unknown_name_says_the_known_ones(make, arguments, words):
    with pytest.raises(IbtpoError) as error:
        trace(make("table1"), *arguments)
    assert all(word in str(error.value) for word in words)


def test_a_table_that_is_not_there_or_damaged(project, make):
    with pytest.raises(IbtpoError, match="snakemake table2"):
        trace(f"{project.stem('table2')}.csv", "GRPO", "gcd")
    table = make("table1")
    project.stem("table1").with_suffix(".sources.json").write_text("{")
    with pytest.raises(IbtpoError, match="make the table again"):
        trace(table, "GRPO", "gcd")
