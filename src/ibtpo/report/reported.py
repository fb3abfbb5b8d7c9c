"""The papers' own numbers, from reported.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

from ibtpo.config.models import Config
from ibtpo.report.table import Cell, Column, Grid

MODEL = "Qwen3-8B-Base"  # the paper's main one


@cache
def reported(table: str) -> dict:
    """Columns and models of a table of a paper, values by column; empty where nothing is known of it."""
    content = yaml.safe_load(Path(__file__).with_name("reported.yaml").read_text(encoding="utf-8")).get(table, {})
    return {
        model: {row: _by_column(values, content["columns"]) for row, values in rows.items()} if model != "columns" else rows
        for model, rows in content.items()
    }


def model_of(table: str, config: Config) -> str:
    """The model of a paper's table that is the preset's policy, or else MODEL."""
    return next((model for model in reported(table) if model.lower() == config.policy.card), MODEL)


def reported_grid(table: str, label: str, titles: Mapping[str, str], models: Sequence[str] = (MODEL,), decimals: int = 1) -> Grid:
    """Rows of `titles` (by method) as reported for each model, in percent; what is not known stays empty."""
    paper = reported(table)
    columns = tuple(Column(name, "%", 100, decimals) for name in paper["columns"])
    rows = {(model, method): title if len(models) == 1 else f"{model}: {title}" for model in models for method, title in titles.items()}
    cells = {
        (row, column): Cell(reported=value)
        for (model, method), row in rows.items()
        for column, value in paper[model].get(method, {}).items()
    }
    return Grid(label, "method", tuple(rows.values()), columns, cells)


def _by_column(values: dict | list, columns: Sequence[str]) -> dict[str, float]:
    return values if isinstance(values, dict) else dict(zip(columns, values, strict=True))
