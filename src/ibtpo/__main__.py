"""Command line: one command per step of the pipeline. The rules of the workflow call it, and every step runs by hand too.

Each command hands its arguments to the `main` function of a room. Rooms are imported when they are used, so a mistake in the
configuration is told at once and a table never waits for torch.
"""

from __future__ import annotations

import argparse
import gc
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
        own = {GIVEN: (preset, overrides)} if GIVEN in signature(COMMANDS[command]).parameters else {}
        if arguments.get("policy"):
            from ibtpo.policy.named import check_links

            check_links(arguments["policy"])  # what a library says of a lost file names neither the model nor the remedy
        return COMMANDS[command](load(preset, overrides), **own, **arguments) or 0
    except (IbtpoError, OSError) as error:
        print(f"ibtpo {command}: {error}", file=sys.stderr)
        return 1


def config(config: Config) -> None:
    """check the preset and print all its values"""
    Paths(config)  # finds what is named but not there, such as a model card
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


def watch(config: Config, folder: str, once: bool = False, every: float = 2.0) -> None:
    """show a training, or all trainings of a folder, in the terminal while they run"""
    from ibtpo.watch import main

    main(folder, once, every)


def sample(config: Config, policy: str, name: str, data: str, out: str, max_tokens: int = 0) -> None:
    """sample the benchmarks with a policy; with at most as many response tokens as in training, or another number"""
    from ibtpo.evaluation.sample import main

    main(config, policy, name, data, out, max_tokens)


def verdicts(config: Config, samples: str, data: str, method: str, seed: int, out: str) -> None:
    """score the samples of a policy"""
    from ibtpo.evaluation.verdicts import main

    main(config, samples, data, method, seed, out)


def evalscope(config: Config, policy: str, name: str, data: str, work: str, out: str, reviews: str) -> None:
    """sample the benchmarks with a policy through EvalScope, which judges the answers too (docs/evaluation.md)"""
    from ibtpo.benchmarks import evaluate

    evaluate(config, policy, name, data, work, out, reviews)


def judge(config: Config, samples: str, reviews: str, data: str, method: str, seed: int, out: str, report: str) -> None:
    """turn EvalScope's verdicts into scores, and report where our verifiers disagree"""
    from ibtpo.benchmarks.judge import main

    main(config, samples, reviews, data, method, seed, out, report)


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


def forest(config: Config, policy: str, name: str, sampler: str, data: str, out: str) -> None:
    """grow whole trees with one policy and one sampler, to be looked at"""
    from ibtpo.evaluation.forest import main

    main(config, policy, name, sampler, data, out)


def measure(config: Config, name: str, out: str, policy: str = "", data: str = "") -> None:
    """measure what sampling costs: one row of `measurements`, on a policy or on a random model"""
    from ibtpo.measure.rollouts import main

    main(config, name, out, policy, data)


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


def report(config: Config, out: str) -> None:
    """write the report, a static site, from artifacts, tables and figures"""
    from ibtpo.site import main

    main(config, out)


def publish(config: Config) -> None:
    """make the published folder hold exactly the current artifacts of all tables and figures"""
    from ibtpo.config.publish import publish

    for path in publish(Paths(config)):
        print(path)


def plan(config: Config, given: tuple[str, dict], target: str = "all") -> None:
    """show the jobs of each rule that a target of the workflow needs, and an estimate of what they cost"""
    from ibtpo.operations.plan import main

    parser = _parser()
    main(config, *given, target, lambda arguments: vars(parser.parse_args(arguments)))


def doctor(config: Config) -> int:
    """examine this machine: versions against the lock, GPUs, memory, disk, Slurm; exit code 1 if it cannot run the preset"""
    from ibtpo.operations.doctor import main

    return main(config)


def trace(config: Config, table: str, row: str, column: str, grid: str = "", json: bool = False) -> None:
    """show where a cell of a table (its .csv, a row and a column) comes from: artifacts, runs, data, with their records"""
    from ibtpo.operations.trace import main

    main(table, row, column, grid, json)


