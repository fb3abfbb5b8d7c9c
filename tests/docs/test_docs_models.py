"""docs/models.md is true: its card and its preset, on a model and problems of one's own, plan and build what they say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from test_docs_adding_a_method import Copy

from ibtpo.io import read_parquet

REPOSITORY = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```yaml\n# (\S+)\n(.*?)^```$", (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.fixture
def project(world, tmp_path) -> Copy:
    """A copy of the project with the card, the preset, a model and problems of one's own."""
    folder = tmp_path / "my project"
    folder.mkdir()
    copy = Copy(folder)
    for name, text in BLOCKS:
        copy.apply("yaml", name, text)
    shutil.copytree(world.policy, copy.folder / "data" / "models" / "mine")
    (copy.folder / "data" / "mine").mkdir()
    for name, numbers in (("train", range(60)), ("test", range(100, 104))):
        rows = ({"problem": f"Take {n} from {n * n} and double it.", "answer": str(2 * (n * n - n))} for n in numbers)
        (copy.folder / "data" / "mine" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return copy


def test_a_model_and_problems_of_ones_own(project):
    assert [name for name, _ in BLOCKS] == ["config/models/mine.yaml", "config/mine.yaml"]
    found = json.loads(project.python("-m", "ibtpo", "preflight", "--card", "mine", "--model", "data/models/mine"))
    assert found["vocabulary"] == 320
    jobs = project.python("-m", "snakemake", "-n", "all", "--config", "preset=mine")
    assert re.search(r"^train +6$", jobs, re.MULTILINE) and re.search(r"^table1 +1$", jobs, re.MULTILINE), "two methods, three seeds"
    project.python("-m", "snakemake", "--cores", "1", "data", "policy", "--config", "preset=mine")
    (train,) = project.folder.glob("results/mine/data/*/train.parquet")
    problems = read_parquet(train)
    assert len(problems) == 52 and problems["system"].str.contains("boxed").all()
    changed = "corpora={sources: {mine: {revision: second}}}"
    assert "Nothing to be done" in project.python("-m", "snakemake", "-n", "data", "--config", "preset=mine")
    again = project.python("-m", "snakemake", "-n", "data", "--config", "preset=mine", changed)
    assert re.search(r"^corpus +1$", again, re.MULTILINE)
