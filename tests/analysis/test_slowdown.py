"""Table slowdown: the hand-checked values of docs/metrics.md §7 and each reason for no number."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.contention import contention
from c3prof.analysis.interference import flagged
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.simulator import Collective, Kernel, Noise, Program, contended
from tests.analysis.contended_runs import matmul, run_of, step_marks, table, trace_of
from tests.kineto_files import document, nccl

A, B = ((64, 64), (64, 64)), ((256, 256), (256, 256))


def only(frame: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def test_fully_overlapped(tmp_path: Path) -> None:
    """F3: GEMM 100 | 100 | 100 | 100 | 150 under all_reduce, four times → 1.5, lost 200 µs."""
    clean, under = ("gemm", 100.0, A, None), ("gemm", 150.0, A, (0.0, 150.0))
    row = only(table(trace_of(tmp_path, run_of([clean, under] * 4)), "slowdown"), kernel="gemm")
    assert row[["co_runner", "n_clean", "n_overlapped", "clean_ns", "overlapped_ns", "evidence", "op", "input_dims"]].tolist() == [
        "comm:all_reduce", 4, 4, 100_000, 150_000, "same-trace", "aten::mm", "[[64,64],[64,64]]",
    ]  # fmt: skip
    assert row["slowdown"] == 1.5
    assert row["lost_ns"] == 200_000
    assert row["slowdown_low"] < 1.5 < row["slowdown_high"]
    assert row["interference"]
    assert row["note"] == "few samples; first step included"


def test_partly_overlapped(tmp_path: Path) -> None:
    """F4: w = 100; d = 130 of which the last 90 are shared → 90 / (100 - 40) = 1.5."""
    clean, under = ("gemm", 100.0, A, None), ("gemm", 130.0, A, (40.0, 130.0))
    row = only(table(trace_of(tmp_path, run_of([clean, under] * 5)), "slowdown"), kernel="gemm")
    assert row["slowdown"] == pytest.approx(1.5, abs=1e-12)
    assert row["lost_ns"] == 150_000


def test_two_sizes_under_one_name(tmp_path: Path) -> None:
    """F5: dims A clean at 50, dims B always under the all_reduce at 200 → no number, never 4.0."""
    kernels = [("gemm", 50.0, A, None), ("gemm", 200.0, B, (0.0, 200.0))] * 10
    rows = table(trace_of(tmp_path, run_of(kernels)), "slowdown")
    row = only(rows, kernel="gemm")
    assert (row["n_clean"], row["n_overlapped"], row["evidence"]) == (0, 10, "none")
    assert np.isnan([row["slowdown"], row["clean_ns"], row["lost_ns"], row["p_value"]]).all()
    assert row["note"].startswith("never clean, overlap does not vary")
    assert not rows["interference"].any()


def test_dose_response(tmp_path: Path) -> None:
    """F13: never clean, w = 100, s = 1.25, o/d from 0.1 to 0.9; a second name always at o/d = 1."""
    rng = np.random.default_rng(5)
    kernels = []
    for _ in range(40):
        share = rng.uniform(0.1, 0.9)
        duration = round(float(100 / (1 - share * (1 - 1 / 1.25)) * (1 + 0.02 * rng.standard_normal())), 3)
        kernels += [("varies", duration, A, (0.0, round(share * duration, 3))), ("always", 80.0, B, (0.0, 80.0))]
    rows = table(trace_of(tmp_path, run_of(kernels)), "slowdown")
    row = only(rows, kernel="varies")
    assert row["evidence"] == "dose-response"
    assert row["slowdown"] == pytest.approx(1.25, rel=0.05)
    assert row["slowdown_low"] < 1.25 < row["slowdown_high"]
    assert row["clean_ns"] == pytest.approx(100_000, rel=0.02)
    other = only(rows, kernel="always")
    assert np.isnan(other["slowdown"])
    assert other["note"].startswith("never clean, overlap does not vary")


def test_planted_factors_are_recovered(tmp_path: Path) -> None:
    """1.0 to 3.0 within 5 % at 3 % noise, with partial overlap, a random effect of the step and late arrivals."""
    factors = {f"gemm_{i}": s for i, s in enumerate((1.0, 1.1, 1.25, 1.5, 2.0, 3.0))}
    kernels = [Kernel(name, 100 + 20 * i, s, dims=((i + 1, 8),)) for i, (name, s) in enumerate(factors.items())] * 3
    collectives = [Collective(500, after=after, share=0.6, delay=60) for after in (1, 5, 11, 14)]
    program = Program(kernels, collectives, steps=60, noise=Noise(0.03, 0.01, 4))
    rows = table(trace_of(tmp_path, *contended(program, 2)), "slowdown")
    found = rows[rows["slowdown"].notna()].set_index("kernel")
    assert set(found.index) == set(factors)
    for name, factor in factors.items():
        assert found.loc[name, "slowdown"] == pytest.approx(factor, rel=0.05), name
    assert found["interference"].to_dict() == {name: factor > 1 for name, factor in factors.items()}


def test_nothing_planted_flags_nothing(tmp_path: Path) -> None:
    """At 1.0 at most 1 of 20 seeds flags any row."""
    kernels = [Kernel(f"gemm_{i}", 60 + 11 * i, dims=((i + 1, 8),)) for i in range(8)]
    flags = 0
    for seed in range(20):
        program = Program(kernels, [Collective(500, after=1, share=0.5, delay=40)], steps=20, noise=Noise(0.03, 0.01, 4, 0.01))
        folder = tmp_path / str(seed)
        _, rows, *_ = contention(trace_of(folder, *contended(program, seed)), {}, Settings())
        flags += bool(flagged(rows.frame)["interference"].any())
    assert flags <= 1


def test_outliers_are_left_out_and_counted(tmp_path: Path) -> None:
    kernels: list[Any] = [("gemm", 100.0 + 0.1 * (i % 3), A, None) for i in range(10)]
    kernels += [("gemm", 150.0 + 0.1 * (i % 3), A, (0.0, 150.0 + 0.1 * (i % 3))) for i in range(10)]
    kernels += [("gemm", 900.0, A, (0.0, 900.0))]
    row = only(table(trace_of(tmp_path, run_of(kernels)), "slowdown"), kernel="gemm")
    assert row["slowdown"] == pytest.approx(1.5, rel=0.01)
    assert row["n_overlapped"] == 10
    assert "1 outliers left out" in row["note"]


@pytest.mark.parametrize(
    ("kernels", "reason"),
    [
        (
            [("gemm", 100.0, A, None)] * 2 + [("gemm", 150.0, A, (0.0, 150.0))] * 5,
            "too few samples (3 clean and 3 overlapped needed), overlap does not vary",
        ),
        ([("gemm", 100.0, A, None)] * 5 + [("gemm", 150.0, A, (0.0, 150.0))] * 2, "too few samples"),
        ([("gemm", 4.0, A, None)] * 5 + [("gemm", 7.0, A, (0.0, 7.0))] * 5, "below the timer's resolution"),
        ([("gemm", 50.0, A, None), ("gemm", 200.0, A, None)] * 5 + [("gemm", 300.0, A, (0.0, 300.0))] * 5, "mixed clean sample"),
        ([("gemm", 100.0, A, None)] * 5 + [("gemm", 150.0, A, (0.0, 40.0))] * 5, "rate not identifiable"),
    ],
)
def test_reasons_for_no_number(tmp_path: Path, kernels: list[Any], reason: str) -> None:
    """Times are multiples of 0.5 µs here, so that is what the timer resolves."""
    row = only(table(trace_of(tmp_path, run_of(kernels)), "slowdown"), kernel="gemm")
    assert np.isnan([row["slowdown"], row["slowdown_low"], row["slowdown_high"], row["q_value"]]).all()
    assert row["note"].startswith(reason)
    assert not row["interference"]
    assert row["evidence"] == "none"


def test_several_co_runners_are_counted_without_a_factor(tmp_path: Path) -> None:
    """gemm [0, 150) with an all_reduce [0, 60) and an all_gather [70, 130): one row mixed, with the lost time."""
    content = run_of([("gemm", 100.0, A, None)] * 4)
    events = content["traceEvents"]
    for turn in range(3):
        start = 5000.0 + 400 * turn
        events += matmul("gemm", start, start + 150, 600.0 + 3 * turn, A)
        events += [nccl("allreduce", start, start + 60), nccl("_allgather_base", start + 70, start + 130)]
    row = only(table(trace_of(tmp_path, content), "slowdown"), co_runner="mixed")
    assert (row["n_clean"], row["n_overlapped"], row["lost_ns"]) == (4, 3, 150_000)
    assert np.isnan(row["slowdown"])
    assert row["note"].startswith("several co-runners at once")


def test_first_step_is_left_out(tmp_path: Path) -> None:
    """Six steps of one clean and one overlapped kernel; the first, ten times as long, counts nowhere."""
    events, ranges = [], []
    for step in range(6):
        at, slow = 2000.0 * step, 10 if step == 0 else 1
        events += matmul("gemm", at + 500, at + 500 + 100 * slow, at + 1, A)
        events += matmul("gemm", at + 1600, at + 1600 + 15 * slow + 135, at + 5, A)
        events.append(nccl("allreduce", at + 1600, at + 1600 + 15 * slow + 135))
        ranges.append((at, at + 1900))
    row = only(table(trace_of(tmp_path, document([*step_marks(*ranges), *events])), "slowdown"), kernel="gemm")
    assert (row["n_clean"], row["n_overlapped"], row["slowdown"]) == (5, 5, 1.5)
    assert row["note"] == "few samples"


def test_place_in_the_step_stands_for_sizes_that_were_not_recorded(tmp_path: Path) -> None:
    """Without dims: the first gemm of each step lasts 50 and is clean, the second 200 under the all_reduce; no number."""
    events, ranges = [], []
    for step in range(8):
        at = 2000.0 * step
        events += matmul("gemm", at + 500, at + 550, at + 1)
        events += matmul("gemm", at + 700, at + 900, at + 5)
        events.append(nccl("allreduce", at + 700, at + 900))
        ranges.append((at, at + 1900))
    rows = table(trace_of(tmp_path, document([*step_marks(*ranges), *events])), "slowdown")
    row = only(rows, kernel="gemm")
    assert (row["n_clean"], row["n_overlapped"]) == (0, 7)
    assert np.isnan(row["slowdown"])


def test_collective_with_one_rank(tmp_path: Path) -> None:
    """Waiting cannot be told from moving: counts and medians, no number."""
    program = Program([Kernel(f"k{i}", 100.0) for i in range(8)], [Collective(300, after=1, share=0.5)], steps=12)
    rows = table(trace_of(tmp_path, *contended(program, 1)), "slowdown")
    row = only(rows, op="all_reduce")
    assert (row["co_runner"], row["n_overlapped"]) == ("compute", 6)
    assert np.isnan([row["slowdown"], row["lost_ns"]]).all()
    assert row["note"] == "waiting not separable with one rank"


def test_nothing_at_all(tmp_path: Path) -> None:
    """No communication: tables without rows, no error and no warning."""
    trace = trace_of(tmp_path, run_of([("gemm", 100.0, A, None)] * 3))
    names = ("slowdown", "interference", "c3", "c3_by_step", "c3_regions", "footprint")
    report = analyze(trace, Settings(only=names))
    assert {name: len(found) for name, found in report.items()} == dict.fromkeys(names, 0)
