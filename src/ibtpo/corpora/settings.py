"""config/datasets.yaml, typed: where each data set comes from, what it must look like, and how training data is cleaned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt, ValidationError, field_validator, model_validator

from ibtpo.config.load import ConfigError, read_yaml
from ibtpo.config.strict import Strict

Kind = Literal["maths", "choice", "ifeval", "code"]


class Source(Strict):
    """One data set of one publisher."""

    role: Literal["training", "benchmark"]
    kind: Kind = Field(description="how its answers are verified")
    title: str
    hub: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="id of the data set on the Hugging Face hub")
    revision: str = Field(default="main", description="commit of the hub's repository; main: the newest, recorded when it is fetched")
    files: tuple[str, ...] = Field(min_length=1, description="the files to read, relative to the data set's folder, in this order")
    rows: tuple[PositiveInt, ...] = Field(default=(), description="numbers of rows that are right; empty: not checked")
    sha256: dict[str, str] = Field(default={}, description="checksums by file; checked if the file is there")
    folder: str | None = Field(default=None, description="folder under data_root; the data set's name if it is left out")
    levels: tuple[PositiveInt, ...] = Field(default=(), description="difficulty levels to keep; empty: all")
    where: dict[str, str | int] = Field(default={}, description="columns and the value that rows to keep have there")
    licence: str = Field(description="licence or terms of the publisher")

    @field_validator("sha256")
    @classmethod
    def digests(cls, value: dict[str, str]) -> dict[str, str]:
        for file, digest in value.items():
            if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
                raise ValueError(f"the checksum of {file} is {digest!r}; write the 64 lower-case hex digits that sha256sum prints")
        return value


class Cleaning(Strict):
    """Cleaning of training data. Benchmarks are never changed."""

    languages: tuple[Literal["en", "zh", "other"], ...] = Field(default=("en",), min_length=1, description="[OURS] languages to keep")
    images: bool = Field(default=False, description="[OURS] keep problems that link to a picture, which no text model can see")
    ngram: PositiveInt = Field(default=8, description="words and numbers in a row that count as overlap")
    boilerplate: PositiveInt = Field(
        default=10, description="[OURS] an n-gram in problems of this many different answers is a turn of phrase, and no overlap"
    )
    overlap: float = Field(default=0.25, gt=0, le=1, description="[OURS] share of the shorter problem's n-grams that makes it a copy")
    reworded: float = Field(default=0.5, gt=0, le=1, description="[OURS] the same within training data, for problems with equal answers")
    gold: Literal["drop", "stop"] = Field(default="drop", description="a gold answer that does not verify against itself")
    solutions: bool = Field(default=False, description="run the publisher's solution of each code problem against its tests (seconds each)")
    examples: PositiveInt = Field(default=5, description="examples per step in the report")


class Settings(Strict):
    """The whole file."""

    data_root: str = Field(description="folder of the raw files: fetch writes it, everything else reads it")
    cleaning: Cleaning = Cleaning()
    against: tuple[str, ...] | None = Field(default=None, description="benchmarks that training data is checked against; null: all")
    sources: dict[str, Source] = Field(min_length=1)

    @model_validator(mode="after")
    def names(self) -> Settings:
        for name in self.against or ():
            if name not in self.benchmarks:
                raise ValueError(f"against: {name!r} is no benchmark. Known: {', '.join(self.benchmarks)}")
        return self

    @property
    def benchmarks(self) -> list[str]:
        return [name for name, source in self.sources.items() if source.role == "benchmark"]

    @property
    def trainings(self) -> list[str]:
        return [name for name, source in self.sources.items() if source.role == "training"]

    def source(self, name: str, role: str) -> Source:
        """The data set of a name. Raises ConfigError if there is none, or it has another role."""
        known = [key for key, source in self.sources.items() if source.role == role]
        if name not in known:
            raise ConfigError(f"there is no {role} data set {name!r}. Known: {', '.join(known) or 'none'}.")
        return self.sources[name]

    def folder(self, name: str) -> Path:
        """Where the raw files of a data set lie."""
        return Path(self.data_root).expanduser() / (self.sources[name].folder or name)


def load_settings(path: str | Path, data_root: str | None = None) -> Settings:
    """Reads config/datasets.yaml; `data_root` replaces that of the file. Raises ConfigError that names the key and the remedy."""
    path = Path(path)
    content = read_yaml(path) | ({"data_root": data_root} if data_root else {})
    try:
        return Settings.model_validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}.") from None
