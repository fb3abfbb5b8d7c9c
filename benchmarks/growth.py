"""Growth: the cost of a tree against depth, G and number of trees, and what the workflow costs before any job. Prints Markdown tables.

    python benchmarks/growth.py [--presets tiny] [--repeats 5]

Costs of a tree are CPU seconds outside of the engine, which is scripted: scheduler, sampler, tree, scores. The sizes take turns within each
repeat, and the fastest repeat tells most, since other work on the machine can only add. "power": the slope in logarithms, 1 is linear.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

from ibtpo.measure.growth import DEPTH, GROUP, TREES, cost_per_tree, exponent

SIZES = {"depth": (4, 8, 16, 32, 64), "group": (6, 12, 24, 48, 96), "trees": (8, 32, 128, 512)}
FIXED = {"depth": DEPTH, "group": GROUP, "trees": TREES}
WORDS = {"depth": "steps of a response", "group": "G, responses of a tree", "trees": "trees at once"}


def main() -> None:
    args = arguments()
    for what, sizes in SIZES.items():
        cost_per_tree(**{what: sizes[0]})  # warms up
        costs = np.array([[cost_per_tree(**{what: size}, seed=seed) for size in sizes] for seed in range(args.repeats)])
        others = ", ".join(f"{WORDS[name]} {value}" for name, value in FIXED.items() if name != what)
        print(f"\nAgainst {WORDS[what]} ({others}): power {exponent(sizes, costs.min(axis=0)):.2f}\n")
        rows = [
            [size, *(f"{1000 * value:.2f}" for value in (low, middle))]
            for size, low, middle in zip(sizes, costs.min(0), np.median(costs, 0), strict=True)
        ]
        print(table([WORDS[what], "ms / tree, fastest", "ms / tree, median"], rows), flush=True)
    print("\nThe workflow before its first job, seconds\n")
    rows = [
        [preset, *(f"{seconds(arguments, preset, args.repeats):.1f}" for arguments in (["--list"], ["--dry-run", "all"]))]
        for preset in args.presets
    ]
    print(table(["preset", "parsed (snakemake --list)", "dry run of all"], rows))


def seconds(arguments: list[str], preset: str, repeats: int) -> float:
    """Wall-clock of a Snakemake call, median."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        command = [sys.executable, "-m", "snakemake", "--quiet", *arguments, "--config", f"preset={preset}", "artifacts=fresh"]
        subprocess.run(command, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return float(np.median(found))


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["tiny"], help="whose dry run is timed, e.g. the largest")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
