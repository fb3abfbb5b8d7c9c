"""config/datasets.yaml, typed: where each data set comes from, what it must look like, and how training data is cleaned.

The file is a layer below every preset, under the key `corpora`; so a preset or the command line may override any of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from ibtpo.config.strict import FILE_NAME, Strict

Kind = Literal["maths", "choice", "ifeval", "code"]


class Source(Strict):
    """One data set of one publisher."""

    role: Literal["training", "benchmark"] = Field(description="what it is for")
    kind: Kind = Field(description="how its answers are verified")
    title: str = Field(description="name in reports")
    hub: str | None = Field(
        pattern=r"^[\w.-]+/[\w.-]+$", description="id of the data set on the Hugging Face hub; null: it is no publication and never fetched"
    )
    revision: str = Field(default="main", description="commit of the hub's repository; main: the newest, recorded when it is fetched")
    files: tuple[str, ...] = Field(min_length=1, description="the files to read, relative to the data set's folder, in this order")
    rows: tuple[PositiveInt, ...] = Field(default=(), description="numbers of rows that are right; empty: not checked")
    sha256: dict[str, str] = Field(default={}, description="checksums by file; checked if the file is there")
    folder: str | None = Field(
        default=None, description="folder under data_root, without `hub` under the working directory; the data set's name if it is left out"
    )
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


class Corpora(Strict):
    """Real data sets and their cleaning, from datasets.yaml (docs/data.md). Nothing of it concerns the tiny world."""

    data_root: str = Field("data/raw", description="folder of the raw files: fetch writes it, everything else reads it; in no hash")
    cleaning: Cleaning = Cleaning()
    against: tuple[str, ...] | None = Field(default=None, description="benchmarks that training data is checked against; null: all")
    sources: dict[str, Source] = Field({}, description="data sets by name")

    @model_validator(mode="after")
    def names(self) -> Corpora:
        for name in self.against or ():
            if name not in self.benchmarks:
                raise ValueError(f"against: {name!r} is no benchmark. Known: {', '.join(self.benchmarks)}")
        for name in self.sources:
            if not FILE_NAME.fullmatch(name):
                raise ValueError(f"sources: {name!r} cannot be a data set's name. Use letters, digits, '.', '_' and '-'")
        return self

    @property
    def benchmarks(self) -> list[str]:
        return [name for name, source in self.sources.items() if source.role == "benchmark"]

    @property
    def trainings(self) -> list[str]:
        return [name for name, source in self.sources.items() if source.role == "training"]

    @property
    def checked(self) -> list[str]:
        """Benchmarks that training data is checked against."""
        return self.benchmarks if self.against is None else list(self.against)

    def folder(self, name: str) -> Path:
        """Where the raw files of a data set lie."""
        source = self.sources[name]
        return Path(self.data_root if source.hub else ".").expanduser() / (source.folder or name)
