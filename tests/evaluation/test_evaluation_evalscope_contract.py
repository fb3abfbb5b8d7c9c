"""EvalScope: the version in the lock estimates pass@k as we do, so its samples and ours can stand in one table (D.2 row 32)."""

from __future__ import annotations

import pytest

from ibtpo.evaluation.statistics import pass_at_k


def test_pass_at_k_is_the_same_estimator():
    from evalscope.metrics.utils.functions import calculate_pass_at_k

    for n, c, k in [(32, 0, 1), (32, 1, 1), (32, 3, 8), (5, 2, 3), (200, 1, 100), (32, 30, 4)]:
        assert float(calculate_pass_at_k([n], [c], k)[0]) == pytest.approx(pass_at_k(n, c, k))
