"""A Slurm cluster for the time of the tests."""

from __future__ import annotations

import pytest
from cluster import Cluster, unavailable


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if reason := unavailable():
        pytest.skip(reason)
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
