"""Loading a preset: YAML files are merged and checked, and a mistake is told in a sentence that names the key and the remedy."""

from __future__ import annotations

import json
from contextlib import suppress
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ibtpo import IbtpoError
from ibtpo.config.models import Config, Engine
from ibtpo.config.resources import SPEED

FOLDER = Path("config")  # relative to the working directory
METHODS = "methods.yaml"  # samplers and methods, shared by all presets
DATASETS = "datasets.yaml"  # sources and cleaning of real data, shared by all presets under the key `corpora`
UNSHOWN = {"artifacts", "outputs", "tables", "figures", "resources", "plan", "corpora.data_root", "policy.folder"}
UNSHOWN |= {f"{part}.{key}" for part in ("policy", "train") for key in SPEED}
UNSHOWN |= {f"engine.{key}" for key in Engine.model_fields if key not in ("kind", "mode", "dtype")}  # all of these change no number


class ConfigError(IbtpoError):
    """A preset that cannot be used."""


def load(preset: str | Path = "tiny", overrides: dict[str, Any] | None = None) -> Config:
    """Reads `config/<preset>.yaml` (or a YAML file given as a path) over `methods.yaml` and `datasets.yaml` beside it, then `overrides`.

    Mappings merge key by key, everything else is replaced. Text among the overrides is read as YAML, as a command line gives text only.
    Raises ConfigError for a missing or unreadable file, an unknown key, a value of the wrong kind or parts that do not fit together.
    """
    path = _find(preset)
    datasets = path.with_name(DATASETS)  # not needed where all problems are of the tiny world
    shared = [read_yaml(path.with_name(METHODS)), {"corpora": read_yaml(datasets)} if datasets.is_file() else {}]
    plain = reduce(_merge, [*shared, _layers(path), {"preset": path.stem}], {})
    content = _merge(plain, _typed(overrides or {}) | {"preset": path.stem})
    try:
        config = _validated(content)
    except ValidationError as error:
        raise ConfigError(f"preset {path.stem!r}: {explain(error)}") from None
    if overrides:
        with suppress(ValidationError):  # a preset that is none without what was given with it
            plain, content = _validated(plain).model_dump(mode="json"), config.model_dump(mode="json")
        config._changed = _changed(plain, content)
    return config


def _validated(content: dict[str, Any]) -> Config:
    # JSON, for there "strict" takes a list for a tuple but never a text for a number
    return Config.model_validate_json(json.dumps(content, default=str), strict=True)


def _changed(plain: Any, content: Any, key: str = "") -> dict[str, Any]:
    """The keys whose values are not the preset's, but for those that change no number."""
    if key in UNSHOWN or plain == content:
        return {}
    if not isinstance(content, dict):
        return {key: content}
    below = plain if isinstance(plain, dict) else {}
    parts = [_changed(below.get(name), value, f"{key}.{name}" if key else name) for name, value in content.items()]
    return {name: value for part in parts for name, value in part.items()}


def _find(preset: str | Path) -> Path:
    path = Path(preset)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{preset}.yaml"
    if not path.is_file():
        names = sorted(file.stem for file in path.parent.glob("*.yaml") if file.name not in (METHODS, DATASETS))
        known = ", ".join(names) or f"none in {path.parent}; run this in the folder of the project"
        raise ConfigError(f"there is no preset {path.stem!r} ({path} does not exist). Known presets: {known}.")
    return path


def _layers(path: Path, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """A preset, laid over the one that it extends; `above` are those that extend it."""
    content = read_yaml(path)
    base = content.pop("extends", None)
    if base is None:
        return content
    if not isinstance(base, str) or Path(base).name != base:
        raise ConfigError(f"{path}: 'extends' is {base!r}. It should be the name of a preset in the same folder.")
    chain = (*above, path.stem)
    if base in chain:
        raise ConfigError(f"{path}: a preset cannot extend itself ({' -> '.join([*chain, base])}). Name another one or drop 'extends'.")
    return _merge(_layers(_find(path.with_name(f"{base}.yaml")), chain), content)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ConfigError, naming the file, for one that is missing, not valid or holds no mapping."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold keys with values ('key: value'), not {type(content).__name__}.")
    return content


def _merge(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: _merge(below.get(key), value) for key, value in above.items()}
    return above


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_typed(item) for item in value]
    try:
        return yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        return value


def explain(error: ValidationError) -> str:
    """The first mistake in plain words, unknown keys before all others, and how many more there are."""
    errors = sorted(error.errors(include_url=False), key=lambda row: row["type"] != "extra_forbidden")
    more = f" ({len(errors) - 1} more mistake{'s' * (len(errors) > 2)} after this one.)" if len(errors) > 1 else ""
    return _sentence(errors[0]) + more


def _sentence(row: dict[str, Any]) -> str:
    loc, value = row["loc"], row["input"]
    key = ".".join(map(str, loc))
    match row["type"]:
        case "extra_forbidden":
            known = _keys(loc[:-1])
            near = get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
            remedy = f"Did you mean {'.'.join(map(str, (*loc[:-1], near[0])))!r}?" if near else f"Known keys there: {', '.join(known)}."
            return f"unknown key {key!r}. {remedy}"
        case "missing":
            return f"key {key!r} is missing. Add it."
        case "int_type" | "float_type" if isinstance(value, str) and (number := spelled(value, row["type"] == "int_type")):
            return f"{key!r} is the text {value!r}, not a number. Write {number}, without quotes."
        case "value_error":
            return f"{f'{key}: ' if key else ''}{row['ctx']['error']}."
        case "literal_error":
            return f"{key!r} is {value!r}. It should be one of {row['ctx']['expected']}."
        case "too_short":
            return f"{key!r} has {row['ctx']['actual_length']} entries. It should have at least {row['ctx']['min_length']}."
        case "model_type" | "dict_type":
            return f"{key!r} is {json.dumps(value)}. It should hold keys with values."
        case "tuple_type":
            return f"{key!r} is {json.dumps(value)}. It should be a list, as in [{value}]."
        case _:
            return f"{key!r} is {json.dumps(value)}. It should be {row['msg'].removeprefix('Input should be ')}."


def spelled(text: str, whole: bool = False) -> str | None:
    """The number in `text` as YAML 1.1 reads it: 1e-6 is a text there, 1.0e-6 a number. None if there is no (whole) number."""
    try:
        number = float(text)
    except ValueError:
        return None
    if whole:
        return str(int(number)) if number.is_integer() else None
    mantissa, _, exponent = text.strip().lower().partition("e")
    if exponent:
        mantissa += "" if "." in mantissa else ".0"
        exponent = exponent if exponent[0] in "+-" else f"+{exponent}"
        return f"{mantissa}e{exponent}"
    return mantissa


def _keys(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that are known at a place of the configuration."""
    kind: Any = Config
    for part in loc:
        is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
        kind = kind.model_fields[part].annotation if is_model else get_args(kind)[-1]
    return list(kind.model_fields)
