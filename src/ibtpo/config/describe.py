"""config/README.md, made from the typed configuration, so that it never tells another story."""

from __future__ import annotations

import json
import math
from inspect import cleandoc
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ibtpo.config.models import Config

INTRODUCTION = """\
# Configuration

A preset is one YAML file in this folder; `tiny.yaml` is the default. `methods.yaml` holds the samplers and methods that all presets
share, `datasets.yaml` the real data sets (under the key `corpora`). A preset may begin with `extends: <preset>` and may override any part
of both. Mappings merge key by key, everything else is replaced.

    snakemake all --config preset=smoke                     another preset
    snakemake all --config 'train={iterations: 80}'         any key, for one call
    snakemake all --configfile mine.yaml                    keys from a file, over the preset
    python -m ibtpo --preset tiny config                    check a preset and print every value

Whatever changes the numbers is part of the name of what it makes (a hash), so a changed key never mixes with or overwrites older results,
and a change back finds them again. The list of `seeds`, titles, `resources` and what only changes speed are in no hash of a run;
`evaluate` and `comparison` never touch training.

A number with an exponent needs a point and a sign: `1.0e-6`. YAML reads `1e-6` as text, which is refused.

This page is made by `python -m ibtpo describe`; [OURS] marks a choice of this project that the paper does not state.
"""

LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "min_length": "at least"}


def readme() -> str:
    """The whole page: an introduction, then a table of keys for each part of the configuration."""
    return INTRODUCTION + "".join(_section(key, model) for key, model in _sections("", Config))


def _sections(key: str, model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    """The parts of the configuration in their order, each with its place."""
    found = [(key, model)]
    for name, field in model.model_fields.items():
        inner, place = _inner(field.annotation), f"{key}.{name}".lstrip(".")
        if inner:
            found += _sections(f"{place}.<name>" if get_origin(field.annotation) is dict else place, inner)
    return found


def _section(key: str, model: type[BaseModel]) -> str:
    rows = [_row(name, field) for name, field in model.model_fields.items() if not (_inner(field.annotation) or name == "preset")]
    title = f"`{key}`" if key else "Top level"
    text = cleandoc(model.__doc__ or "")
    table = "\n".join(["| key | kind | default | meaning |", "|---|---|---|---|", *rows]) if rows else ""
    return "\n\n".join(["", f"## {title}", *filter(None, [text, table])]).removeprefix("\n") + "\n"


def _row(name: str, field: FieldInfo) -> str:
    limits = [f"{sign} {getattr(item, limit)}" for item in field.metadata for limit, sign in LIMITS.items() if hasattr(item, limit)]
    kind = ", ".join([_kind(field.annotation), *limits])
    default = "required" if field.is_required() else f"`{_yaml(field.default)}`"
    return f"| `{name}` | {kind} | {default} | {field.description or ''} |"


def _yaml(value: Any) -> str:
    """As it is written in a preset."""
    return yaml.safe_dump(json.loads(json.dumps(value)), default_flow_style=True, width=math.inf, sort_keys=False).split("\n")[0]


def _kind(annotation: Any) -> str:
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_kind(part) for part in arguments if part is not type(None))
    if get_origin(annotation) is tuple:
        return f"list of {_kind(arguments[0])}"
    if get_origin(annotation) is dict:
        return "mapping"
    if arguments:  # Annotated
        return _kind(arguments[0])
    return {int: "integer", float: "number", str: "text", bool: "true or false"}[annotation]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model that a key holds, by itself or as the values of a mapping."""
    kind = get_args(annotation)[-1] if get_origin(annotation) is dict else annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