def score(config: Config, file: str, out: str) -> None:
    """score the rows {gold, pred, kind} of a JSONL file"""
    from ibtpo.verifiers.cli import main

    main(file, out)


def fetch(config: Config, name: str) -> None:
    """fetch a real data set from its publisher (docs/data.md); with fetch-model the only command with a network"""
    from ibtpo.corpora.fetch import fetch

    print(fetch(config.corpora, name))


def fetch_model(config: Config, card: str, out: str) -> None:
    """fetch the model of a card into a folder (docs/models.md)"""
    from ibtpo.policy.fetch import fetch_model

    print(fetch_model(card, out))


def benchmark(config: Config, name: str, out: str) -> None:
    """check a real benchmark and write it in the schema of problem sets"""
    from ibtpo.corpora.build import build_benchmark

    build_benchmark(config.corpora, name, out)


def corpus(config: Config, name: str, benchmarks: list[str], out: str) -> None:
    """clean real training data, free it of copies of the benchmarks, and write it with its report"""
    from ibtpo.corpora.build import build_corpus

    build_corpus(config.corpora, name, benchmarks, out)


def problems(config: Config, split: str, corpora: list[str], out: str) -> None:
    """put the problems of a real preset together, from built data sets and procedural tasks; split: training or benchmarks"""
    from ibtpo.corpora.assemble import build_benchmarks, build_training

    {"training": build_training, "benchmarks": build_benchmarks}[split](config, corpora, out)


def model(config: Config, out: str) -> None:
    """make the model that policy.card names the base policy: compared with its card, its files linked"""
    from ibtpo.policy.named import main

    main(config, out)


def preflight(config: Config, card: str, model: str) -> None:
    """compare a model folder with its card in config/models"""
    from ibtpo.policy.preflight import main

    print(json.dumps(main(card, model), indent=2, ensure_ascii=False))


PIPELINE = (config, describe, data, policy, train, sample, verdicts, metrics, compare, offline, forest, measure)
SHOWING = (table, figure, report, readme, publish)
OPERATIONS = (plan, doctor, watch, trace)
REAL_DATA = (score, fetch, fetch_model, benchmark, corpus, problems, model, preflight, evalscope, judge)
COMMANDS = {function.__name__.replace("_", "-"): function for function in (*PIPELINE, *SHOWING, *OPERATIONS, *REAL_DATA)}
GIVEN = "given"  # parameter of a command that wants the preset and the values over it as they were given
BY_PLACE = {"score": ("file",), "watch": ("folder",), "trace": ("table", "row", "column")}  # arguments without a name


def _values(text: str) -> dict:
    """The argument of --set."""
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is no JSON object of keys and values, such as \'{{"train": {{"iterations": 2}}}}\'')
    return values


def _parser() -> argparse.ArgumentParser:
    """The arguments of a command are those of its function: options, required unless they have a default; a list takes several values,
    a truth value none. Those in BY_PLACE have no name.
    """
    parser = argparse.ArgumentParser(prog="python -m ibtpo", description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", help="name of a file in config/, or a path to a YAML file (default: tiny)")
    parser.add_argument("--set", type=_values, default={}, metavar="JSON", help="values that replace those of the preset")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        for option in list(signature(function, eval_str=True).parameters.values())[1:]:
            if option.name == GIVEN:
                continue
            if option.name in BY_PLACE.get(name, ()):
                command.add_argument(option.name)
            elif option.annotation is bool:
                command.add_argument(f"--{option.name}", action="store_true")
            else:
                required = option.default is Parameter.empty
                several = {"nargs": "*", "type": str} if option.annotation == list[str] else {"type": option.annotation}
                command.add_argument(f"--{option.name}", required=required, default=option.default, **several)
    return parser


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 50)  # looking for garbage among all that torch and transformers import takes a second of each job
    sys.exit(main())
