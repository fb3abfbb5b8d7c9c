"""The base of all parts of the configuration."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Unknown keys, NaN and changes after parsing are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
