"""The offline IB-Score of one policy as an artifact, one row per step node (IB-TPO, D.2 rows 29 and 30; protocol in ib_score.py)."""

from __future__ import annotations

import re
from pathlib import Path

from transformers import AutoTokenizer

from ibtpo.config.models import Config
from ibtpo.engines import make_engine
from ibtpo.evaluation.collect import collect
from ibtpo.evaluation.ib_score import measure
from ibtpo.evaluation.sample import spread
from ibtpo.progress import progress
from ibtpo.rollout.problems import Problem, Prompter, load_problems
from ibtpo.rollout.scheduler import stable_seed


def main(config: Config, model_dir: str, name: str, data_dir: str, out: str, problem_file: str = "") -> None:
    """Writes `offline-<name>`: method, seed, uid, node, depth, at_root, draws, ib_score, covariance, mean_pi, density, dead.

    Of `offline.problems` problems, evenly spaced over the set `offline.source` of the data, or over `problem_file` (Parquet, columns as
    in a problem set), if one is given. Resumes after a kill.
    """
    plan, mode = config.offline, config.engine.mode
    problems = spread(load_problems(problem_file or Path(data_dir) / f"{plan.source}.parquet"), plan.problems)
    engine = make_engine(config.engine.kind, model_dir, config.sampling, config.engine)
    prompter = Prompter(AutoTokenizer.from_pretrained(model_dir), config.sampling.max_tokens)
    method, seed = policy_of(name, config.seeds[0])
    draw = stable_seed("offline", name)

    def run(part: list[Problem]) -> list[list[dict]]:
        found = measure(part, prompter, engine, mode, draw, plan.beta, plan.seeds, plan.draws, bar=bar)
        return [[{"method": method, "seed": seed, **row} for row in rows] for rows in found]

    with progress(f"offline IB-Score {name}", len(problems) * plan.seeds, "sample") as bar:
        collect(out, problems, lambda problem: problem.uid, run, plan.seeds * plan.draws)
    engine.close()


def policy_of(name: str, seed: int) -> tuple[str, int]:
    """Method and seed of a policy `<method>-seed<k>`; any other name, as `base`, is a method with `seed`."""
    match = re.fullmatch(r"(.+)-seed(\d+)", name)
    return (match[1], int(match[2])) if match else (name, seed)
