"""One evaluation of one policy: problems -> EvalScope's runner -> samples and reviews. Resumes after a kill, generating nothing twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ibtpo import IbtpoError
from ibtpo.benchmarks import outputs, server
from ibtpo.benchmarks.rows import read_problems, rows
from ibtpo.config.models import Config
from ibtpo.engines import make_engine
from ibtpo.io import exclusive, sha256, write_json, write_parquet, write_record, write_text

RUN = "run"  # EvalScope's own folder, in the work folder
RETRIES = {"retries": 3, "retry_interval": 5}  # of a request, seconds between them
OF_VLLM = {"return_token_ids": True, "chat_template_kwargs": {"enable_thinking": False}}  # what its server takes beside OpenAI's keys


def evaluate(config: Config, policy_dir: str, name: str, data_dir: str, work: str | Path, out: str | Path, reviews: str | Path) -> None:
    """Samples the benchmarks of `config.evaluate` with the policy `name` in `policy_dir`, and has EvalScope judge the answers.

    Writes `out` (columns of `samples-<policy>`) and `reviews` (benchmark, uid, sample, reward, status, gold, extracted). work: a folder
    for EvalScope's files, from which a run that was killed goes on; it belongs to one policy, one set of problems and one way of
    sampling. Raises IbtpoError if it was made with others or another process is at work in it, ServerError if vLLM's server does not come
    up, SandboxError for programs.
    """
    work = Path(work)
    problems = {
        benchmark: read_problems(Path(data_dir) / "benchmarks" / f"{benchmark}.parquet") for benchmark in config.evaluate.benchmarks
    }
    with exclusive(work):
        _claim(work, config, name, Path(data_dir))
        outputs.repair(work / RUN)
        registered = _answer(config, Path(policy_dir), name, problems, work)
        sampled, reviewed = outputs.frames(work / RUN, name, problems, registered, config.evaluate.samples)
        write_record(out)
        write_parquet(reviewed, reviews)
        write_parquet(sampled, out)


def _answer(config: Config, policy_dir: Path, name: str, problems: dict[str, pd.DataFrame], work: Path) -> dict[str, str]:
    """Has EvalScope ask what is not answered yet, and judge it. Returns EvalScope's name of each benchmark."""
    with _logging_kept(), ExitStack() as stack:
        from evalscope.run import run_task

        from ibtpo.benchmarks import adapters, models

        registered = {}
        for benchmark, frame in problems.items():
            folder = work / "data" / benchmark
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows(benchmark, frame))
            write_text("".join(lines), folder / adapters.file_name(benchmark, frame))
            registered[benchmark] = adapters.register(benchmark, frame, str(folder))
        model = models.Deferred(name, lambda: stack.enter_context(_model(config, policy_dir, name, work / "server.log")))
        run_task(_task(config, model, list(registered.values()), work / RUN))
    return registered


def _task(config: Config, model: Any, benchmarks: list[str], run: Path):
    """EvalScope's settings. The model is an object: a port or a path would be part of what EvalScope holds against its cache."""
    from evalscope.config import TaskConfig

    served, resumed = config.evalscope.engine == "served", (run / "configs" / "task_config.yaml").is_file()
    return TaskConfig(
        model=model,
        model_id=model.model_name,
        eval_type="openai_api" if served else "llm_ckpt",
        datasets=benchmarks,
        repeats=config.evaluate.samples,
        generation_config=config.sampling.model_dump() | {"extra_body": OF_VLLM} | RETRIES,
        eval_batch_size=config.evalscope.concurrency,
        work_dir=str(run),
        no_timestamp=True,
        use_cache=str(run) if resumed else None,
        seed=None,  # would reseed every generator of this process
        judge={"strategy": "rule"},
        collect_perf=False,
    )


@contextmanager
def _model(config: Config, policy_dir: Path, name: str, log: Path) -> Iterator[Any]:
    """The policy as EvalScope asks it, for as long as it is needed."""
    from transformers import AutoTokenizer

    from ibtpo.benchmarks import models

    if config.evalscope.engine == "served":
        command, environment = server.command(policy_dir, name, config)
        with server.serving(command, name, log, 60 * config.evalscope.start_minutes, environment) as url:
            yield models.Served(name, url)
    else:
        make = partial(make_engine, config.engine.kind, policy_dir, config.sampling, config.engine)
        with closing(models.InProcess(name, make, AutoTokenizer.from_pretrained(policy_dir))) as model:
            yield model


def _claim(work: Path, config: Config, name: str, data_dir: Path) -> None:
    """Notes what a work folder belongs to. EvalScope knows a problem by its place in a file, so another file would get old answers."""
    settings = {
        "policy": name,
        "samples": config.evaluate.samples,
        "sampling": config.sampling.model_dump(),
        "engine": config.evalscope.engine,
        "problems": {benchmark: sha256(data_dir / "benchmarks" / f"{benchmark}.parquet") for benchmark in config.evaluate.benchmarks},
    }
    path = work / "settings.json"
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if changed := [key for key in settings if settings[key] != before.get(key)]:
            raise IbtpoError(f"{work} holds a run with other {', '.join(changed)}: delete it, or give another folder")
    write_json(settings, path)


@contextmanager
def _logging_kept() -> Iterator[None]:
    """EvalScope replaces the handlers of the root logger when it is imported, and keeps its log file open after a run."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
        own = logging.getLogger("evalscope")
        for handler in [handler for handler in own.handlers if isinstance(handler, logging.FileHandler)]:
            own.removeHandler(handler)
            handler.close()
