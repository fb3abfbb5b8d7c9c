"""vLLM inside this process: requests join and leave between steps, prefixes are cached, weights are replaced in place."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import logging
import os
import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

from ibtpo.config import models as config
from ibtpo.engines.base import Continuation, EngineError, Queue, Request

# Read when vLLM is imported. One process and one thread: the model shares both with training.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",  # errors arrive as exceptions; in the log they come with a dump of the whole batch
    "OMP_NUM_THREADS": "1",
}
# vLLM compiles small functions even when eager; on a CPU that needs a C++ compiler and a path without spaces
ON_CPU = {"TORCHDYNAMO_DISABLE": "1"}
CPU_BLOCK = 32  # the CPU attention kernel serves multiples of this many tokens


class VllmEngine(Queue):
    """Engine over vLLM's LLMEngine (eager).

    A request's result depends on its own seed; of its batch only through rounding in the matrix products (measured in the tests).
    Prefill is never cut in pieces: vLLM 0.32 on a CPU fails for a seeded request whose prompt is prefilled in two steps.

    model_dir: folder with a Hugging Face model in safetensors. max_model_len: prompt + response, default: the model's positions.
    options: further fields of vLLM's EngineArgs. Raises EngineError if vLLM is missing, does not start with these settings, or
    reports log-probabilities that are not the raw model's.
    """

    def __init__(
        self,
        model_dir: str | Path,
        eos_id: int,
        sampling: config.Sampling,
        engine: config.Engine,
        max_model_len: int | None = None,
        **options,
    ):
        if importlib.util.find_spec("vllm") is None:
            raise EngineError("engine.kind is 'vllm' but vLLM is not installed: install it or set engine.kind: transformers")
        environment = ENVIRONMENT | (ON_CPU if engine.device == "cpu" else {})  # training compiles too on a GPU (train.prefix_kernel: flex)
        os.environ.update({name: os.environ.get(name, value) for name, value in environment.items()})
        logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])
        settings = {
            "model": str(model_dir),
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "dtype": engine.dtype,
            "max_model_len": max_model_len,
            "max_num_seqs": engine.max_sequences,
            "block_size": engine.block_size,
            "kv_cache_memory_bytes": int(engine.kv_cache_gib * 2**30),
            "enable_prefix_caching": True,
            "enable_chunked_prefill": False,
            "enforce_eager": True,
            "disable_log_stats": False,
            "logprobs_mode": "raw_logprobs",
            "use_tqdm_on_load": False,
        }
        self._stats = Stats()
        with _globals_kept():
            self._engine = _start(settings | options, self._stats)
        self._sampling, self._eos_id = sampling, eos_id
        super().__init__(self._engine.model_config.max_model_len)
        self._weights = _weight_names(Path(model_dir))
        self._pool = _watch_blocks(self._engine, self._stats)
        self._size, self._most = self._engine.vllm_config.cache_config.block_size, engine.max_sequences
        self._total = self._pool.num_gpu_blocks - 1  # one block is vLLM's null block
        self._limit = engine.overcommit * self._total
        self._claims: dict[str, int] = {}  # running requests -> the blocks they may come to need
        self._claimed = 0  # their sum
        atexit.register(self.close)  # at the exit of the interpreter vLLM's native parts would complain
        try:
            self._check_raw()
        except BaseException:
            self.close()
            raise

    def step(self) -> list[Continuation]:
        while self._queue and len(self._claims) < self._most and self._claimed + self._blocks(self._queue[0][-1]) <= self._limit:
            request = self._next()
            self._claims[request.id] = self._blocks(request)
            self._claimed += self._claims[request.id]
            self._add(request.id, request.prompt_ids, seed=request.seed, max_tokens=request.max_tokens, logprobs=0)
        continuations = [self._continuation(output) for output in self._step()]
        for continuation in continuations:
            self._claimed -= self._claims.pop(continuation.id)
        return self._done(continuations)

    def load_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        self._check_weights(set(state_dict), self._weights, tied={"lm_head.weight"} - self._weights)
        with _globals_kept():
            self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": list(state_dict.items())})
        self._stats.peak = 0
        if not self._engine.reset_prefix_cache():
            raise EngineError("vLLM kept its prefix cache after the weights changed: close the engine and make a new one")

    def figures(self) -> dict[str, float]:
        stats, blocks = self._stats, {"kv_blocks_total": self._total, "kv_blocks_peak": self._stats.peak}
        cache = {"prefix_queries": stats.queries, "prefix_hits": stats.hits, "preemptions": stats.preemptions}
        return super().figures() | cache | blocks | {"block_size": self._size}

    def close(self) -> None:
        """Frees model and cache; vLLM's process group of one stays, since another engine or the trainer may be using it."""
        if self._engine is not None:
            core = self._engine.engine_core.engine_core
            core.model_executor.shutdown()
            core.scheduler.shutdown()
            self._engine = self._pool = None
            atexit.unregister(self.close)
            gc.unfreeze()  # vLLM freezes the heap at start-up; the model would never be collected
            gc.collect()

    def _accept(self, request: Request) -> None:
        if self._blocks(request) > self._total:
            raise EngineError(
                f"request {request.id!r} may need {self._blocks(request)} KV blocks of {self._size} tokens, more than the {self._total} "
                "that engine.kv_cache_gib gives: raise it, or lower sampling.max_tokens"
            )
        self._enqueue(request)

    def _blocks(self, request: Request) -> int:
        """KV blocks at full length, as if it shared none."""
        return -(-(len(request.prompt_ids) + request.max_tokens) // self._size)

    def _add(self, name: str, prompt_ids, temperature: float | None = None, top_k: int | None = None, **params) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=self._sampling.temperature if temperature is None else temperature,
            top_k=self._sampling.top_k if top_k is None else top_k,
            top_p=self._sampling.top_p,
            ignore_eos=True,  # the model's generation config may name more than one
            stop_token_ids=[self._eos_id],
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            **params,
        )
        self._engine.add_request(name, {"prompt_token_ids": list(prompt_ids)}, params)

    def _step(self) -> list:
        with torch.random.fork_rng(devices=[]):  # vLLM draws from torch's global generator even if every request is seeded
            return self._engine.step()

    def _continuation(self, output) -> Continuation:
        (completion,) = output.outputs
        ids = tuple(completion.token_ids)
        logprobs = tuple(entry[token].logprob for entry, token in zip(completion.logprobs, ids, strict=True))
        return Continuation(output.request_id, ids, logprobs, finished=ids[-1] == self._eos_id)

    def _check_raw(self) -> None:
        """Raw log-probabilities know neither temperature nor top-k: the two best must be finite and equal at any temperature."""
        temperatures = (self._sampling.temperature, 2 * self._sampling.temperature)
        for temperature in temperatures:
            self._add(str(temperature), [self._eos_id], temperature=temperature, top_k=1, max_tokens=1, logprobs=2)
        seen = []
        try:
            while len(seen) < len(temperatures):
                seen += [sorted(entry.logprob for entry in output.outputs[0].logprobs[0].values()) for output in self._step()]
        except RuntimeError as error:  # the first forward pass: here an unsupported shape of the model shows
            raise EngineError(f"vLLM cannot run this model: {error}; change its shape or set engine.kind: transformers") from error
        if not np.all(np.isfinite(seen)) or not np.allclose(*seen, atol=1e-5):
            raise EngineError(f"vLLM reports processed log-probabilities ({seen}), not the raw model's: logprobs_mode must be raw_logprobs")
        self._stats.reset()


