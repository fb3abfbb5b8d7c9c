"""A small configuration and synthetic artifacts that fit it."""

import numpy as np
import pandas as pd
import pytest

from ibtpo.config import load
from ibtpo.config.paths import Paths

PROBLEMS, SAMPLES, STEPS = 6, 4, 4
BENCHMARKS = ["chain-sum-5", "gcd"]
TABLE3 = ["independent8", "independent12", "random12", "ibtree12"]
TABLE6 = ["ibtree12-b2k1b1", "ibtree12", "ibtree12-b4k2b2"]
TWO = ["grpo", "ibtpo"]
METRICS = ["validation/accuracy", "validation/ib_score", "validation/covariance"]
METRICS += ["train/eff_rate", "train/entropy", "train/response_length", "train/ratio", "train/reward"]
SCORES = ["benchmark", "uid", "sample", "reward", "status", "tokens", "method", "seed"]
TREES = ["strategy", "group_size", "seed", "uid", "trajectory", "reward", "new_tokens", "depth"]
TREES += ["root_repicked", "node_repicked", "ib_score"]
OFFLINE = ["method", "seed", "uid", "node", "depth", "at_root", "draws", "ib_score", "covariance", "mean_pi", "density", "dead"]


@pytest.fixture(scope="session")
def config():
    config = load(
        "tiny",
        {
            "seeds": [0, 1],
            "evaluate": {"samples": SAMPLES, "pass_at": [1, 4], "benchmarks": BENCHMARKS, "longer": [256]},
            "measurements": {name: {"repeats": 3} for name in ("table7", "table8", "figure8", "table8-midsize", "figure8-midsize")},
            "comparison": {"problems": PROBLEMS, "table3": TABLE3, "table6": TABLE6},
            "tables": {
                "table1": TWO,
                "table2": ["grpo", "grpo-ibtree", "ibtpo"],
                "table4": ["ibtpo-lambda0", "ibtpo"],
                "table5": ["grpo", "ibtpo", "ibtpo-noise"],
                "table7": TWO,
                "table9": TWO,
                "erpo1": ["grpo", "erpo"],
                "erpo2": ["grpo", "erpo"],
                "studies": ["ibtpo", "ibtpo-r2"],
                "ibscore": TWO,
            },
            "figures": {
                "figure1": ["grpo", "entropy-strong", "ibtpo"],
                "figure2": ["grpo", "clip-higher"],
                "figure3": ["grpo", "clip-higher"],
                "figure5": TWO,
                "figure6": ["ibtpo"],
                "figure7": TWO,
                "ibscores": TWO,
            },
        },
    )
    config._changed = {}  # as if a preset said all this
    return config


def right_samples(method, seeds, right):
    """`right` of 4 samples of a problem, one less in seed 1, none in problem 0; the last wrong one has no readable answer."""
    return pd.DataFrame(
        [
            (benchmark, f"{benchmark}/{problem}", sample, float(correct), status, 20, method, seed)
            for seed in seeds
            for benchmark in BENCHMARKS
            for problem in range(PROBLEMS)
            for sample in range(SAMPLES)
            for correct in [problem > 0 and sample < right - (seed == 1)]
            for status in ["ok" if correct or sample < SAMPLES - 1 else "parse_failed"]
        ],
        columns=SCORES,
    )


@pytest.fixture
def scores(config):
    """Right samples of a problem: base 1 of 4, GRPO 2 of 4, IB-TPO 3 of 4, one less in seed 1; in problem 0 always none."""
    return pd.concat([right_samples("base", [-1], 1), right_samples("grpo", config.seeds, 2), right_samples("ibtpo", config.seeds, 3)])


@pytest.fixture
def all_scores(config, scores):
    """The same with all other methods of the tables, 3 of 4 each."""
    others = {name for chosen in config.tables.values() for name in chosen} - {"grpo", "ibtpo"}
    return pd.concat([scores, *(right_samples(name, config.seeds, 3) for name in sorted(others))], ignore_index=True)


