"""What runs, and why: dry runs, single targets, published artifacts, and what a changed configuration makes run again (T25)."""

import shutil
import time

import pytest

from ibtpo.config import paths
from ibtpo.config.paths import SHOWN

BASE = {"build_data": 1, "train_policy": 1}
TABLE1 = {**BASE, "train": 24, "sample": 25, "score": 25, "table1": 1}  # 8 methods x 3 seeds, and the base policy
TABLE3 = {**BASE, "compare": 8, "table3": 1}
FIGURE5 = {**BASE, "train": 24, "metrics": 24, "figure5": 1}
TABLES = {**dict.fromkeys(SHOWN, 1), "all": 1}
ALL = {**BASE, "train": 78, "sample": 79, "score": 79, "metrics": 27, "offline": 25, "compare": 14, **TABLES}
ALL |= {"measure": 3, "sample_longer": 10, "score_longer": 10}  # Tables 7 and 8, Figure 8; Table 9
ALL |= {"forest": 12}  # four policies, three samplers


@pytest.mark.parametrize("profile", [[], ["--profile", "slurm"], ["--profile", "profiles/local"]], ids=["default", "slurm", "local"])
def test_dry_run_of_everything(project, profile):
    assert project.jobs(*profile, "all") == ALL
    assert not project.path("results").exists()


def test_single_targets_run_only_what_is_under_them(project):
    measured = {"measure": 1, "figure8": 1, **BASE}
    assert project.jobs("figure8") == measured and project.jobs("table8") == {"measure": 1, "table8": 1}  # of a random model
    assert project.jobs("midsize") == {"measure": 2, **dict.fromkeys([*paths.EXTRA, "midsize"], 1)}
    for target, jobs in {"table1": TABLE1, "table3": TABLE3, "figure5": FIGURE5, "policy": {**BASE, "policy": 1}}.items():
        assert project.jobs(target) == jobs
    assert project.jobs("results/tiny/tables/table3.tex") == TABLE3


def test_table_from_published_artifacts_in_a_fresh_clone(project, tmp_path):
    project.publish_random_scores()
    table = project.path("results/tiny/tables/table1.md")
    assert project.jobs("table1") == {"table1": 1}

    started = time.perf_counter()
    said = project.snakemake("table1")
    assert time.perf_counter() - started < 15
    assert "1 of 1 steps" in said
    assert "IB-TPO" in table.read_text()

    assert project.jobs("table1") == {}
    assert project.jobs("table1", "--config", "artifacts=fresh") == TABLE1
    first = {path.name: path.read_bytes() for path in table.parent.iterdir()}
    shutil.rmtree(project.path("results/tiny/tables"))
    other = project.copy(tmp_path / "another clone")
    other.snakemake("table1")
    assert {path.name: path.read_bytes() for path in (other.folder / "results/tiny/tables").iterdir()} == first


def test_published_artifacts_of_another_configuration_are_not_read(project):
    project.publish_random_scores()
    assert project.jobs("table1", "--config", "evaluate={samples: 33}") == TABLE1
    ibtpo_alone = {**BASE, "train": 3, "sample": 3, "score": 3, "table1": 1}
    assert project.jobs("table1", "--config", "methods={ibtpo: {advantage: {beta: 4}}}") == ibtpo_alone


RUNS = {"train": 78, "metrics": 27, "sample": 78, "score": 78, "offline": 24, "sample_longer": 9, "score_longer": 9, "forest": 9, **TABLES}


@pytest.mark.parametrize(
    "change, jobs",
    [
        ("train={learning_rate: 1.0e-3}", RUNS),
        ("evaluate={samples: 33}", {"sample": 79, "score": 79, "sample_longer": 10, "score_longer": 10, **TABLES}),
        ("evaluate={confidence: 0.9}", TABLES),
        ("methods={grpo: {title: other}}", TABLES),
        ("samplers={independent12: {min_room: 9}}", {"compare": 1, "measure": 1, "forest": 4, **TABLES}),
        ("measurements={table8: {repeats: 6}}", {"measure": 1, **TABLES}),
        ("engine={max_sequences: 3}", {"measure": 3, **dict.fromkeys(["table7", "table8", "rollouts", "figure8", "all"], 1)}),
        ("resources={heavy: {memory_mb: 4000}}", {}),
        ("preset=tiny", {}),
    ],
)
def test_changed_configuration_makes_run_again_what_it_changes(finished, change, jobs):
    assert finished.jobs("all", "--config", change) == jobs


def test_only_modification_times_count_if_the_user_says_so(finished):
    assert finished.jobs("all", "--rerun-triggers", "mtime", "--config", "evaluate={confidence: 0.9}") == {}


def test_changed_rule_and_caption(finished):
    caption = finished.path("workflow/report/table1.rst")
    caption.write_text(caption.read_text() + "More words.\n")
    assert finished.jobs("all") == {}

    rules = finished.path("workflow/rules/tables.smk")
    rules.write_text(rules.read_text().replace("{CLI} table", "exec {CLI} table"))
    said = finished.snakemake("--dry-run", "all")
    assert finished.counts(said) == {**dict.fromkeys(paths.TABLES, 1), "all": 1}
    assert "Code has changed" in said


def test_publishing_leaves_nothing_to_do_but_the_tables(finished):
    stale = finished.path("results/tiny/published/scores-base-0000000000.parquet")
    stale.parent.mkdir(parents=True)
    stale.touch()
    finished.snakemake("publish")
    place = finished.paths()
    names = {artifact for name in SHOWN | paths.EXTRA for artifact in place.shown(name)} | {*place.forests}
    assert {path.name for path in stale.parent.iterdir()} == {place.published(name).name for name in names} | {"provenance.json"}
    finished.path("results/tiny/artifacts").rename(finished.path("away"))
    assert finished.jobs("all") == TABLES


def test_files_of_another_configuration_are_refused(project):
    assert "No rule to produce" in project.snakemake("results/tiny/runs/grpo-seed0-0123456789/done.json", fails=True)
