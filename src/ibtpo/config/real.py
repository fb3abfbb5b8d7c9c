"""Problems of a real preset: data sets and procedural tasks, instead of the tiny world's."""

from __future__ import annotations

from typing import Any

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from ibtpo.config.strict import Strict

BOXED = "Please reason step by step, and put your final answer within \\boxed{}."  # paper, set-up: training and mathematics


class Problems(Strict):
    """Problems for training and evaluation other than the tiny world's: sets of `corpora.sources` and tasks of `world`. Empty: the world's.

    A number is that of the problems to take, evenly spaced over the set; 0 takes all of a data set, or as many of a task as `world` says;
    null leaves out a name of the preset that this one extends.
    """

    train: dict[str, NonNegativeInt] = Field({}, description="training sets and tasks, in this order, with numbers; empty: the tiny world")
    validation: dict[str, NonNegativeInt] = Field(
        {}, description="[OURS] sets and tasks measured during training, with numbers; what they take of a training set is not trained on"
    )
    benchmark: NonNegativeInt = Field(0, description="problems per benchmark of evaluate.benchmarks")
    shots: NonNegativeInt = Field(
        0, description="[OURS] worked examples of a task that open the chat of each of its problems, for models that do not know its form"
    )
    system: str = Field(BOXED, description="system prompt of mathematics and tasks (paper, set-up); other kinds of problems have none")

    @field_validator("train", "validation", mode="before")
    @classmethod
    def left_out(cls, value: Any) -> Any:
        """null leaves a set out that the extended preset has."""
        return {name: count for name, count in value.items() if count is not None} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def whole(self) -> Problems:
        if bool(self.train) != bool(self.validation):
            there, missing = ("train", "validation") if self.train else ("validation", "train")
            raise ValueError(f"{there} names problems but {missing} does not. Name both, or neither for the tiny world")
        return self
