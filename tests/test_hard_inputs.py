"""Hard inputs from end to end: a built file, the whole analysis, the right value. Reader-only kinds are in tests/readers."""

import warnings

import pytest

import c3prof
from tests.kineto_files import annotation, document, kernel, launch, launched, memcpy, nccl, op, written


@pytest.fixture
def overlap(tmp_path):
    """The one row of `overlap` for a list of events."""

    def row(events, **top):
        report = c3prof.analyze(c3prof.load(written(tmp_path / "t.json", document(events, **top))))
        [found] = report["overlap"].frame.to_dict("records")
        assert found["compute_ns"] + found["exposed_ns"] + found["exposed_copy_ns"] + found["idle_ns"] == found["span_ns"]
        return found

    return row


def picked(row, *columns):
    return tuple(row[column] for column in columns)


# ---- times ----


def test_sub_microsecond_kernels_under_a_collective(overlap):
    # F10: 30 kernels of 1.8 µs at x.125 µs under a 60 µs all_reduce
    events = [nccl("allreduce", 100, 160), *[kernel("k", 100.125 + 2 * i, 101.925 + 2 * i) for i in range(30)]]
    assert overlap(events)["hidden_ratio"] == 0.9


def test_a_kernel_that_starts_before_its_own_launch_call(overlap):
    events = [launch(20, 25, 7), kernel("gemm", 10, 30, correlation=7), nccl("allreduce", 20, 40)]
    assert picked(overlap(events), "compute_ns", "hidden_ns", "exposed_ns") == (20_000, 10_000, 10_000)


def test_tens_of_ns_of_overlap_on_one_queue(overlap):
    events = [kernel(f"k{i}", 10 * i, 10 * i + 10.04) for i in range(10)]
    assert picked(overlap(events), "compute_ns", "idle_ns") == (100_040, 0)


def test_programmatic_dependent_launch_is_no_concurrency_between_streams(tmp_path):
    # 70 pairs on one stream, of which the second kernel starts 3 µs before the first ends
    events = []
    for i in range(70):
        at = 40 * i
        events += [kernel("gemm", at, at + 20), nccl("allreduce", at + 17, at + 30, stream=7)]
    report = c3prof.analyze(c3prof.load(written(tmp_path / "t.json", document(events))))
    [row] = report["overlap"].frame.to_dict("records")
    assert picked(row, "compute_ns", "comm_ns", "hidden_ns") == (70 * 20_000, 70 * 13_000, 70 * 3_000)
    assert report.coverage["same_stream_overlaps"] == 70
    slowdown = report["slowdown"].frame
    assert slowdown["slowdown"].isna().all()


def test_exact_ties(overlap):
    events = [kernel("a", 0, 10), kernel("b", 0, 10, stream=8), nccl("allreduce", 0, 10), nccl("allreduce", 10, 20)]
    assert picked(overlap(events), "compute_ns", "comm_ns", "hidden_ns", "exposed_ns") == (10_000, 20_000, 10_000, 10_000)


def test_ranks_with_different_bases_are_on_one_axis(tmp_path):
    # the same instant written against two bases, as when ranks start either side of a base boundary; 3 ms of true skew
    for rank, base, shift in ((0, 1_000_000_000_000_000_000, 0.0), (1, 1_000_000_000_000_000_000 + 7_000_000_000, -7_000_000.0)):
        start = 8_000_000.0 + 3_000.0 * rank + shift
        written(tmp_path / f"{rank}.json", document([nccl("allreduce", start, start + 50)], rank=rank, world_size=2, base_ns=base))
    starts = c3prof.load(tmp_path).collectives["start_ns"].tolist()
    assert starts == [1_000_000_008_000_000_000, 1_000_000_008_003_000_000]


# ---- links ----


def test_launches_and_kernels_that_miss_their_other_half_are_counted(tmp_path):
    # 50 launches of which the first 13 kernels were not recorded; 5 kernels whose launch lies before the window
    events = [launch(2 * i, 2 * i + 1, 100 + i) for i in range(50)]
    events += [kernel("k", 200 + 2 * i, 201 + 2 * i, correlation=100 + i) for i in range(13, 50)]
    events += [kernel("early", 100 + 2 * i, 101 + 2 * i, correlation=900 + i) for i in range(5)]
    coverage = c3prof.analyze(c3prof.load(written(tmp_path / "t.json", document(events)))).coverage
    assert picked(coverage, "activities", "launches_without_activity", "activities_without_launch") == (42, 13, 5)


def test_a_communication_stream_shared_with_compute(overlap):
    events = [kernel("gemm", 0, 10, stream=20), nccl("allreduce", 10, 30, stream=20), kernel("gemm", 20, 25)]
    assert picked(overlap(events), "compute_ns", "comm_ns", "hidden_ns", "exposed_ns") == (15_000, 20_000, 5_000, 15_000)


