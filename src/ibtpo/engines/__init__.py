"""Engines sample from a policy. `make_engine` imports only the library it needs."""

from __future__ import annotations

from pathlib import Path

from ibtpo.config import models as config
from ibtpo.engines.base import Continuation, Engine, EngineError, Request

__all__ = ["Continuation", "Engine", "EngineError", "Request", "make_engine"]


def make_engine(kind: str, model_dir: str | Path, sampling: config.Sampling, engine: config.Engine, pi: str = "raw", **options) -> Engine:
    """An engine over the model and tokenizer in `model_dir`; EOS is the tokenizer's.

    kind: "vllm" or "transformers". pi: the log-probs to report, "raw" of the model, or "temperature" of logits / sampling.temperature
    (before top-k and top-p), which vLLM cannot unless the two are the same. options go to the engine, e.g. max_model_len for vLLM.
    Raises EngineError for an unknown kind or pi, a folder without a model, a tokenizer without EOS, no GPU where one is
    asked for, or if the engine cannot start.
    """
    if kind not in ("vllm", "transformers"):
        raise EngineError(f"engine.kind is {kind!r}; known: vllm, transformers")
    if pi not in ("raw", "temperature"):
        raise EngineError(f"pi is {pi!r}; known: raw, temperature")
    if kind == "vllm" and pi == "temperature" and sampling.temperature != 1:
        raise EngineError("vLLM returns log-probs of the raw model only, but pi is 'temperature': set engine.kind: transformers")
    if not (Path(model_dir) / "config.json").is_file():
        raise EngineError(f"{model_dir} holds no model (config.json is missing): train the base policy first")
    import torch
    from transformers import AutoTokenizer

    if engine.device == "cuda" and not torch.cuda.is_available():
        raise EngineError("engine.device is cuda but no GPU is visible: run on a node with one, or set engine.device: cpu")
    eos_id = AutoTokenizer.from_pretrained(model_dir).eos_token_id
    if eos_id is None:
        raise EngineError(f"the tokenizer in {model_dir} has no EOS token: a response could never end; set eos_token")
    if kind == "vllm":
        from ibtpo.engines.vllm import VllmEngine

        return VllmEngine(model_dir, eos_id, sampling, engine, **options)
    from ibtpo.engines.transformers import TransformersEngine

    return TransformersEngine(model_dir, eos_id, sampling, engine, pi=pi, **options)