class Stats:
    """vLLM's own counters, summed over its steps. Kept per engine: its Prometheus registry is one per process."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self.queries = self.hits = self.preemptions = self.peak = 0

    def record(self, scheduler_stats, iteration_stats, *_, **__) -> None:
        if scheduler_stats is not None:
            self.queries += scheduler_stats.prefix_cache_stats.queries
            self.hits += scheduler_stats.prefix_cache_stats.hits
        if iteration_stats is not None:
            self.preemptions += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None: ...

    def log(self) -> None: ...


def _start(settings: dict, stats: Stats):
    """LLMEngine with these EngineArgs. Raises EngineError with the settings a user can change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of vLLM's own imports
        from vllm.engine.arg_utils import EngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.llm_engine import LLMEngine

        if current_platform.is_cpu() and settings["block_size"] % CPU_BLOCK:
            raise EngineError(f"engine.block_size is {settings['block_size']}: vLLM on a CPU needs a multiple of {CPU_BLOCK}")
        try:
            engine = LLMEngine.from_engine_args(EngineArgs(**settings), stat_loggers=[lambda *_, **__: stats])
        except Exception as error:
            shown = ", ".join(f"{name}={settings[name]}" for name in ("model", "block_size", "kv_cache_memory_bytes", "max_model_len"))
            raise EngineError(f"vLLM did not start with {shown}: {error}") from error
    engine.engine_core._finalizer.detach()  # it would destroy the process group under any other engine as soon as this one is collected
    return engine


def _watch_blocks(engine, stats: Stats):
    """The pool of KV blocks, with `stats.peak` kept at the most blocks in use.

    vLLM publishes the usage only after finished requests gave their blocks back; so this looks right after scheduling (internal
    interface, guarded by a contract test).
    """
    scheduler = engine.engine_core.engine_core.scheduler
    pool, schedule = scheduler.kv_cache_manager.block_pool, scheduler.schedule

    def watched(*args, **kwargs):
        output = schedule(*args, **kwargs)
        stats.peak = max(stats.peak, pool.num_gpu_blocks - 1 - pool.get_num_free_blocks())  # one block is vLLM's null block
        return output

    scheduler.schedule = watched
    return pool


def _weight_names(model_dir: Path) -> set[str]:
    names: set[str] = set()
    for path in model_dir.glob("*.safetensors"):
        with safe_open(path, framework="pt") as weights:
            names |= set(weights.keys())
    return names


@contextmanager
def _globals_kept() -> Iterator[None]:
    """Undoes what vLLM does to the process at start-up.

    It seeds all global generators, disables torch.set_num_threads, and has every later child process preload its OpenMP.
    """
    preload = os.environ.get("LD_PRELOAD")
    states, set_num_threads = (random.getstate(), np.random.get_state(), torch.get_rng_state()), torch.set_num_threads
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        torch.set_num_threads = set_num_threads
        os.environ.pop("LD_PRELOAD", None)
        if preload is not None:
            os.environ["LD_PRELOAD"] = preload
