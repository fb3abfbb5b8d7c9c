"""Fixtures shared by all rooms: a tiny world with a random policy, built once."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from types import SimpleNamespace

import pytest

from ibtpo.config import load


@pytest.fixture(scope="session")
def smoke():
    """The smoke preset."""
    return load("smoke")


@pytest.fixture(scope="session")
def world(smoke, tmp_path_factory):
    """Data and an (almost) untrained policy of the smoke preset: .config, .data, .policy (folders)."""
    from ibtpo.policy.train import main as train_policy
    from ibtpo.world.build import main as build

    folder = tmp_path_factory.mktemp("world")
    build(smoke, folder / "data")
    train_policy(smoke, folder / "data", folder / "policy")
    return SimpleNamespace(config=smoke, data=folder / "data", policy=folder / "policy")


@pytest.fixture(scope="session")
def undisturbed(world, tmp_path_factory):
    """A finished study (tests/faults/study.py) that every disturbed one must equal."""
    from study import Study

    return Study.made(world, tmp_path_factory.mktemp("undisturbed") / "smoke tést")
