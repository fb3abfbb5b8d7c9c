"""What is measured of the cost of sampling: rows of `measurements`.

Values marked [OURS] are choices of this project; the paper does not state them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field, PositiveInt, model_validator

from ibtpo.config.strict import Strict

Mode = Literal["asynchronous", "lockstep"]


class Case(NamedTuple):
    """One line of a measurement: a sampler, in a mode, on so many trees at once, with at most so many response tokens."""

    sampler: str
    mode: str
    trees: int
    max_tokens: int


class Measurement(Strict):
    """Rollouts side by side in one process: every sampler in every mode, on every number of trees, at every maximal length."""

    model: Literal["policy", "random"] = Field(
        "policy",
        description="policy: the base policy on training problems; random: a random model, whose responses are cut where `shortest` says",
    )
    samplers: tuple[str, ...] = Field(min_length=1, description="the first is the one that the others are held against")
    modes: tuple[Mode, ...] = Field(("asynchronous",), min_length=1, description="of trees; independent sampling has one round, so one")
    trees: tuple[PositiveInt, ...] = Field((), description="numbers of trees that grow at once; none: train.problems_per_iteration")
    max_tokens: tuple[PositiveInt, ...] = Field((), description="maximal response tokens; none: sampling.max_tokens")
    max_sequences: int = Field(0, ge=0, description="[OURS] requests that run at once; 0: engine.max_sequences")
    repeats: int = Field(5, gt=0, description="[OURS] runs of every case, in turns, each with problems and seeds of its own")
    hidden_size: int = Field(512, gt=0, multiple_of=128, description="[OURS] width of the random model, a multiple of 128")
    layers: int = Field(6, gt=0, description="[OURS] blocks of the random model")
    prompt: int = Field(64, gt=1, description="[OURS] prompt tokens of the random model")
    shortest: float = Field(
        0.3,
        gt=0,
        le=1,
        description="[OURS] responses of the random model are cut at a uniform draw from this share of the maximum up to it",
    )
    kv_cache_gib: float = Field(0.0, ge=0, description="[OURS] memory of the KV cache in GiB; 0: engine.kv_cache_gib")
    threads: int = Field(0, ge=0, description="[OURS] threads that compute; 0: resources.heavy.threads, as in training")

    @model_validator(mode="after")
    def once(self) -> Measurement:
        for name in ("samplers", "modes", "trees", "max_tokens"):
            chosen = getattr(self, name)
            if len(set(chosen)) < len(chosen):
                raise ValueError(f"{name}: an entry occurs twice in {list(chosen)}. Each may occur once")
        return self
