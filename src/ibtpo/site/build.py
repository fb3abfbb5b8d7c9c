"""The pages of the site, and how it is written: equal artifacts give equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import plotly
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from latex2mathml.converter import convert
from markupsafe import Markup

from ibtpo.config.models import Config
from ibtpo.io import write_bytes
from ibtpo.site.cases import cases
from ibtpo.site.figures import figures
from ibtpo.site.files import ASSETS, copied
from ibtpo.site.inputs import Inputs
from ibtpo.site.methods import methods
from ibtpo.site.overview import overview
from ibtpo.site.provenance import provenance
from ibtpo.site.runs import runs
from ibtpo.site.tables import tables
from ibtpo.site.trees import trees

HERE = Path(__file__).parent
PLOTLY = "plotly.min.js"
SHARED = ("tokens.css", "site.css", "theme.js", "site.js")  # of every page


@dataclass(frozen=True)
class Page:
    """`name`: of the template and of the file; `build`: context of the template, its "data" goes to the scripts as JSON."""

    name: str
    title: str
    build: Callable[[Inputs], dict[str, Any]]
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()


PAGES = (
    Page("index", "Overview", overview),
    Page("tables", "Tables", tables, ("tables.js",)),
    Page("figures", "Figures", figures, (PLOTLY, "charts.js", "figures.js")),
    Page("trees", "Trees", trees, ("tree.js", "trees.js"), ("trees.css",)),
    Page("cases", "Cases", cases, ("tree.js", "cases.js"), ("trees.css",)),
    Page("runs", "Runs", runs, (PLOTLY, "charts.js", "tables.js", "runs.js")),
    Page("methods", "Methods", methods),
    Page("provenance", "Provenance", provenance, ("tables.js",)),
)


def build(config: Config, out: Path) -> None:
    """Makes everything, then writes it, the first page last; nothing is written if a page fails."""
    inputs = Inputs(config, out)
    files = {f"{ASSETS}/{name}": _asset(name) for page in PAGES for name in (*SHARED, *page.scripts, *page.styles)}
    for name in (*inputs.tables, *inputs.figures):
        files |= copied(inputs, name)
    files |= {f"{page.name}.html": render(page, inputs).encode() for page in reversed(PAGES)}
    for path, content in files.items():
        write_bytes(content, out / path)


def render(page: Page, inputs: Inputs) -> str:
    context = page.build(inputs)
    named = {"preset": inputs.config.preset, "title": inputs.config.title}
    return environment().get_template(f"{page.name}.html").render(**context, **named, page=page, pages=PAGES)


@lru_cache
def environment() -> Environment:
    """Templates with autoescape; `math` for formulas, JSON with <, > and & escaped by jinja's own filter `tojson`."""
    loader = FileSystemLoader(HERE / "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals |= {"math": math}
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return made


def math(tex: str, display: bool = False) -> Markup:
    """A formula as MathML. Only for formulas of our own: text of artifacts is shown as text."""
    return Markup(convert(tex, display="block" if display else "inline"))


def _asset(name: str) -> bytes:
    return (Path(plotly.__file__).parent / "package_data" / name if name == PLOTLY else HERE / "static" / name).read_bytes()
