"""Serialized and concurrent steps of real DDP and FSDP2 runs, where communication costs time: on a rate-limited network."""

from collections.abc import Callable

import numpy as np
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.trace import Trace

pytest.importorskip("torch", reason="real ranks need torch")

Traces = Callable[..., Trace]

N = 3
PERIOD = 2 * N + 1
OPTIONS = (("calibrate", N), ("kineto", "auto"), ("steps", 4 * PERIOD))


@pytest.fixture(scope="session")
def ddp(trace: Traces, slow_network: str | None) -> Trace:
    if slow_network is None:
        pytest.skip("a rate-limited network namespace needs root, ip and tc")
    return trace("ddp", 2, slow_network, OPTIONS)


@pytest.fixture(scope="session")
def fsdp2(trace: Traces, slow_network: str | None) -> Trace:
    if slow_network is None:
        pytest.skip("a rate-limited network namespace needs root, ip and tc")
    return trace("fsdp2", 2, slow_network, OPTIONS)


def test_phases_alternate_on_all_ranks(ddp: Trace) -> None:
    expected = (["discarded"] + ["serialized"] * N + ["concurrent"] * N) * 4
    for rank in (0, 1):
        steps = ddp.recorded_steps[ddp.recorded_steps["rank"] == rank]
        assert list(steps["phase"]) == expected


def test_windows_hold_one_whole_period_each(ddp: Trace) -> None:
    steps = ddp.steps[ddp.steps["rank"] == 0]
    assert list(steps["step"]) == [*range(PERIOD, 2 * PERIOD), *range(3 * PERIOD, 4 * PERIOD)]
    assert list(steps["phase"]) == (["discarded"] + ["serialized"] * N + ["concurrent"] * N) * 2


def test_serialized_steps_hide_nothing_and_concurrent_ones_do(ddp: Trace) -> None:
    phases = ddp.steps.set_index(["rank", "step"])["phase"].astype(object)
    shared = {"serialized": 0, "concurrent": 0}
    for (rank, step), phase in phases.items():
        if phase in shared:
            one = analyze(ddp.only_rank(rank), Settings(only=("overlap",), steps=(step, step)))["overlap"].frame
            shared[phase] += int(one["hidden_ns"].sum())
    assert shared["concurrent"] > 10 * shared["serialized"]


def test_the_fraction_of_ideal_comes_with_its_interval(ddp: Trace) -> None:
    row = analyze(ddp, Settings(only=("calibration",)))["calibration"].frame.iloc[0]
    assert row["note"] is None
    assert (row["n_serialized"], row["n_concurrent"]) == (4 * N, 4 * N)
    assert row["ideal_ns"] == max(row["compute_ns"], row["comm_ns"])
    assert row["realized_by_time"] == pytest.approx((row["serial_ns"] - row["concurrent_ns"]) / (row["serial_ns"] - row["ideal_ns"]))
    assert row["realized_by_time_low"] <= row["realized_by_time"] <= row["realized_by_time_high"]
    assert row["ideal_speedup"] > 1.05


def test_overlap_of_the_run_leaves_the_serialized_steps_out(ddp: Trace) -> None:
    overlap = analyze(ddp, Settings(only=("overlap", "overlap_by_step")))
    assert (overlap["overlap"].frame["hidden_ns"] > 0).all()
    assert len(overlap["overlap_by_step"].frame.query("step != 'outside'")) == 2 * 2 * (N + 1)


def test_communication_takes_time_and_little_cpu(ddp: Trace) -> None:
    """What the limited network is for: a serialized step waits, its thread does not compute meanwhile."""
    steps = ddp.recorded_steps
    serialized = steps[steps["phase"] == "serialized"]
    wall, cpu = (serialized["end_ns"] - serialized["start_ns"]).sum(), serialized["cpu_ns"].sum()
    blocked = ddp.recorded_collectives[ddp.recorded_collectives["phase"] == "serialized"]
    waited = (blocked["end_ns"] - blocked["launch_end_ns"]).sum()
    assert cpu < wall - 0.5 * waited
    assert np.median(cpu) > 0


def test_fsdp2_could_not_overlap_and_says_so(fsdp2: Trace) -> None:
    row = analyze(fsdp2, Settings(only=("calibration",)))["calibration"].frame.iloc[0]
    assert row["n_at_once"] == row["n_collectives"] > 0
    assert row["note"] == "no overlap was possible: every collective was waited for at once"
    assert np.isnan(row["realized_by_time"])
    assert (analyze(fsdp2, Settings(only=("overlap",)))["overlap"].frame["hidden_ns"] == 0).all()
