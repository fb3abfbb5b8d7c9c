"""Files that must agree with the code: the page of keys, the lock, the registries of tables and figures."""

import re
import sysconfig
from importlib import metadata
from pathlib import Path

from ibtpo.config.describe import readme
from ibtpo.config.paths import EXTRA, FIGURES, TABLES


def test_config_readme_is_up_to_date():
    assert Path("config/README.md").read_text() == readme(), "run: python -m ibtpo describe > config/README.md"


def test_every_key_is_explained():
    empty = [line for line in readme().splitlines() if re.fullmatch(r"\| `.*\|\s*\|", line)]
    assert not empty, "give these keys a description in config/models.py"


def test_lock_is_what_is_installed():
    def plain(name):
        return re.sub(r"[-_.]+", "-", name).lower()

    lines = [line for line in Path("envs/cpu.lock").read_text().splitlines() if not line.startswith("#")]
    locked = {plain(name): version for name, version in (line.split("==") for line in lines)}
    installed = {plain(dist.name): dist.version.split("+cpu")[0] for dist in metadata.distributions(path=[sysconfig.get_path("purelib")])}
    optional = {plain(line.split("==")[0]) for line in Path("envs/small-real.txt").read_text().splitlines() if not line.startswith("#")}
    assert locked == {name: version for name, version in installed.items() if name not in {"pip", "ibtpo", *optional}}


def test_every_direct_requirement_is_locked_at_its_version():
    lock = Path("envs/cpu.lock").read_text().lower().replace("_", "-")
    for line in Path("envs/cpu.in").read_text().lower().replace("_", "-").splitlines():
        requirement = re.sub(r"\[.*?\]", "", line.split("#")[0].strip())
        if requirement:
            pattern = re.escape(requirement) + ("$" if "==" in requirement else "==")
            assert re.search(f"^{pattern.split('<')[0]}", lock, re.MULTILINE), requirement


def test_workflow_and_report_know_the_same_tables_and_figures():
    from ibtpo.report import figures, tables

    assert set(tables.TABLES) == set(TABLES | EXTRA) and set(figures.FIGURES) == set(FIGURES)
