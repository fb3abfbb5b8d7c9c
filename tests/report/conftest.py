"""A small configuration and synthetic artifacts that fit it."""

import numpy as np
import pandas as pd
import pytest

from ibtpo.config import load

PROBLEMS, SAMPLES, STEPS = 6, 4, 4
BENCHMARKS = ["chain-sum-5", "gcd"]
STRATEGIES = ["independent8", "independent12", "random12", "ibtree12"]


@pytest.fixture(scope="session")
def config():
    return load(
        "tiny",
        {
            "seeds": [0, 1],
            "evaluate": {"samples": SAMPLES, "pass_at": [1, 4], "bootstrap": 200, "benchmarks": BENCHMARKS},
            "comparison": {"problems": PROBLEMS, "strategies": STRATEGIES},
        },
    )


@pytest.fixture
def scores(config):
    """Right samples of a problem: base 1 of 4, GRPO 2 of 4, IB-TPO 3 of 4, one less in seed 1; in problem 0 always none."""
    rows = []
    for method, seeds, right in [("base", [-1], 1), ("grpo", config.seeds, 2), ("ibtpo", config.seeds, 3)]:
        for seed in seeds:
            for benchmark in BENCHMARKS:
                for problem in range(PROBLEMS):
                    for sample in range(SAMPLES):
                        reward = float(problem > 0 and sample < right - (seed == 1))
                        rows.append((benchmark, f"{benchmark}/{problem}", sample, reward, "ok", 20, method, seed))
    return pd.DataFrame(rows, columns=["benchmark", "uid", "sample", "reward", "status", "tokens", "method", "seed"])


@pytest.fixture
def samplers(config):
    """Problem u of n has u right trajectories (so the groups of problem 0 are all wrong); 100 tokens each, 60 in a tree."""
    rows = []
    for strategy in STRATEGIES:
        size = config.samplers[strategy].group_size
        for problem in range(PROBLEMS):
            for trajectory in range(size):
                tokens = 100 if strategy.startswith("independent") else 60
                rows.append((strategy, size, 0, f"p{problem}", trajectory, float(trajectory < problem), tokens, 3))
    return pd.DataFrame(rows, columns=["strategy", "group_size", "seed", "uid", "trajectory", "reward", "new_tokens", "depth"])


@pytest.fixture
def metrics(config):
    rng, rows = np.random.default_rng(0), []
    for method in config.table1:
        for seed in config.seeds:
            for step in range(STEPS + 1):
                for metric in ["validation/accuracy", "validation/ib_score", "validation/covariance", "train/eff_rate", "train/reward"]:
                    if step or metric.startswith("validation"):
                        rows.append((method, seed, step, metric, rng.random()))
    return pd.DataFrame(rows, columns=["method", "seed", "step", "metric", "value"])
