"""Command line: one command per step of the pipeline. The rules of the workflow call it, and every step runs by hand too.

Each command hands its arguments to the `main` function of a room. Rooms are imported when they are used, so a mistake in the
configuration is told at once and a table never waits for torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from inspect import Parameter, signature

from ibtpo import IbtpoError
from ibtpo.config import Config, Paths, load


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit code. Mistakes of the input end in one line on stderr and code 1, faults in a traceback."""
    arguments = vars(_parser().parse_args(argv))
    command, preset, overrides = arguments.pop("command"), arguments.pop("preset"), arguments.pop("set")
    try:
        COMMANDS[command](load(preset, overrides), **arguments)
    except (IbtpoError, OSError) as error:
        print(f"ibtpo {command}: {error}", file=sys.stderr)
        return 1
    return 0


def config(config: Config) -> None:
    """check the preset and print all its values"""
    print(config.model_dump_json(indent=2))


def describe(config: Config) -> None:
    """print config/README.md, which explains every key"""
    from ibtpo.config.describe import readme

    print(readme(), end="")


def data(config: Config, out: str) -> None:
    """build the problems and benchmarks"""
    from ibtpo.world.build import main

    main(config, out)


def policy(config: Config, data: str, out: str) -> None:
    """train the base policy on worked solutions"""
    from ibtpo.policy.train import main

    main(config, data, out)


def train(config: Config, method: str, seed: int, policy: str, data: str, out: str) -> None:
    """reinforcement learning: one method, one seed; resumes where it was stopped"""
    from ibtpo.training import main

    main(config, method, seed, policy, data, out)


def sample(config: Config, policy: str, name: str, data: str, out: str) -> None:
    """sample the benchmarks with a policy"""
    from ibtpo.evaluation.sample import main

    main(config, policy, name, data, out)


def verdicts(config: Config, samples: str, data: str, method: str, seed: int, out: str) -> None:
    """score the samples of a policy"""
    from ibtpo.evaluation.verdicts import main

    main(config, samples, data, method, seed, out)


def metrics(config: Config, run: str, method: str, seed: int, out: str) -> None:
    """turn the log of a run into a tidy artifact"""
    from ibtpo.training.metrics import tidy

    tidy(run, method, seed, out)


def compare(config: Config, strategy: str, policy: str, data: str, out: str) -> None:
    """grow the trees of one sampler on one policy"""
    from ibtpo.evaluation.compare import main

    main(config, strategy, policy, data, out)


def offline(config: Config, policy: str, name: str, data: str, out: str, problems: str = "") -> None:
    """measure the IB-Score of a policy at its step nodes, on problems of the data or of a Parquet file"""
    from ibtpo.evaluation.offline import main

    main(config, policy, name, data, out, problems)


def table(config: Config, name: str, inputs: list[str], out: str) -> None:
    """make a table (md, csv, tex) from artifacts"""
    from ibtpo.report import main_table

    main_table(name, config, inputs, out)


def figure(config: Config, name: str, inputs: list[str], out: str) -> None:
    """draw a figure (svg, pdf, png) from artifacts"""
    from ibtpo.report import main_figure

    main_figure(name, config, inputs, out)


def readme(config: Config) -> None:
    """renew the generated block of README.md from the tables"""
    from ibtpo.report import readme

    readme(config)


def publish(config: Config) -> None:
    """make the published folder hold exactly the current artifacts of all tables and figures"""
    from ibtpo.config.publish import publish

    for path in publish(Paths(config)):
        print(path)


def score(config: Config, file: str, out: str) -> None:
    """score the rows {gold, pred, kind} of a JSONL file"""
    from ibtpo.verifiers.cli import main

    main(file, out)


def fetch(config: Config, name: str, settings: str = "config/datasets.yaml") -> None:
    """fetch a real data set from its publisher (docs/data.md); the only command with a network"""
    from ibtpo.corpora.fetch import fetch

    print(fetch(settings, name))


def benchmark(config: Config, name: str, out: str, settings: str = "config/datasets.yaml") -> None:
    """check a real benchmark and write it in the schema of problem sets"""
    from ibtpo.corpora.build import build_benchmark

    build_benchmark(settings, name, out)


def corpus(config: Config, name: str, benchmarks: list[str], out: str, settings: str = "config/datasets.yaml") -> None:
    """clean real training data, free it of copies of the benchmarks, and write it with its report"""
    from ibtpo.corpora.build import build_corpus

    build_corpus(settings, name, benchmarks, out)


def preflight(config: Config, card: str, model: str) -> None:
    """compare a model folder with its card in config/models"""
    from ibtpo.policy.preflight import main

    print(json.dumps(main(card, model), indent=2, ensure_ascii=False))


PIPELINE = (config, describe, data, policy, train, sample, verdicts, metrics, compare, offline, table, figure, readme, publish)
REAL_DATA = (score, fetch, benchmark, corpus, preflight)
COMMANDS = {function.__name__: function for function in (*PIPELINE, *REAL_DATA)}


def _parser() -> argparse.ArgumentParser:
    """The arguments of a command are those of its function: options, required unless they have a default; a list takes several values.

    `file` alone is given by its place.
    """
    parser = argparse.ArgumentParser(prog="python -m ibtpo", description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", help="name of a file in config/, or a path to a YAML file (default: tiny)")
    parser.add_argument("--set", type=json.loads, default={}, metavar="JSON", help="values that replace those of the preset")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        for option in list(signature(function, eval_str=True).parameters.values())[1:]:
            several = {"nargs": "+", "type": str} if option.annotation == list[str] else {"type": option.annotation}
            if option.name == "file":
                command.add_argument("file")
                continue
            required = option.default is Parameter.empty
            command.add_argument(f"--{option.name}", required=required, default=option.default, **several)
    return parser


if __name__ == "__main__":
    sys.exit(main())
