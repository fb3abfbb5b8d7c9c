"""A small configuration, synthetic artifacts that fit it, and the site made from them: what tests/site and tests/browser share.

Titles hold what must show as text: a script, an image whose error would run a script, and LaTeX.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from growing import LIKE, SPECS, forest

from ibtpo.config import Config, Paths, load
from ibtpo.io import write_parquet
from ibtpo.report import main_figure, main_table

SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = '<img src=x onerror="window.hacked = 1"></script>'
LATEX = r"$\frac{1}{2}$ & {{ 7 * 7 }}"
HOSTILE = (SCRIPT, IMAGE, LATEX)

TWO = ["grpo", "ibtpo"]
SAMPLERS = ["independent8", "independent12", "random12", "ibtree12"]
SAMPLES, PROBLEMS, STEPS = 4, 6, 8
LEVEL = {"base": 1, "grpo": 2, "ibtpo": 3}  # right samples of a problem, the first problem apart
METRICS = ["validation/accuracy", "validation/ib_score", "validation/covariance", "train/eff_rate", "train/entropy"]
METRICS += ["train/response_length", "train/ratio", "train/reward", "train/tokens", "seconds/rollout", "seconds/update"]


def small(**overrides) -> Config:
    """The tiny preset cut down to two methods, two seeds, four samplers and hostile titles."""
    chosen = {
        "seeds": [0, 1],
        "outputs": ["table1", "table3", "ibscore", "figure1", "figure5", "figure7", "ibscores"],
        "evaluate": {"samples": SAMPLES, "pass_at": [1, 4], "benchmarks": ["chain-sum-5", "gcd"]},
        "comparison": {"problems": PROBLEMS, "table3": SAMPLERS, "table6": ["ibtree12"]},
        "tables": {"table1": TWO, "ibscore": TWO},
        "forest": {"policies": ["base", "grpo"], "samplers": list(LIKE)},
        "figures": {"figure1": TWO, "figure5": TWO, "figure7": TWO, "ibscores": TWO},
        "methods": {"grpo": {"title": f"GRPO {SCRIPT}{IMAGE}"}, "ibtpo": {"title": f"IB-TPO {LATEX}"}},
    }
    return load("tiny", chosen | overrides)


def scores(config: Config, method: str, seed: int) -> pd.DataFrame:
    """LEVEL of SAMPLES right, one less in seed 1; of the first problem none."""
    rows = [
        (benchmark, f"{benchmark}/{problem}", sample, float(problem > 0 and sample < LEVEL[method] - (seed == 1)), "ok", 20, method, seed)
        for benchmark in config.evaluate.benchmarks
        for problem in range(PROBLEMS)
        for sample in range(SAMPLES)
    ]
    return pd.DataFrame(rows, columns=["benchmark", "uid", "sample", "reward", "status", "tokens", "method", "seed"])


def trees(config: Config, sampler: str) -> pd.DataFrame:
    """Problem u has u right trajectories; 100 tokens each, 60 in a tree."""
    size, alone = config.samplers[sampler].group_size, sampler.startswith("independent")
    picked = None if alone else 0.5
    rows = [
        (sampler, size, 0, f"p{problem}", number, float(number < problem), 100 if alone else 60, 3, picked, picked, 1.5)
        for problem in range(PROBLEMS)
        for number in range(size)
    ]
    columns = ["strategy", "group_size", "seed", "uid", "trajectory", "reward", "new_tokens", "depth"]
    return pd.DataFrame(rows, columns=[*columns, "root_repicked", "node_repicked", "ib_score"])


def metrics(config: Config, method: str, seed: int) -> pd.DataFrame:
    """Curves that fall for GRPO and rise for the other method."""
    noise, sign = np.random.default_rng(seed), 1 if method == "ibtpo" else -1
    rows = [
        (method, seed, step, metric, 1 + sign * 0.05 * step + 0.01 * noise.random())
        for metric in METRICS
        for step in range(STEPS + 1)
        if step or metric.startswith("validation")
    ]
    return pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"])


def offline(config: Config, method: str, seed: int) -> pd.DataFrame:
    rows = [
        (method, seed, f"v{problem}", node, node, node == 0, 5, 0.1 * (node + 1), 0.01 * node, 0.5, 0.2, False)
        for problem in range(3)
        for node in range(problem + 2)
    ]
    columns = ["method", "seed", "uid", "node", "depth", "at_root", "draws", "ib_score", "covariance", "mean_pi", "density", "dead"]
    return pd.DataFrame(rows, columns=columns)


MAKERS = {"scores": scores, "metrics": metrics, "offline": offline}


def write_artifacts(config: Config, folder: Path) -> None:
    """All artifacts of the configuration, where the rules write them below `folder`."""
    paths = Paths(config)
    for artifact in paths.report_inputs():
        kind, _, name = artifact.partition("-")
        if kind == "forest":
            policy, sampler = paths.forests[artifact]
            frame = forest(*paths.policies[policy], sampler, SPECS[LIKE[sampler]], ("q0", "q1", "q2"))
        else:
            frame = trees(config, name) if kind == "trees" else MAKERS[kind](config, *paths.policies[name])
        write_parquet(frame, folder / paths.computed(artifact))


def make_site(config: Config, folder: Path) -> Path:
    """The site of a configuration, made in `folder` by the functions that the rules call; returns the site's own folder."""
    from ibtpo.site import main

    paths = Paths(config)
    write_artifacts(config, folder)
    with working_in(folder):
        for names, make in ((paths.tables, main_table), (paths.figures, main_figure)):
            for name in names:
                make(name, config, [paths.artifact(artifact) for artifact in paths.shown(name)], paths.stem(name))
        main(config, paths.site)
    return folder / paths.site


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Paths of a configuration are relative to the working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
