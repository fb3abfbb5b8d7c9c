"""The page of provenance: which configuration, files, packages and machine are behind the numbers, and what they cost."""

from __future__ import annotations

import json
from collections import defaultdict
from importlib import metadata
from typing import Any

import pyarrow.parquet as pq
import yaml

from ibtpo.config import slices
from ibtpo.config.records import records
from ibtpo.io import sha256
from ibtpo.site.inputs import Inputs
from ibtpo.site.runs import PHASES

PACKAGES = ("ibtpo", "torch", "transformers", "trl", "numpy", "pandas", "scipy", "pyarrow", "matplotlib", "seaborn", "plotly", "jinja2")
MACHINE = ("platform", "cores", "hardware", "python", "commit")  # what of a record tells where and with which code a job ran


def provenance(inputs: Inputs) -> dict[str, Any]:
    names = inputs.paths.report_inputs()
    return {
        "artifacts": [_artifact(inputs, name) for name in names],
        "slices": _slices(inputs),
        "packages": [(name, version) for name in PACKAGES if (version := _version(name))],
        "machines": _machines(inputs, names),
        "cost": _cost(inputs),
        "config": yaml.safe_dump(inputs.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110),
        "phases": PHASES,
    }


def _artifact(inputs: Inputs, name: str) -> dict[str, Any]:
    path, stem = inputs.paths.artifact(name), inputs.paths.key(name)
    return {
        "name": name,
        "kind": name.partition("-")[0],
        "hash": stem.removeprefix(f"{name}-"),
        "published": path == inputs.paths.published(name),
        "rows": pq.read_metadata(path).num_rows,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }


def _slices(inputs: Inputs) -> list[tuple[str, str, str]]:
    """Hashes that name folders and files, and what each covers."""
    config = inputs.config
    return [
        ("data", slices.slice_hash(slices.data(config)), "problems and benchmarks"),
        ("base policy", slices.slice_hash(slices.policy(config)), "data, architecture and supervised training"),
        ("report", slices.slice_hash(slices.report(config)), "whole configuration and the code that makes tables and figures"),
    ]


def _machines(inputs: Inputs, names: list[str]) -> list[dict[str, Any]]:
    """What the records at hand, or published, say of where jobs ran: one entry a machine and commit, with the jobs that share it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for place, content in records(inputs.paths, names).items():
        if "platform" in content:
            groups[json.dumps({key: content.get(key) for key in MACHINE}, sort_keys=True)].append(place)
    return [{"jobs": sorted(places), **json.loads(machine)} for machine, places in sorted(groups.items())]


def _cost(inputs: Inputs) -> list[dict[str, Any]]:
    """Seconds of each phase and tokens generated, by method: sums over its runs, from their metrics."""
    rows = inputs.metrics
    totals = rows.groupby(["method", "metric"])["value"].sum()
    seeds = rows.groupby("method")["seed"].nunique()
    lines = []
    for method in [name for name in inputs.config.methods if name in seeds.index]:
        seconds = {phase: float(totals.get((method, f"seconds/{phase}"), 0.0)) for phase in PHASES}
        tokens = float(totals.get((method, "train/tokens"), 0.0))
        title = inputs.config.methods[method].title
        lines.append({"method": title, "runs": int(seeds[method]), "tokens": tokens, "seconds": sum(seconds.values()), **seconds})
    return lines


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
