"""Which evidence a number rests on: calibration, same-trace, baseline; and what is said when two disagree."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c3prof.trace import Trace
from tests.analysis.contended_runs import A, matmul, step_marks, table, trace_of
from tests.kineto_files import Event, document, nccl


def calibrated(folder: Path, alone: float, beside: float, cold: float | None = None, saved: float = 0.0) -> Trace:
    """Steps 1 to 13, odd ones serialized: gemm `alone` in the odd steps, `beside` under the all_reduce in the even ones.

    saved: µs by which the concurrent steps are shorter than 2,000; cold: a second gemm, clean in every step, that lasts so long (same name, launch and dims).
    """
    events: list[Event] = []
    ranges = []
    at = 0.0
    for step in range(1, 14):
        serialized = step % 2 == 1
        at += 2000.0 - (saved if serialized else 0.0)  # as long as the step before
        duration = alone if serialized else beside
        events += matmul("gemm", at + 500, at + 500 + duration, at + 1, A)
        events.append(nccl("allreduce", at + 1000, at + 1200) if serialized else nccl("allreduce", at + 500, at + 500 + duration))
        if cold is not None:
            events += matmul("gemm", at + 1400, at + 1400 + cold, at + 9, A)
        ranges.append((at, at + 300))
    trace = trace_of(folder, document([*step_marks(*ranges), *events]))
    phase = np.where(trace.steps["step"] % 2 == 1, "serialized", "concurrent")
    return replace(trace, steps=trace.steps.assign(phase=pd.Categorical(phase)))


def gemm(trace: Trace) -> pd.DataFrame:
    rows = table(trace, "slowdown")
    return rows[(rows["kernel"] == "gemm") & (rows["co_runner"] == "comm:all_reduce")]


def values(rows: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return list(rows[list(columns)].itertuples(index=False, name=None))


def test_calibration(tmp_path: Path) -> None:
    """Step 1 is left out: 6 serialized, 6 concurrent ones."""
    rows = gemm(calibrated(tmp_path, 100.0, 150.0))
    assert values(rows, "slowdown", "n_clean", "n_overlapped", "evidence") == [(1.5, 6, 6, "calibration")]


def test_two_kinds_of_evidence_are_both_shown(tmp_path: Path) -> None:
    """The clean gemm elsewhere in the concurrent steps lasts 120: 1.25 by the same trace, 1.5 by its own place."""
    rows = gemm(calibrated(tmp_path, 100.0, 150.0, cold=120.0))
    assert values(rows, "slowdown", "clean_ns", "evidence") == [(1.5, 100_000, "calibration"), (1.25, 120_000, "same-trace")]
    assert "disagrees by more than 10 %" in rows["note"].iloc[1]


def test_calibrated_steps_are_measured(tmp_path: Path) -> None:
    """Serialized 2,000 with 100 compute and 200 communication; concurrent 1,950: half of what could be saved."""
    trace = calibrated(tmp_path, 100.0, 150.0, saved=50.0)
    for name in ("c3", "c3_by_step"):
        row = table(trace, name).iloc[0]
        assert row["serial_source"] == "measured"
        assert row[["serial_ns", "ideal_ns", "concurrent_ns"]].tolist() == [2_000_000, 1_900_000, 1_950_000]
        assert row["ideal_speedup"] == pytest.approx(20 / 19)
        assert row["realized_by_time"] == pytest.approx(0.5)


def test_serialized_steps_are_marked_after_a_wait(tmp_path: Path) -> None:
    trace = calibrated(tmp_path, 100.0, 150.0)
    launches = trace.launches
    blocking = launches.iloc[1:].assign(
        blocking=True, end_ns=launches["start_ns"].iloc[1:] - 100, start_ns=launches["start_ns"].iloc[1:] - 200
    )
    waiting = pd.concat([launches, blocking], ignore_index=True)
    rows = gemm(replace(trace, launches=waiting))
    assert "clean samples right after a blocking wait" in rows["note"].iloc[0]
