"""Overlap by hand (docs/metrics.md §7), and against unit cells."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis import analyze
from c3prof.analysis.overlap import overlap
from c3prof.analysis.settings import Settings
from c3prof.errors import WrongSettings
from c3prof.table import Report
from c3prof.trace import WINDOWS, Trace
from tests.builders import Item, activity, comm, compute, copy, fused, step, trace

ADDITIVE = [
    "span_ns",
    "compute_ns",
    "comm_ns",
    "copy_ns",
    "hidden_ns",
    "exposed_ns",
    "exposed_copy_ns",
    "idle_ns",
    "fused_ns",
    "comm_overlap_ns",
]


def report(*items: Item, **asked: Any) -> Report:
    return analyze(trace(*items), Settings(**asked))


def row(*items: Item) -> dict[str, Any]:
    """The only row of the table overlap."""
    (found,) = overlap(trace(*items), {}, Settings())[0].frame.to_dict("records")
    return {str(name): value for name, value in found.items()}


def test_f1_every_column() -> None:
    # compute  0---------10  12--------20
    # comm            8------14
    assert row(compute(0, 10), compute(12, 20), comm(8, 14)) == {
        "rank": 0,
        "device": 0,
        "source": "rank0.json",
        "span_ns": 20,
        "compute_ns": 18,
        "comm_ns": 6,
        "copy_ns": 0,
        "hidden_ns": 4,
        "exposed_ns": 2,
        "exposed_copy_ns": 0,
        "idle_ns": 0,
        "fused_ns": 0,
        "comm_overlap_ns": 0,
        "hidden_ratio": 4 / 6,
        "covered_ratio": 4 / 18,
        "note": None,
    }


def test_f10_kernels_shorter_than_a_microsecond_under_an_all_reduce() -> None:
    kernels = [compute(2_000 * i + 125, 2_000 * i + 1_925) for i in range(30)]
    assert row(*kernels, comm(0, 60_000))["hidden_ratio"] == 0.9


def test_f11_back_to_back_kernels_at_absolute_times_do_not_overlap() -> None:
    start = 1_714_060_800_000_000_123  # float64 counts in steps of 256 ns here
    items = [(compute if i % 2 else comm)(start + 7 * i, start + 7 * i + 7) for i in range(100)]
    found = row(*items)
    assert (found["hidden_ns"], found["exposed_ns"], found["compute_ns"], found["idle_ns"]) == (0, 350, 350, 0)


def test_f14_one_fused_kernel() -> None:
    found = row(compute(0, 10), fused(10, 25), compute(30, 40))
    assert found["comm_ns"] is None
    assert found["hidden_ns"] is None
    assert pd.isna(found["hidden_ratio"])
    assert pd.isna(found["covered_ratio"])
    assert (found["fused_ns"], found["exposed_ns"], found["note"]) == (15, 0, "unattributable fused kernel")
    assert found["compute_ns"] + found["exposed_ns"] + found["exposed_copy_ns"] + found["idle_ns"] == found["span_ns"] == 40


def test_fused_beside_other_communication_is_part_of_both() -> None:
    found = row(fused(0, 10), comm(5, 20))
    assert (found["comm_ns"], found["hidden_ns"], found["exposed_ns"], found["fused_ns"]) == (20, 10, 10, 10)


def test_copies_count_where_nothing_else_runs() -> None:
    # compute 0--10   comm 10--20   copy 5--------25
    found = row(compute(0, 10), comm(10, 20), copy(5, 25, stream=9))
    assert (found["copy_ns"], found["exposed_copy_ns"], found["exposed_ns"], found["idle_ns"]) == (20, 5, 10, 0)


def test_two_streams_busy_at_once_count_once() -> None:
    assert row(compute(0, 100), compute(50, 150, stream=8))["compute_ns"] == 150


def test_two_kernels_of_one_collective_are_no_overlap_of_communication() -> None:
    assert row(comm(0, 10, key="a"), comm(5, 15, key="a", stream=21))["comm_overlap_ns"] == 0
    assert row(comm(0, 10), comm(5, 15, stream=21))["comm_overlap_ns"] == 5


@pytest.mark.parametrize("percent", [29, 31, 40, 60])
def test_exposed_time_is_reported_at_every_overlap(percent: int) -> None:
    found = row(compute(0, percent), comm(0, 100))
    assert (found["exposed_ns"], found["hidden_ratio"]) == (100 - percent, percent / 100)


def test_no_communication_is_null_with_a_reason() -> None:
    found = row(compute(0, 10))
    assert (found["comm_ns"], found["note"]) == (0, "no communication")
    assert pd.isna(found["hidden_ratio"])
    assert found["covered_ratio"] == 0


def test_one_row_a_device_and_an_empty_trace_has_none() -> None:
    found = report(compute(0, 10), comm(5, 20), compute(2, 9, device=1), comm(4, 6, device=1))["overlap"].frame
    assert found[["device", "span_ns", "exposed_ns"]].to_numpy().tolist() == [[0, 20, 10], [1, 7, 0]]
    assert {name: len(table) for name, table in report(only=MINE).items()} == dict.fromkeys(MINE, 0)


STEPS = (
    # step 1: 0--10 compute, comm 8-----------20     step 2: compute 15----25, comm 22--30
    compute(0, 10, step=1),
    comm(8, 20, step=1),
    compute(15, 25, step=2),
    comm(22, 30, step=2),
    copy(35, 40, stream=9),
    step(1, 0, 5),
    step(2, 5, 9),
)


def test_step_windows_take_every_span_and_sum_to_the_run() -> None:
    found = report(*STEPS, only=MINE)["overlap_by_step"].frame
    assert found["step"].tolist() == [1, 2, "outside"]
    #           step 1 = [0, 15)   step 2 = [15, 30)   outside = [30, 40)
    assert found["span_ns"].tolist() == [15, 15, 10]
    assert found["comm_ns"].tolist() == [7, 13, 0]
    assert found["hidden_ns"].tolist() == [2, 8, 0]
    assert found["exposed_ns"].tolist() == [5, 5, 0]
    assert found["idle_ns"].tolist() == [0, 0, 5]
    assert found["note"].tolist() == [None, None, "no communication; no compute"]


def test_a_step_starts_after_the_main_stream_is_done_with_the_one_before() -> None:
    # step 2's first activity is a copy at 5 on another stream, while step 1 computes until 10
    found = report(compute(0, 10, step=1), copy(5, 12, stream=9, step=2), compute(10, 20, step=2))["overlap_by_step"].frame
    assert found[["step", "span_ns"]].to_numpy().tolist() == [[1, 10], [2, 10]]


def test_a_gap_between_recording_windows_lies_outside() -> None:
    found = report(compute(0, 10, step=3), compute(100, 110, step=9))["overlap_by_step"].frame
    assert found[["step", "span_ns"]].to_numpy().tolist() == [[3, 10], [9, 10], ["outside", 90]]


def test_the_gap_between_two_recording_windows_is_not_idle() -> None:
    # window 1: 0-------20              window 2: 90-------120
    #   compute 0--10, comm 10--12        compute 100-110
    run = trace(compute(0, 10), comm(10, 12), compute(100, 110))
    run = replace(run, windows=WINDOWS.frame({"rank": [0, 0], "start_ns": [0, 90], "end_ns": [20, 120]}))
    (found,) = overlap(run, {}, Settings())[0].frame.to_dict("records")
    assert [found[name] for name in ("span_ns", "compute_ns", "exposed_ns", "idle_ns")] == [22, 20, 2, 0]


def test_a_run_without_steps_is_one_row() -> None:
    (found,) = report(compute(0, 10), comm(5, 20))["overlap_by_step"].frame.to_dict("records")
    assert (found["step"], found["span_ns"], found["note"]) == (None, 20, "no steps in the file")


def test_only_the_steps_asked_for() -> None:
    found = report(*STEPS, steps=(2, 7))
    assert found["overlap"].frame[["span_ns", "comm_ns", "exposed_ns", "idle_ns"]].to_numpy().tolist() == [[15, 13, 5, 0]]
    assert found["overlap_by_step"].frame["step"].tolist() == [2]
    assert found["overlap_by_collective"].frame[["collectives", "comm_ns"]].to_numpy().tolist() == [[2, 13]]
    assert found["exposed"].frame.query("by == 'collective'")["exposed_ns"].tolist() == [5]
    other = report(*STEPS, compute(50, 60, device=1), steps=(2, 7))
    assert other["overlap"].frame["device"].tolist() == [0]
    with pytest.raises(WrongSettings, match="steps 5-9: rank 0 has no such step; recorded are 1 to 2"):
        report(*STEPS, steps=(5, 9))


def test_streams_groups_and_kinds_stand_alone() -> None:
    found = report(
        compute(0, 10),
        copy(20, 24),
        comm(5, 15, "all_reduce", group="dp"),
        comm(5, 15, "all_gather", group="tp", stream=21),
        comm(16, 18, "all_gather", group="tp", stream=21),
        comm(30, 31, "broadcast", stream=21),
    )
    subset = ["collectives", "comm_ns", "hidden_ns", "exposed_ns"]
    streams = found["overlap_by_stream"].frame
    assert streams[["stream", "activities", "compute_ns", "copy_ns", *subset]].to_numpy().tolist() == [
        [7, 2, 10, 4, 0, 0, 0, 0],
        [20, 1, 0, 0, 1, 10, 5, 5],
        [21, 3, 0, 0, 3, 13, 5, 8],
    ]
    assert streams["note"].tolist() == ["no communication", None, None]
    groups = found["overlap_by_group"].frame
    assert groups[["group", *subset]].to_numpy().tolist() == [["dp", 1, 10, 5, 5], ["tp", 2, 12, 5, 7], [None, 1, 1, 0, 1]]
    kinds = found["overlap_by_collective"].frame
    assert kinds[["collective", *subset]].to_numpy().tolist() == [
        ["all_gather", 2, 12, 5, 7],
        ["all_reduce", 1, 10, 5, 5],
        ["broadcast", 1, 1, 0, 1],
    ]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["compute", "comm", "fused", "copy"]),
        st.integers(0, 3),  # stream
        st.integers(0, 40),  # start
        st.integers(0, 12),  # duration
        st.integers(-1, 3),  # step
        st.integers(0, 3),  # collective
    ),
    min_size=1,
    max_size=14,
)
Row = tuple[str, int, int, int, int, int]


def items(rows: list[Row], shift: int = 0) -> list[Item]:
    made = []
    for of, stream, start, duration, number, key in rows:
        span = (start + shift, start + duration + shift)
        if of == "comm":
            made.append(comm(*span, "all_reduce", stream=stream, step=number, key=f"k{key}", group=f"g{key % 2}"))
        else:
            made.append(activity(*span, of, "kernel", stream=stream, step=number, kernel_class="other"))
    return made


def cells(rows: list[Row], *classes: str) -> set[int]:
    return {cell for of, _, start, duration, _, _ in rows for cell in range(start, start + duration) if of in classes}


@settings(max_examples=60)
@given(ROWS)
def test_every_time_agrees_with_unit_cells(rows: list[Row]) -> None:
    found = row(*items(rows))
    p, q, c = cells(rows, "compute", "fused"), cells(rows, "comm", "fused"), cells(rows, "copy")
    pure, mixed = cells(rows, "comm"), cells(rows, "fused")
    low, high = min(r[2] for r in rows), max(r[2] + r[3] for r in rows)
    collectives: dict[int, set[int]] = {}
    for r in rows:
        collectives.setdefault(r[5], set()).update(cells([r], "comm"))
    deep = [cell for held in collectives.values() for cell in held]
    known = bool(pure) or not mixed
    assert (found["comm_ns"], found["hidden_ns"]) == ((len(q), len(p & q)) if known else (None, None))
    assert [
        found[name]
        for name in ("span_ns", "compute_ns", "copy_ns", "exposed_ns", "exposed_copy_ns", "idle_ns", "fused_ns", "comm_overlap_ns")
    ] == [
        high - low,
        len(p),
        len(c),
        len(q - p),
        len(c - p - q),
        high - low - len(p | q | c),
        len(mixed),
        len({cell for cell in deep if deep.count(cell) > 1}),
    ]


RANK_TABLES = ("overlap", "overlap_by_step", "overlap_by_stream", "overlap_by_group", "overlap_by_collective", "kernels", "idle")
MINE = (*RANK_TABLES, "exposed")
few = settings(max_examples=8)


@few
@given(ROWS)
def test_identity_on_every_row_and_steps_sum_to_the_run(rows: list[Row]) -> None:
    found = report(*items(rows), only=MINE)
    run, steps = found["overlap"].frame, found["overlap_by_step"].frame
    for frame in (run, steps):
        assert (frame["compute_ns"] + frame["exposed_ns"] + frame["exposed_copy_ns"] + frame["idle_ns"] == frame["span_ns"]).all()
    for name in ADDITIVE:
        if run[name].notna().all():
            assert steps[name].sum() == run[name].sum(), name
    exposed = found["exposed"].frame
    for by in exposed["by"].unique():
        assert exposed.loc[exposed["by"] == by, "exposed_ns"].sum() == run["exposed_ns"].sum(), by
    idle = found["idle"].frame
    assert idle.loc[idle["stream"].isna(), "idle_ns"].sum() == run["idle_ns"].sum()


@few
@given(ROWS, st.sampled_from([-40, 1, 1_764_500_000_000_000_001]))
def test_a_shift_in_time_changes_no_number(rows: list[Row], shift: int) -> None:
    here, there = report(*items(rows), only=RANK_TABLES), report(*items(rows, shift), only=RANK_TABLES)
    assert list(here) == list(there)
    for name in here:
        pd.testing.assert_frame_equal(here[name].frame, there[name].frame)


@few
@given(ROWS, st.integers(1, 11))
def test_a_kernel_in_two_pieces_is_the_same_time(rows: list[Row], at: int) -> None:
    halves = [
        half
        for of, s, start, d, n, k in rows
        for half in ((of, s, start, min(at, d), n, k), (of, s, start + min(at, d), d - min(at, d), n, k))
    ]
    whole, split = report(*items(rows), only=RANK_TABLES), report(*items(halves), only=RANK_TABLES)
    pd.testing.assert_frame_equal(whole["overlap"].frame, split["overlap"].frame)
    for name in ("overlap_by_group", "overlap_by_collective"):
        kept = [column for column in whole[name].frame if column != "collectives"]
        pd.testing.assert_frame_equal(whole[name].frame[kept], split[name].frame[kept])


@settings(max_examples=4)
@given(ROWS, ROWS)
def test_ranks_in_any_order_give_the_same_report(first: list[Row], second: list[Row]) -> None:
    traces = [trace(*items(rows), rank=rank, path=f"rank{rank}.json") for rank, rows in enumerate((first, second))]
    asked = Settings(only=RANK_TABLES)
    here, there = analyze(Trace.concat(traces), asked), analyze(Trace.concat(traces[::-1]), asked)
    for name in here:
        pd.testing.assert_frame_equal(here[name].frame, there[name].frame)
    alone = [analyze(t, asked)["overlap"].frame for t in traces]
    pd.testing.assert_frame_equal(here["overlap"].frame, pd.concat(alone, ignore_index=True))
