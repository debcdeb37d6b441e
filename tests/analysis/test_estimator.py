"""The statistics below the table: t and q values, resamples, mixtures, and what intervals promise."""

import numpy as np
import pytest

from c3prof.analysis.estimator import rates
from c3prof.analysis.mixture import mixed
from c3prof.analysis.resampling import resample_counts, resampled_means, resampled_medians
from c3prof.analysis.segments import Segments
from c3prof.analysis.sides import Sides
from c3prof.analysis.significance import q_values, t_factor, t_p_value


def test_students_t() -> None:
    """Two-sided p of 0.05 at the tabulated factors."""
    freedom, factors = np.array([1, 2, 5, 10, 30, 1e6]), np.array([12.7062, 4.3027, 2.5706, 2.2281, 2.0423, 1.96])
    assert t_factor(freedom) == pytest.approx(factors, rel=1e-4)
    assert t_p_value(factors, freedom) == pytest.approx(np.full(6, 0.05), rel=1e-3)
    assert t_p_value(0.0, 3) == 1.0
    assert np.isnan(t_p_value(np.nan, 3))


def test_benjamini_hochberg() -> None:
    q = q_values(np.array([0.01, np.nan, 0.04, 0.03, 0.5]))
    assert q[[0, 2, 3, 4]] == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5])
    assert np.isnan(q[1])


@pytest.mark.parametrize(("n", "units"), [(1, 1), (5, 5), (8, 3), (50, 50), (301, 40), (2000, 30)])
def test_resamples_are_those_of_repeated_values(n: int, units: int) -> None:
    rng, counts = np.random.default_rng(n), resample_counts(0)
    label = np.repeat([0, 1], [n, n + 3])
    values, unit = rng.normal(size=len(label)), rng.integers(0, units, len(label))
    segments = Segments(label, 2)
    medians, means = resampled_medians(segments, values, unit, counts), resampled_means(segments, values, unit, counts)
    for row in (0, 1):
        for resample in range(0, 1000, 50):
            mine = label == row
            drawn = np.repeat(values[mine], counts[unit[mine], resample])
            drawn = drawn if len(drawn) else values[mine]
            assert medians[row, resample] == pytest.approx(np.median(drawn), abs=1e-5)
            assert means[row, resample] == pytest.approx(drawn.mean(), abs=1e-4)


def test_same_seed_same_resamples() -> None:
    assert np.array_equal(resample_counts(3), resample_counts.__wrapped__(3))
    assert not np.array_equal(resample_counts(3), resample_counts(4))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([50, 50, 50, 200, 200, 200], True),
        ([50, 51, 49, 50, 200, 201], True),
        ([100, 101, 99, 102, 98, 900], False),  # one outlier is no second size
        ([100, 100, 100, 105, 105, 105], False),  # closer than 10 %
        ([100, 103, 106, 109, 112, 115], False),
        ([50, 200, 50], False),  # too few to tell
    ],
)
def test_mixtures(values: list[float], expected: bool) -> None:
    assert mixed(Segments(np.zeros(len(values), np.int64), 1), np.array(values, float)).tolist() == [expected]


def drawn(rng: np.random.Generator, rows: int, n_clean: int, n_over: int, slowdown: float) -> Sides:
    """Rows with 3 % noise of heavy tails, a 1 % effect of each of 30 steps, and overlap of 30 to 100 % of the work."""
    effect = rng.normal(0, 0.01, (rows, 30))

    def side(n: int) -> tuple[np.ndarray, np.ndarray]:
        step = np.stack([rng.permutation(max(30, n))[:n] % 30 for _ in range(rows)])
        noise = rng.standard_t(4, (rows, n)) / np.sqrt(2) * 0.03
        return 100_000 * (1 + np.take_along_axis(effect, step, 1)) * (1 + noise), step

    (clean, clean_step), (work, over_step) = side(n_clean), side(n_over)
    part = rng.uniform(0.3, 1.0, work.shape)
    shared = work * part * slowdown
    row, nowhere = np.arange(rows), np.zeros(rows * max(n_clean, n_over), np.int64)
    clean_row, over_row = np.repeat(row, n_clean), np.repeat(row, n_over)
    return Sides(
        signature=row,
        group=row // 10,
        clean_row=clean_row,
        clean_ns=clean.ravel(),
        clean_step=clean_step.ravel(),
        clean_part=nowhere[: len(clean_row)],
        clean_place=nowhere[: len(clean_row)],
        over_row=over_row,
        over_ns=(work * (1 - part) + shared).ravel(),
        shared_ns=shared.ravel(),
        over_step=over_step.ravel(),
        over_part=nowhere[: len(over_row)],
        over_place=nowhere[: len(over_row)],
    )


@pytest.mark.parametrize(
    ("n_clean", "least", "most"), [(3, 0.92, 1.0), (4, 0.92, 1.0), (6, 0.93, 0.975), (10, 0.93, 0.975), (30, 0.93, 0.975)]
)
@pytest.mark.parametrize("slowdown", [1.0, 1.5])
def test_coverage(n_clean: int, least: float, most: float, slowdown: float) -> None:
    """95 % intervals hold the planted factor; 1,000 rows each (benchmarks/coverage.py does this through the reader)."""
    found = rates(drawn(np.random.default_rng(n_clean), 1000, n_clean, 15, slowdown), 1.0, resample_counts(0))
    holds = (found.low <= 1 / slowdown) & (1 / slowdown <= found.high)
    assert least <= holds.mean() <= most
    assert np.median(1 / found.rate) == pytest.approx(slowdown, rel=0.02)
    if slowdown == 1.0:
        assert (found.p_value < 0.05).mean() <= 0.08
