"""One fit over the classes of compute beside a collective."""

import numpy as np
import pytest

from c3prof.analysis.class_fit import class_fit


def test_two_classes_are_told_apart() -> None:
    """w = 100, beside gemm 1.25 times and beside norm 2 times as slow."""
    holds = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        shared = rng.uniform(10, 60, (30, 2))
        duration = 100 + shared @ np.array([1 - 1 / 1.25, 1 - 1 / 2.0]) + rng.normal(0, 0.5, 30)
        fit = class_fit(duration, shared, 100.0)
        assert fit is not None
        assert 1 / fit.rate == pytest.approx([1.25, 2.0], rel=0.04)
        assert (fit.p_value < 1e-6).all()
        holds.append((fit.low <= [0.8, 0.5]) & (fit.high >= [0.8, 0.5]))
    assert 0.9 <= np.mean(holds) <= 0.99


@pytest.mark.parametrize(
    "shared",
    [
        np.ones((20, 2)) * 30,  # always together in the same proportion
        np.array([[30.0, 0.0]] * 18 + [[0.0, 30.0]] * 2),  # two samples of the second class
        np.array([[30.0, 0.0], [0.0, 30.0]] * 2),  # too few in all
    ],
)
def test_classes_that_are_not_separable(shared: np.ndarray) -> None:
    assert class_fit(np.full(len(shared), 120.0), shared, 100.0) is None
