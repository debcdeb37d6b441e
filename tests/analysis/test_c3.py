"""Regions and the scorecard."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis.c3 import scored
from c3prof.analysis.regions import region_pieces
from c3prof.analysis.steps import StepWindows
from c3prof.sample_traces.simulator import Collective, Kernel, Noise, Program, contended
from tests.analysis.contended_runs import matmul, step_marks, table, trace_of
from tests.kineto_files import Event, document, nccl

A = ((64, 64), (64, 64))


def score(compute: float, comm: float, concurrent: float, share: float = 1.0, reach: float = 0.0) -> pd.Series:
    row = {"compute_alone_ns": compute, "comm_alone_ns": comm, "concurrent_ns": concurrent, "baseline_share": share}
    return scored(pd.DataFrame([{**row, "compute_reach_ns": reach, "comm_reach_ns": reach}])).iloc[0]


def test_both_fractions() -> None:
    """F2: compute 10, comm 6, region 13."""
    row = score(10, 6, 13)
    assert row[["serial_ns", "ideal_ns", "scenario"]].tolist() == [16, 10, "compute-long"]
    ratios = [row[name] for name in ("ideal_speedup", "real_speedup", "realized_by_speedup", "realized_by_time")]
    assert ratios == pytest.approx([1.6, 16 / 13, (16 / 13 - 1) / 0.6, 0.5])
    assert row["realized_by_time_low"] == row["realized_by_time_high"] == 0.5


@pytest.mark.parametrize(
    ("compute", "comm", "scenario"), [(10, 8.6, "compute-long"), (10, 9, "balanced"), (9, 10, "balanced"), (8.6, 10, "comm-long")]
)
def test_scenario(compute: float, comm: float, scenario: str) -> None:
    assert score(compute, comm, 15)["scenario"] == scenario


def test_null_when_little_can_be_gained_or_little_is_known() -> None:
    row = score(100, 4, 100)
    assert np.isnan([row["realized_by_speedup"], row["realized_by_time"]]).all()
    assert row["ideal_speedup"] == pytest.approx(1.04)
    row = score(10, 6, 13, share=0.89)
    assert np.isnan([row["ideal_speedup"], row["real_speedup"], row["realized_by_time"]]).all()
    assert row["serial_ns"] == 16


def test_below_zero_and_above_one_are_shown() -> None:
    assert score(10, 6, 19)["realized_by_time"] == pytest.approx(-0.5)
    assert score(10, 6, 9.4)["realized_by_time"] == pytest.approx(1.1)


def test_interval_contains_what_moves_the_times_alone() -> None:
    row = score(10, 6, 13, reach=0.5)
    assert row["realized_by_time_low"] < 0.5 < row["realized_by_time_high"]
    assert row["real_speedup_low"] == pytest.approx(16 / 13 - np.sqrt(2) * 0.5 / 13)


def clean_and_concurrent() -> list[Event]:
    """Per step: gemm [500, 510) alone, all_reduce [520, 526) alone, then [600, 613) beside [603, 612)."""
    events, ranges = [], []
    for step in range(6):
        at = 1000.0 * step
        events += [*matmul("gemm", at + 500, at + 510, at + 1, A), nccl("allreduce", at + 520, at + 526)]
        events += [*matmul("gemm", at + 600, at + 613, at + 5, A), nccl("allreduce", at + 603, at + 612)]
        ranges.append((at, at + 300))
    return [*step_marks(*ranges), *events]


def test_scorecard_of_a_run(tmp_path: Path) -> None:
    """F2 from a file: six regions of 13 µs, with 10 and 6 alone."""
    trace = trace_of(tmp_path, document(clean_and_concurrent()))
    regions = table(trace, "c3_regions")
    assert len(regions) == 6
    assert (regions["end_ns"] - regions["start_ns"]).tolist() == [13_000] * 6
    one = regions.iloc[2]
    assert one[["n_compute", "n_comm", "compute_alone_ns", "comm_alone_ns", "concurrent_ns", "baseline_share"]].tolist() == [
        1, 1, 10_000, 6_000, 13_000, 1.0,
    ]  # fmt: skip
    assert np.isnan(one["wait_ns"])
    for name in ("c3_by_step", "c3"):
        row = table(trace, name).iloc[0]
        assert row["realized_by_time"] == pytest.approx(0.5), name
        assert row["realized_by_speedup"] == pytest.approx(5 / 13), name
        assert row["serial_source"] == "summed"
    run = table(trace, "c3").iloc[0]
    assert run[["n_regions", "serial_ns", "ideal_ns", "concurrent_ns"]].tolist() == [6, 96_000, 60_000, 78_000]
    assert run["reading"].startswith("Compute-bound: the overlap realizes 50% of what it could save")
    assert "3.00 µs a step" in run["reading"]


def test_waiting_for_peers_is_no_concurrency(tmp_path: Path) -> None:
    """Two ranks; the collective of the early one waits alone, which the scorecard takes out."""
    kernels = [Kernel(f"k{i}", 100.0, 1.2, dims=((i + 1, 2),)) for i in range(4)]
    program = Program(kernels, [Collective(250, after=1, share=0.5, delay=80)], steps=24, ranks=2, noise=Noise(0.01))
    trace = trace_of(tmp_path, *contended(program, 4))
    regions = table(trace, "c3_regions")
    known = regions[regions["wait_ns"].notna()]
    assert len(known) >= len(regions) - 4  # those of the window's first collective may be unknown
    assert (known["wait_ns"] >= 0).all()
    assert (known["concurrent_ns"] + known["wait_ns"] == known["end_ns"] - known["start_ns"]).all()


def test_wait_with_nothing_beside_it_is_taken_off(tmp_path: Path) -> None:
    """In µs of each of six steps; what computes beside a wait stays.

    rank 0, all_reduce 600------------612        rank 1, all_reduce   604---------612
            gemm           606-----------613             gemm     602-----------612
    """
    documents = []
    for rank, (arrival, begin, end) in enumerate([(600, 606, 613), (604, 602, 612)]):
        events: list[Event] = []
        for at in range(0, 6_000, 1_000):
            events += [*matmul("first", at + 500, at + 510, at + 1, A), *matmul("gemm", at + begin, at + end, at + 5, A)]
            events.append(nccl("allreduce", at + arrival, at + 612))
        documents.append(document([*step_marks(*((at, at + 300) for at in range(0, 6_000, 1_000))), *events], rank=rank, world_size=2))
    regions = table(trace_of(tmp_path, *documents), "c3_regions")
    assert regions[regions["rank"] == 0][["wait_ns", "concurrent_ns"]].drop_duplicates().to_numpy().tolist() == [[4_000, 9_000]]
    assert regions[regions["rank"] == 1][["wait_ns", "concurrent_ns"]].drop_duplicates().to_numpy().tolist() == [[0, 10_000]]


SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(0, 2), st.sampled_from(["compute", "comm", "copy"])),
    min_size=1,
    max_size=14,
)


@settings(max_examples=100, deadline=None)
@given(SPANS, st.integers(1, 40))
def test_regions_are_the_connected_groups(spans: list[tuple[int, int, int, str]], cut: int) -> None:
    """Against union-find over all pairs of pieces."""
    start, length, stream, kind = (np.array(values) for values in zip(*spans, strict=True))
    rows = pd.DataFrame({"start_ns": start, "end_ns": start + length, "stream": stream, "class": kind})
    pieces = region_pieces(rows, StepWindows(np.array([1, 2]), np.array([0, cut]), np.array([cut, 60])))
    group = list(range(len(pieces.row)))
    for i in range(len(group)):
        for j in range(i):
            apart = stream[pieces.row[i]] == stream[pieces.row[j]]
            if not apart and max(pieces.start[i], pieces.start[j]) < min(pieces.end[i], pieces.end[j]):
                group = [group[i] if g == group[j] else g for g in group]
    expected = {frozenset(np.flatnonzero(np.array(group) == g).tolist()) for g in set(group)}
    expected = {members for members in expected if len({bool(pieces.comm[m]) for m in members}) == 2}
    found = {frozenset(np.flatnonzero(pieces.region == r).tolist()) for r in set(pieces.region.tolist()) if r >= 0}
    assert found == expected