def test_everything_on_stream_zero(overlap):
    events = [kernel("gemm", 0, 10, stream=0), nccl("allreduce", 10, 30, stream=0), kernel("gemm", 30, 35, stream=0)]
    assert picked(overlap(events), "hidden_ns", "exposed_ns") == (0, 20_000)


def test_one_annotation_over_five_kernels_does_not_double_busy_time(overlap):
    cover = kernel("## forward ##", 0, 100)
    cover["cat"] = "gpu_user_annotation"
    assert overlap([cover, *[kernel("k", 20 * i, 20 * i + 10) for i in range(5)]])["compute_ns"] == 50_000


def test_kernels_that_outlive_their_step_and_steps_that_cross_operators(tmp_path):
    # step 1 ends on the CPU at 50 while its kernel runs until 130: the kernel is of step 1, its time beyond is of step 2's window
    events = [
        annotation("ProfilerStep#1", 0, 50),
        annotation("ProfilerStep#2", 50, 100),
        op("aten::mm", 40, 60),
        *launched(kernel("gemm", 60, 130), 45),
        *launched(nccl("allreduce", 100, 160), 55),
    ]
    report = c3prof.analyze(c3prof.load(written(tmp_path / "t.json", document(events))))
    rows = {row["step"]: row for row in report["overlap_by_step"].frame.to_dict("records")}
    assert set(rows) == {1, 2}
    assert picked(rows[1], "span_ns", "compute_ns", "comm_ns") == (70_000, 70_000, 30_000)
    assert picked(rows[2], "span_ns", "comm_ns", "exposed_ns") == (30_000, 30_000, 30_000)


# ---- arithmetic ----


def test_two_streams_busy_at_once_count_once(overlap):
    assert overlap([kernel("a", 0, 100), kernel("b", 50, 150, stream=8)])["compute_ns"] == 150_000


@pytest.mark.parametrize("percent", [0, 29, 31, 40, 60, 100])
def test_exposed_time_is_always_reported(overlap, percent):
    row = overlap([kernel("gemm", 0, 100), nccl("allreduce", 100 - percent, 200 - percent)])
    assert picked(row, "hidden_ns", "exposed_ns", "hidden_ratio") == (1000 * percent, 1000 * (100 - percent), percent / 100)


def test_no_communication_is_null_with_a_reason_and_no_warning(overlap):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = overlap([kernel("gemm", 0, 100), memcpy("Memcpy HtoD", 100, 120)])
    assert row["comm_ns"] == 0
    assert row["hidden_ratio"] != row["hidden_ratio"]  # NaN
    assert "no communication" in row["note"]


def test_waiting_for_peers(tmp_path):
    # rank 2 of 4 comes 8 ms late, the transfer takes 1 ms; the others' kernels are long because they wait
    for rank in range(4):
        events = []
        for step in range(8):
            at = 20_000.0 + (8_000 if rank == 2 else 0) + step * 100_000
            events += [kernel("gemm", at - 15_000, at), nccl("allreduce", at, 29_000.0 + step * 100_000, size=4, Seq=step)]
        written(tmp_path / f"{rank}.json", document(events, rank=rank, world_size=4, host_name="one"))
    report = c3prof.analyze(c3prof.load(tmp_path))
    rows = report["collectives"].frame
    last = rows[rows["seq"] == 3].sort_values("rank")
    assert last["wait_ns"].tolist() == [8e6, 8e6, 0, 8e6]
    assert last["transfer_ns"].tolist() == [1e6] * 4
    assert last["last_rank"].tolist() == [2] * 4
    assert report["stragglers"].frame["rank"].tolist() == [2]


def test_ranks_with_other_ids_and_an_extra_operator_and_a_missing_first_collective(tmp_path):
    for rank in range(2):
        kinds = ["allreduce", "_allgather_base", "allreduce", "_reduce_scatter_base", "broadcast"]
        events = [op("aten::extra", 0, 1, **{"External id": 3})] if rank else []
        for i, kind in enumerate(kinds):
            if rank and i == 0:
                continue
            at = 1000.0 * (i + 1)
            events += launched(nccl(kind, at + 10 * rank, at + 100, elements=100 * (i + 1)), at - 50 - rank)
        written(tmp_path / f"{rank}.json", document(events, rank=rank, world_size=2, host_name="one"))
    report = c3prof.analyze(c3prof.load(tmp_path))
    rows = report["collectives"].frame.sort_values(["rank", "arrival_ns"])
    matched = rows[rows["skew_ns"].notna()]
    assert matched[matched["rank"] == 0]["collective"].tolist() == ["all_gather", "all_reduce", "reduce_scatter", "broadcast"]
    assert (matched["skew_ns"] == 10_000).all()
