"""Outputs as a whole: equal bytes in two processes, no heavy imports, no display; and the block of the README."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ibtpo.config import Paths
from ibtpo.config.paths import EXTRA, FIGURES, SHOWN, TABLES
from ibtpo.report import readme
from ibtpo.report.readme_block import stale

MADE = [*TABLES, *EXTRA, "figure5", "figure7", "figure8", "ibscores"]  # the other figures are drawn as figure5
REPOSITORY = Path(__file__).parents[2]
CODE = """
import json, sys
from pathlib import Path
from ibtpo.config.models import Config
from ibtpo.config.paths import EXTRA, TABLES
from ibtpo.report import main_figure, main_table

folder, out = Path(sys.argv[1]), Path(sys.argv[2])
config = Config.model_validate_json((folder / "config.json").read_text())
inputs = json.loads((folder / "inputs.json").read_text())
for name in set(TABLES | EXTRA) & set(inputs):
    main_table(name, config, inputs[name], out / name)
loaded = [name for name in ("torch", "transformers", "vllm", "trl", "seaborn", "matplotlib") if name in sys.modules]
for name in set(inputs) - set(TABLES | EXTRA):
    main_figure(name, config, inputs[name], out / name)
loaded += [name for name in ("torch", "transformers", "vllm", "trl") if name in sys.modules]
print(json.dumps(loaded))
"""


@pytest.fixture
def two_processes(config, inputs, tmp_path):
    """What two processes with different hash seeds and no display print, and the folders they write to."""
    (tmp_path / "inputs.json").write_text(json.dumps({name: [str(path) for path in inputs(name)] for name in MADE}))
    (tmp_path / "config.json").write_text(config.model_dump_json(exclude_unset=True))
    printed = []
    for number in ("1", "2"):
        environment = {key: value for key, value in os.environ.items() if key not in ("MPLBACKEND", "DISPLAY", "WAYLAND_DISPLAY")}
        command = [sys.executable, "-c", CODE, str(tmp_path), str(tmp_path / number)]
        environment |= {"PYTHONHASHSEED": number, "TZ": f"UTC{number}"}
        printed.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    return printed, tmp_path / "1", tmp_path / "2"


def test_every_table_and_figure_of_the_workflow_is_made_here_and_has_a_caption():
    from ibtpo.report import figures, tables

    assert set(tables.TABLES) == set(TABLES | EXTRA)
    assert set(figures.FIGURES) == set(FIGURES)
    for name in SHOWN | EXTRA:
        caption = (REPOSITORY / "workflow" / "report" / f"{name}.rst").read_text()
        assert len(caption) > 40 and caption.endswith(".\n")


def test_two_processes_write_the_same_bytes_without_a_model_library(two_processes):
    printed, first, second = two_processes
    assert [json.loads(line) for line in printed] == [[], []]
    names = sorted(path.name for path in first.iterdir())
    assert len(names) == 4 * len(MADE) + len(TABLES | EXTRA)  # tables tell their sources too
    assert names == sorted(path.name for path in second.iterdir())
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []


@pytest.fixture
def repository(config, tmp_path, monkeypatch):
    """A folder with a README and with the table and the figure of the preset."""
    monkeypatch.chdir(tmp_path)
    paths = Paths(config)
    for stem, suffix, text in [("table1", ".md", "| a | b |\n\\1 caption\n"), ("figure5", ".svg", "<svg/>")]:
        path = Path(f"{paths.stem(stem)}{suffix}")
        path.parent.mkdir(parents=True)
        path.write_text(text)
    Path("README.md").write_text("# Title\n\n<!-- table1 -->\nold\n<!-- /table1 -->\n\nText.\n")
    return tmp_path


def test_readme_block_is_renewed_and_nothing_else(repository, config):
    assert stale(config) == [Path("README.md"), Path("docs/figures/figure5.svg")]
    readme(config)
    assert Path("README.md").read_text() == "# Title\n\n<!-- table1 -->\n\n| a | b |\n\\1 caption\n\n<!-- /table1 -->\n\nText.\n"
    assert Path("docs/figures/figure5.svg").read_text() == "<svg/>"
    assert stale(config) == []
    before = Path("README.md").read_bytes()
    readme(config)
    assert Path("README.md").read_bytes() == before


def test_a_changed_table_or_figure_makes_the_readme_stale(repository, config):
    readme(config)
    Path(f"{Paths(config).stem('table1')}.md").write_text("| a | c |\n")
    assert stale(config) == [Path("README.md")]
    Path(f"{Paths(config).stem('figure5')}.svg").write_text("<svg></svg>")
    assert stale(config) == [Path("README.md"), Path("docs/figures/figure5.svg")]


@pytest.mark.parametrize("text", ["# Title\n", "<!-- table1 -->\n<!-- /table1 -->\n<!-- table1 -->\n<!-- /table1 -->\n"])
def test_a_readme_without_exactly_one_block_is_refused_and_kept(repository, config, text):
    Path("README.md").write_text(text)
    with pytest.raises(ValueError, match=r"README\.md needs one block between the lines <!-- table1 --> and <!-- /table1 -->"):
        readme(config)
    assert Path("README.md").read_text() == text


def test_a_missing_table_is_an_error_that_names_it(repository, config):
    Path(f"{Paths(config).stem('table1')}.md").unlink()
    with pytest.raises(FileNotFoundError, match=r"tables/table1\.md"):
        readme(config)