@pytest.fixture
def trees(config):
    """Problem u of n has u right trajectories (so the groups of problem 0 are all wrong); 100 tokens each, 60 in a tree."""
    rows = []
    for strategy in dict.fromkeys(TABLE3 + TABLE6):
        size = config.samplers[strategy].group_size
        search = (None, None, 0.5) if strategy.startswith("independent") else (0.25, 0.5, 1.5)
        for problem in range(PROBLEMS):
            for trajectory in range(size):
                tokens = 100 if strategy.startswith("independent") else 60
                rows.append((strategy, size, 0, f"p{problem}", trajectory, float(trajectory < problem), tokens, 3, *search))
    return pd.DataFrame(rows, columns=TREES)


@pytest.fixture
def metrics(config):
    rng, rows = np.random.default_rng(0), []
    for method in dict.fromkeys(name for chosen in config.figures.values() for name in chosen):
        for seed in config.seeds:
            for step in range(STEPS + 1):
                for metric in METRICS:
                    if step or metric.startswith("validation"):
                        rows.append((method, seed, step, metric, rng.random()))
    return pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"])


@pytest.fixture
def offline(config):
    """Problem u has u + 1 step nodes with J = 1, 2, ..., one more for GRPO, and one more in seed 1; a root has J = 5; one node is dead."""
    rows = []
    for method, seeds, lift in [("base", [0], 0), ("grpo", config.seeds, 1), ("ibtpo", config.seeds, 0)]:
        for seed in seeds:
            for problem in range(3):
                for node in range(problem + 2):
                    j = 5.0 if node == 0 else node + lift + (seed == 1)
                    rows.append((method, seed, f"v{problem}", node, node, node == 0, 5, j, j / 100, 0.5, 0.2, problem == node == 1))
    return pd.DataFrame(rows, columns=OFFLINE)


@pytest.fixture
def costs(config):
    """Of each measurement 3 repeats of 1, 2 and 4 s; IBTree takes twice the time, half of the cache and 3/4 of the tokens.

    Lockstep takes 10% longer than asynchronous; 8 of 10 prompt tokens are found, 1% of the time is bookkeeping.
    """
    rows = []
    for name in config.measurements:
        for case in config.cases(name):
            tree = case.sampler.startswith("ibtree")
            for repeat, second in enumerate((1.0, 2.0, 4.0)):
                seconds = second * (2 if tree else 1) * (1.1 if case.mode == "lockstep" else 1)
                size = case.trees * case.max_tokens
                figures = {"seconds": seconds, "cpu_seconds": seconds / 2, "bookkeeping_seconds": seconds / 100}
                figures |= {"tokens": size * (3 if tree else 4), "requests": 1, "kv_peak_tokens": size * (4 if tree else 8)}
                figures |= {"block_size": 1, "prefix_queries": 10, "prefix_hits": 8, "load": 0.5 + repeat}
                facts = {"parameters": 326_000, "engine": "transformers", "max_sequences": 512, "hardware": "2 x Test CPU, 1 thread(s)"}
                rows.append({"what": name, **case._asdict(), "repeat": repeat, **figures, **facts})
    return pd.DataFrame(rows)


@pytest.fixture
def inputs(config, all_scores, trees, metrics, offline, costs, tmp_path):
    """Function: table or figure -> the files it reads, one per artifact, as the workflow writes them."""
    from ibtpo.io import write_parquet

    frames = {"scores": all_scores, "scores256": all_scores, "trees": trees, "metrics": metrics, "offline": offline, "costs": costs}

    def write(name):
        paths = []
        for artifact in Paths(config).shown(name):
            kind, _, rest = artifact.partition("-")
            frame, policy = frames[kind], Paths(config).policies.get(rest)
            if kind == "trees":
                rows = frame[frame["strategy"] == rest]
            elif kind == "costs":
                rows = frame[frame["what"] == rest]
            else:
                rows = frame[(frame["method"] == policy[0]) & ((frame["seed"] == policy[1]) | (policy[0] == "base"))]
            paths.append(tmp_path / "artifacts" / f"{artifact}.parquet")
            write_parquet(rows.reset_index(drop=True), paths[-1])
        return paths

    return write
