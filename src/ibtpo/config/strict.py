"""The base of all parts of the configuration."""

import re

from pydantic import BaseModel, ConfigDict

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # what becomes a part of a file's name


class Strict(BaseModel):
    """Unknown keys, NaN and changes after parsing are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
