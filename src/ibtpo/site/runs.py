"""The page of training runs: any metric of any run against any other, by training step, tokens or seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ibtpo.report.curves import COLOURS, looks
from ibtpo.site.inputs import Inputs
from ibtpo.site.reading import read_yaml

PHASES = ("rollout", "prepare", "update", "validation")
DIGITS = 5
SUMMARY = (("method", ""), ("seed", ""), ("steps", ""), ("validation accuracy", "%"), ("reward", ""), ("Eff-Rate", "%"))
SUMMARY += (("tokens", "thousand"), *((phase, "s") for phase in PHASES), ("all", "s"))


def runs(inputs: Inputs) -> dict[str, Any]:
    rows, config = inputs.metrics, inputs.config
    known = read_yaml("metrics.yaml")
    methods = [name for name in config.methods if name in set(rows["method"])]
    wide = {key: _wide(part) for key, part in rows.groupby(["method", "seed"])}
    listed = [(method, int(seed)) for method in methods for seed in sorted({s for m, s in wide if m == method})]
    titles = {method: config.methods[method].title for method in methods}
    order_of = {method: COLOURS.index(look.colour) for method, look in looks(titles, config).items()}  # colours as in the figures
    order = [*known, *sorted(set(rows["metric"]) - set(known))]
    metrics = [{"id": name, **known.get(name, {"title": name})} for name in order if name in set(rows["metric"])]
    curves = {
        f"{method}-seed{seed}": {name: _points(wide[method, seed][name]) for name in order if name in wide[method, seed]}
        for method, seed in listed
    }
    return {
        "columns": SUMMARY,
        "summary": [_summary(inputs, method, seed, wide[method, seed]) for method, seed in listed],
        "data": {
            "methods": [
                {"id": m, "title": title, "series": order_of[m], "seeds": [seed for name, seed in listed if name == m]}
                for m, title in titles.items()
            ],
            "metrics": metrics,
            "curves": curves,
            "axes": {f"{m}-seed{s}": _axes(wide[m, s]) for m, s in listed},
        },
    }


def _wide(rows: pd.DataFrame) -> pd.DataFrame:
    """One run: a column a metric, a row a training step."""
    return rows.pivot(index="step", columns="metric", values="value").sort_index()


def _points(values: pd.Series) -> list[list[float]]:
    """Steps and values where there is one."""
    values = values.dropna()
    return [[int(step) for step in values.index], [float(f"{value:.{DIGITS}g}") for value in values]]


def _axes(run: pd.DataFrame) -> dict[str, list[float]]:
    """What a run has spent by each step: tokens that it generated, seconds without validation."""
    spent = {"tokens": ["train/tokens"], "seconds": [f"seconds/{phase}" for phase in PHASES[:3]]}
    total = {name: run.reindex(columns=columns).fillna(0).sum(axis=1).cumsum() for name, columns in spent.items()}
    return {"step": [int(step) for step in run.index]} | {name: [round(float(x), 2) for x in values] for name, values in total.items()}


def _summary(inputs: Inputs, method: str, seed: int, run: pd.DataFrame) -> dict[str, Any]:
    """A run in one line: where it ended and what it cost. A cell without a value is empty."""

    def last(metric: str) -> float:
        values = run[metric].dropna() if metric in run else []
        return float(values.iloc[-1]) if len(values) else np.nan

    def total(metric: str) -> float:
        return float(run[metric].sum()) if metric in run else np.nan

    seconds = [total(f"seconds/{phase}") for phase in PHASES]
    ended = [(last("validation/accuracy"), 100, 1), (last("train/reward"), 1, 3), (last("train/eff_rate"), 100, 1)]
    cost = [(total("train/tokens"), 1e-3, 0), *((value, 1, 0) for value in [*seconds, np.nansum(seconds)])]
    cells = [{} if np.isnan(x) else {"sort": float(x), "text": f"{x * factor:,.{decimals}f}"} for x, factor, decimals in [*ended, *cost]]
    return {"method": inputs.config.methods[method].title, "seed": seed, "steps": int(run.index.max()), "cells": cells}
