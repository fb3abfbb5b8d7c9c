"""EvalScope as the runner of the benchmarks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ibtpo.config.strict import Strict


class EvalScope(Strict):
    """How EvalScope gets at the policy, with evaluate.runner: evalscope (docs/evaluation.md)."""

    engine: Literal["served", "in-process"] = Field(
        "served", description="served: vLLM's OpenAI-compatible server, started and stopped by the job; in-process: the engine of `engine`"
    )
    concurrency: int = Field(64, gt=0, description="requests at once")
    start_minutes: float = Field(10.0, gt=0, description="[OURS] a server that does not answer by then is stopped, and the job fails")
    server_options: dict[str, str | int | float | bool] = Field(
        {}, description="further options of `vllm serve`, e.g. {tensor-parallel-size: 8}; true: an option without a value"
    )
