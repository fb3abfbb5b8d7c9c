"""One worker process for all tests of this folder that do not kill it."""

import pytest

from ibtpo.verifiers.workers import Pool


@pytest.fixture(scope="session")
def pool():
    pool = Pool(1, seconds=20)
    yield pool
    pool.close()
