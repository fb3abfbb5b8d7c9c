"""The double of a real model, and data in the layout of real data sets."""

from __future__ import annotations

from types import SimpleNamespace

import double
import pytest

from ibtpo.config import load
from ibtpo.corpora.assemble import build_benchmarks, build_training
from ibtpo.corpora.build import build_benchmark, build_corpus
from ibtpo.policy import named


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """.folder of the double, .card (a file), .tokenizer"""
    folder = tmp_path_factory.mktemp("double")
    tokenizer = double.save_model(folder / "model")
    (folder / "double.yaml").write_text(double.card(tokenizer))
    return SimpleNamespace(folder=folder / "model", card=folder / "double.yaml", tokenizer=tokenizer)


@pytest.fixture(scope="session")
def real(model, tmp_path_factory):
    """The small-real preset on the double, its data and policy built: .config, .data, .benchmarks, .policy (folders)."""
    folder = tmp_path_factory.mktemp("real")
    sources = double.write_raw(folder / "raw")
    overrides = {
        "policy": {"card": str(model.card), "folder": str(model.folder)},
        "corpora": {"data_root": str(folder / "raw"), "sources": sources},
        "sampling": {"max_tokens": 24},
        "engine": {"kv_cache_gib": 0.1},
    }
    config = load("small-real", overrides)
    built = []
    for name in config.corpora.checked:
        built.append(folder / f"{name}.parquet")
        build_benchmark(config.corpora, name, built[-1])
    build_corpus(config.corpora, "dapo_math_17k", built, folder / "dapo_math_17k.parquet")
    build_training(config, [folder / "dapo_math_17k.parquet"], folder / "data")
    build_benchmarks(config, built, folder / "benchmarks")
    named.main(config, folder / "policy")
    paths = {name: folder / name for name in ("data", "benchmarks", "policy")}
    return SimpleNamespace(config=config, overrides=overrides, folder=folder, built=built, **paths)
