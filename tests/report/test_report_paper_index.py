"""docs/paper-index.md names only what there is: files, tests, functions and config keys."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from ibtpo.config.measurements import Measurement
from ibtpo.config.methods import Advantage, Method, Regulariser, Sampler
from ibtpo.config.models import Comparison, Engine, Evaluate, Forest, Offline, Sampling, Train
from ibtpo.config.paths import SHOWN, TABLES

REPOSITORY = Path(__file__).parents[2]
MODELS = {"sampling": Sampling, "engine": Engine, "train": Train, "evaluate": Evaluate, "comparison": Comparison, "offline": Offline}
MODELS |= {
    "forest": Forest,
    "measurements": Measurement,
    "samplers": Sampler,
    "methods": Method,
    "advantage": Advantage,
    "regulariser": Regulariser,
}
LINES = (REPOSITORY / "docs" / "paper-index.md").read_text().splitlines()
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in LINES if line.startswith("| ")]
ROWS = [row for row in ROWS if row[1:] != ["config key", "function", "test"]]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_is_read_as_a_table():
    assert len(ROWS) > 40
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:30] for row in ROWS])
def test_a_row_names_what_there_is(row):
    _, keys, functions, tests = row
    for key in quoted(keys):
        path, last = re.fullmatch(r"([\w.*]+)\.(\w+|\{[\w, ]+\})", key).groups()
        model = path.removesuffix(".*").split(".")[-1]
        for name in last.strip("{}").split(", "):
            assert name in (SHOWN if model in ("tables", "figures") else MODELS[model].model_fields), key
    assert quoted(functions) and quoted(tests)
    for function in quoted(functions):
        if "." in function:
            room, name = function.split(".")
            sources = [path.read_text() for path in (REPOSITORY / "src" / "ibtpo" / room).glob("*.py")]
            assert any(re.search(rf"^(?:def|class) {name}\b|^{name} = ", source, re.MULTILINE) for source in sources), function
    source = ""
    for test in quoted(tests):
        if test.endswith(".py"):
            source = (REPOSITORY / "tests" / test).read_text()
        else:
            found = re.findall(r"def (test_\w+)", source)
            assert any(fnmatch(name, test) for name in found), test


def test_every_table_and_figure_is_in_the_index():
    named = {name for row in ROWS for name in quoted(row[2])}
    assert {f"report.{name}" for name in SHOWN} <= named
    assert set(TABLES) < set(SHOWN)
