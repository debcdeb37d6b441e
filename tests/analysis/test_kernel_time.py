"""Device time by kernel class and kernel, by hand."""

from c3prof.analysis.kernel_time import kernel_time
from c3prof.analysis.settings import Settings
from tests.builders import comm, compute, copy, fused, gloo, op, trace

ITEMS = (
    # compute a 0----10  a 12--17      b 20--30 (stream 8: b 22-----------40)
    # comm          5--------15                                      38--42
    compute(0, 10, "a"),
    compute(12, 17, "a"),
    compute(20, 30, "b", kernel_class="norm"),
    compute(22, 40, "b", kernel_class="norm", stream=8),
    comm(5, 15),
    comm(38, 42),
    copy(39, 41, stream=9),
)


def test_classes() -> None:
    frame = kernel_time(trace(*ITEMS), {}, Settings())[0].frame
    rows = frame[frame["by"] == "class"].drop(columns=["rank", "device", "by", "kernel"])
    assert rows.to_numpy().tolist() == [
        # class, kernel class, count, total, busy, median, share, overlapped, ratio
        ["compute", "norm", 2, 28, 20, 14.0, 28 / 59, 2, 2 / 28],
        ["compute", "gemm", 2, 15, 15, 7.5, 15 / 59, 8, 8 / 15],
        ["comm", "all_reduce", 2, 14, 14, 7.0, 14 / 59, 10, 10 / 14],
        ["copy", "memory", 1, 2, 2, 2.0, 2 / 59, 1, 1 / 2],
    ]


def test_longest_kernels() -> None:
    frame = kernel_time(trace(*ITEMS), {}, Settings(top=2))[0].frame
    rows = frame.loc[frame["by"] == "kernel", ["kernel", "count", "total_ns", "busy_ns"]]
    assert rows.to_numpy().tolist() == [["b", 2, 28, 20], ["a", 2, 15, 15]]


def test_a_fused_kernel_shares_its_time_with_itself() -> None:
    frame = kernel_time(trace(fused(0, 10)), {}, Settings())[0].frame
    assert frame.loc[frame["by"] == "class", ["class", "total_ns", "overlapped_ns"]].to_numpy().tolist() == [["fused", 10, 10]]


def test_operators_of_a_cpu_run_count_whole_with_the_time_that_is_their_own() -> None:
    run = trace(op(0, 20, "aten::linear"), op(5, 8, "aten::t"), op(30, 34, "aten::t"), gloo(2, 12))
    frame = kernel_time(run, {}, Settings())[0].frame
    rows = frame.loc[frame["by"] == "kernel", ["class", "kernel_class", "kernel", "count", "total_ns", "median_ns", "overlapped_ns"]]
    assert rows.to_numpy().tolist() == [
        ["compute", "gemm", "aten::linear", 1, 17, 17.0, 7],
        ["comm", "all_reduce", "all_reduce", 1, 10, 10.0, 10],
        ["compute", "other", "aten::t", 2, 7, 3.5, 3],
    ]
