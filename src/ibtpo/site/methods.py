"""The page of methods: sampler x advantage x regulariser, with the formulas and the code of each part."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ibtpo.advantages import ADVANTAGES
from ibtpo.config.methods import Method, Regulariser
from ibtpo.samplers import SAMPLERS
from ibtpo.site.files import outside
from ibtpo.site.inputs import Inputs
from ibtpo.site.reading import read_yaml

PACKAGE, SOURCES = Path(__file__).parents[1], Path("src/ibtpo")  # where it is, and where the repository has it
SYMBOLS = {"clip": "ε", "clip_high": "ε_h", "kl": "β_KL", "entropy": "ω", "ibro": "ω_IB"}  # of the formulas


def methods(inputs: Inputs) -> dict[str, Any]:
    """The methods that the preset shows somewhere, the grid they form, and their parts."""
    config, words = inputs.config, read_yaml("methods.yaml")
    chosen = {**config.tables, **config.figures}
    shown = {method for name in (*inputs.tables, *inputs.figures) for method in chosen.get(name, ())}
    rows = [_row(name, method, inputs) for name, method in config.methods.items() if name in shown]
    used = [*config.comparison.strategies, *(row["sampler"] for row in rows)]
    strategies = list(dict.fromkeys(config.samplers[name].name for name in used))
    estimators = list(dict.fromkeys(row["advantage"] for row in rows))
    grid = [[[row for row in rows if (row["strategy"], row["advantage"]) == (s, a)] for a in estimators] for s in strategies]
    return {
        "rows": rows,
        "grid": list(zip(strategies, grid, strict=True)),
        "estimators": estimators,
        "samplers": [_part(inputs, name, words["samplers"], SAMPLERS[name]) for name in strategies],
        "advantages": [_part(inputs, name, words["advantages"], ADVANTAGES[name]) for name in estimators],
        "regularisers": [{"name": name, **part} for name, part in words["regularisers"].items()],
        "idea": words["idea"],
    }


def _row(name: str, method: Method, inputs: Inputs) -> dict[str, Any]:
    """One method; settings that equal their defaults are left out, but the clip and KL weights, which every method has."""
    sampler = inputs.config.samplers[method.sampler]
    regulariser = {SYMBOLS[key]: getattr(method.regulariser, key) for key in Regulariser.model_fields}
    return {
        "id": name,
        "title": method.title,
        "sampler": method.sampler,
        "strategy": sampler.name,
        "size": sampler.group_size,
        "advantage": method.advantage.name,
        "shape": _settings(sampler, {"name", "group_size"}),
        "estimator": _settings(method.advantage, {"name"}),
        "regulariser": ", ".join(f"{symbol} {value:g}" for symbol, value in regulariser.items() if value),
        "loss": method.loss or inputs.config.train.loss,
        "reward": method.reward,
    }


def _settings(part: Any, names: set[str]) -> str:
    """`key value` of all that is not at its default."""
    return ", ".join(f"{key} {value}" for key, value in part.model_dump(exclude=names, exclude_defaults=True).items())


def _part(inputs: Inputs, name: str, words: dict[str, Any], function: Any) -> dict[str, Any]:
    """Words, formulas and source of a sampler or an advantage. A new one without an entry in methods.yaml shows its docstring."""
    file = Path(inspect.getsourcefile(function))
    module = inspect.getmodule(function)
    known = words.get(name, {"about": (module.__doc__ or "").strip().split("\n")[0], "tex": []})
    source = file.read_text(encoding="utf-8")
    path = SOURCES / file.relative_to(PACKAGE)
    return {
        "name": name,
        **known,
        "path": path.as_posix(),
        "href": outside(inputs, path),
        "lines": source.count("\n"),
        "code": Markup(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))),  # escaped by pygments
    }
