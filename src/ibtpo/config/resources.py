"""What changes no number: what a scheduler reserves for the jobs of a preset, and keys of speed and memory."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from ibtpo.config.strict import Strict

# keys of policy and train that change speed, memory and where metrics are shown only
SPEED = {"checkpoint_every", "micro_batch", "gradient_checkpointing", "processes", "parallel", "trackers"}
SPEED |= {"prefix_sharing", "prefix_kernel"}


class Job(Strict):
    """What a scheduler reserves for one job."""

    memory_mb: int = Field(gt=0, description="memory in MB; each retry gets as much again")
    minutes: int = Field(gt=0, description="run time; each retry gets as much again")
    threads: int = Field(1, gt=0, description="CPU cores")
    gpus: int = Field(0, ge=0, description="GPUs; 0 asks for none")


class Resources(Strict):
    """Classes of jobs: reinforcement learning (without a word of its own, as heavy), what else runs a policy, and what runs none."""

    train: Job = Job(memory_mb=3000, minutes=60)
    heavy: Job = Job(memory_mb=3000, minutes=60)
    light: Job = Job(memory_mb=1000, minutes=10)

    @model_validator(mode="before")
    @classmethod
    def heavy_training(cls, value: Any) -> Any:
        return {"train": value["heavy"]} | value if isinstance(value, dict) and "heavy" in value else value
