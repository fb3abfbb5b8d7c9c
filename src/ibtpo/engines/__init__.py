"""Engines sample from a policy. `make_engine` imports only the library it needs."""

from __future__ import annotations

from pathlib import Path

from ibtpo.config import models as config
from ibtpo.engines.base import Continuation, Engine, EngineError, Request

__all__ = ["Continuation", "Engine", "EngineError", "Request", "make_engine"]


def make_engine(kind: str, model_dir: str | Path, sampling: config.Sampling, engine: config.Engine, **options) -> Engine:
    """An engine over the model and tokenizer in `model_dir`; EOS is the tokenizer's.

    kind: "vllm" or "transformers". options go to the engine, e.g. max_model_len for vLLM.
    Raises EngineError for an unknown kind, a folder without a model, a tokenizer without EOS, or if the engine cannot start.
    """
    if kind not in ("vllm", "transformers"):
        raise EngineError(f"engine.kind is {kind!r}; known: vllm, transformers")
    if not (Path(model_dir) / "config.json").is_file():
        raise EngineError(f"{model_dir} holds no model (config.json is missing): train the base policy first")
    from transformers import AutoTokenizer

    eos_id = AutoTokenizer.from_pretrained(model_dir).eos_token_id
    if eos_id is None:
        raise EngineError(f"the tokenizer in {model_dir} has no EOS token: a response could never end; set eos_token")
    if kind == "vllm":
        from ibtpo.engines.vllm import VllmEngine as Kind
    else:
        from ibtpo.engines.transformers import TransformersEngine as Kind
    return Kind(model_dir, eos_id, sampling, engine, **options)
