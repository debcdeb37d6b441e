"""α and β come out as they were put in; what cannot be fitted has no number and a reason."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis.bandwidth import fitted_line
from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.trace import Trace
from tests.collective_frames import record, trace


def fit(run: Trace) -> pd.DataFrame:
    return {table.schema.name: table.frame for table in across_ranks(run, {}, Settings())}["bandwidth_fit"]


def sized(sizes: list[int], times_us: list[float], ranks: int = 2) -> Trace:
    """all_reduces of these sizes and transfers; one before them opens the window."""
    rows, at = [], 0.0
    for k, (size, time) in enumerate(zip([1, *sizes], [5.0, *times_us], strict=True)):
        rows += [record(r, at, at + time, seq=k, size_bytes=size) for r in range(ranks)]
        at += time + 100
    return trace(rows)


@pytest.mark.parametrize("seed", range(5))
def test_f6_alpha_and_bandwidth_within_3_percent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = np.geomspace(10_000, 1_000_000_000, 200)
    time = (30_000 + size / 100) * (1 + 0.05 * rng.standard_normal(200))
    line = fitted_line(size, time)
    assert line is not None
    assert line.alpha == pytest.approx(30_000, rel=0.03)
    assert line.bandwidth == pytest.approx(100, rel=0.03)
    assert line.alpha_low < line.alpha < line.alpha_high
    assert line.bandwidth_low < line.bandwidth < line.bandwidth_high


def test_f6_through_the_ledger() -> None:
    rng = np.random.default_rng(7)
    sizes = [int(s) for s in np.geomspace(10_000, 1_000_000_000, 200)]
    times = [(30 + s / 100_000) * (1 + 0.05 * rng.standard_normal()) for s in sizes]
    row = fit(sized(sizes, times)).iloc[0]
    assert row["n"] == 200
    assert row["alpha_ns"] == pytest.approx(30_000, rel=0.03)
    assert row["bandwidth_gb_s"] == pytest.approx(100, rel=0.03)
    assert row["bound"] == "bandwidth"
    assert row["half_size_bytes"] == pytest.approx(3e6, rel=0.06)


def test_intervals_hold_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(0)
    size = np.geomspace(10_000, 100_000_000, 12)
    inside = 0
    for _ in range(300):
        line = fitted_line(size, (30_000 + size / 100) * (1 + 0.05 * rng.standard_normal(12)))
        assert line is not None
        inside += line.alpha_low <= 30_000 <= line.alpha_high
    assert 0.90 <= inside / 300 <= 0.99


@settings(max_examples=50, deadline=None)
@given(st.floats(1_000, 1e6), st.floats(0.1, 1000))
def test_exact_lines_are_exact(alpha: float, bandwidth: float) -> None:
    size = np.geomspace(1_000, 1e9, 20)
    line = fitted_line(size, alpha + size / bandwidth)
    assert line is not None
    assert line.alpha == pytest.approx(alpha, rel=1e-6)
    assert line.bandwidth == pytest.approx(bandwidth, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "times", "why"),
    [
        ([10**6] * 2, [10.0, 11.0], "fewer than 3"),
        ([10**6] * 9, [10.0] * 9, "one message size"),
        ([10**5, 10**6, 10**7], [30.0, 20.0, 10.0], "does not grow"),
    ],
)
def test_what_cannot_be_fitted_says_why(sizes: list[int], times: list[float], why: str) -> None:
    row = fit(sized(sizes, times)).iloc[0]
    assert np.isnan(row["alpha_ns"])
    assert np.isnan(row["bandwidth_gb_s"])
    assert why in row["note"]


def test_small_messages_are_latency_bound() -> None:
    sizes = [1_000 * k for k in range(1, 20)]
    assert fit(sized(sizes, [30 + s / 100_000 for s in sizes])).iloc[0]["bound"] == "latency"


def test_one_rank_alone_gives_no_fit() -> None:
    assert not len(fit(sized([10**5, 10**6, 10**7], [31.0, 40.0, 130.0], ranks=1)))


def test_generated_job_gives_back_its_alpha_and_bandwidth() -> None:
    made = fit(simulated(Job(ranks=8, steps=60, alpha_ns=30_000, bandwidth_gb_s=100.0, end_jitter_ns=0)).trace)
    row = made[made["n"] > 100].iloc[0]
    assert row["alpha_low"] <= 30_000 <= row["alpha_high"]
    assert row["bandwidth_low"] <= 100 <= row["bandwidth_high"]
