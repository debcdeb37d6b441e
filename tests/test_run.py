"""Which files make up a run, and what the set of them lacks."""

import pytest

import c3prof
from c3prof.trace import SCHEMAS
from tests.kineto_files import annotation, document, kernel, nccl, op, written


def rank_file(folder, name, rank, world_size=4, events=None):
    events = events or [kernel("gemm", 0, 10), nccl("allreduce", 5, 12)]
    return written(folder / name, document(events, rank=rank, world_size=world_size))


def codes(trace):
    return [w.code for w in trace.warnings]


def test_missing_ranks_are_counted(tmp_path):
    for rank in (0, 1, 3):
        rank_file(tmp_path, f"{rank}.json", rank)
    trace = c3prof.load(tmp_path)
    assert trace.rank_numbers == [0, 1, 3]
    [warning] = trace.warnings
    assert (warning.code, warning.count) == ("missing-ranks", 1)
    assert "(2)" in warning.message


def test_one_of_eight(tmp_path):
    [warning] = c3prof.load(rank_file(tmp_path, "x.json", 5, 8)).warnings
    assert (warning.code, warning.count) == ("missing-ranks", 7)


def test_the_same_rank_twice_keeps_the_first(tmp_path):
    rank_file(tmp_path, "a.json", 0, 1)
    rank_file(tmp_path, "b.json", 0, 1, [kernel("other", 0, 10)])
    trace = c3prof.load(tmp_path)
    assert trace.activities["name"].tolist() == ["gemm", "ncclDevKernel_allreduce_RING_LL"]
    assert [(w.code, w.path) for w in trace.warnings] == [("duplicate-rank", "b.json")]


def test_files_without_a_rank_are_kept_apart(tmp_path):
    written(tmp_path / "a.json", [kernel("k", 0, 1)])
    written(tmp_path / "b.json", [kernel("k", 0, 2)])
    trace = c3prof.load(tmp_path)
    assert trace.rank_numbers == [-2, -1]
    assert trace.activities[["rank", "end_ns"]].to_numpy().tolist() == [[-2, 2000], [-1, 1000]]
    assert codes(trace) == ["rank-unknown"]


def test_a_coordinator_on_cpus_is_no_rank_of_a_gpu_job(tmp_path):
    rank_file(tmp_path, "0.json", 0, 2)
    rank_file(tmp_path, "1.json", 1, 2, [op("aten::mm", 0, 5), annotation("gloo:all_reduce", 2, 4, thread=2)])
    trace = c3prof.load(tmp_path)
    assert trace.rank_numbers == [0]
    assert codes(trace) == ["no-device-activity", "missing-ranks"]


def test_world_sizes_that_disagree(tmp_path):
    rank_file(tmp_path, "0.json", 0, 2)
    rank_file(tmp_path, "1.json", 1, 3)
    assert codes(c3prof.load(tmp_path)) == ["world-size", "missing-ranks"]


def test_a_broken_file_among_good_ones_is_named(tmp_path):
    rank_file(tmp_path, "0.json", 0, 2)
    written(tmp_path / "1.json", '{"traceEvents": [')
    trace = c3prof.load(tmp_path)
    assert trace.rank_numbers == [0]
    assert codes(trace) == ["missing-ranks", "unreadable"]


def test_the_order_of_files_does_not_matter(tmp_path):
    paths = [rank_file(tmp_path, f"{rank}.json", rank, 3) for rank in range(3)]
    one, other = c3prof.load(paths), c3prof.load(paths[::-1])
    for name in SCHEMAS:
        assert getattr(one, name).astype(object).equals(getattr(other, name).astype(object)), name


def test_one_rank_of_many_is_what_its_file_gives(shared_traces):
    run = c3prof.load(shared_traces / "v100_dlrm_8ranks")
    one = c3prof.load(shared_traces / "v100_dlrm_8ranks" / "rank3.json.gz")
    for name in SCHEMAS:
        mine, theirs = (getattr(trace, name).astype(object) for trace in (run.only_rank(3), one))
        assert mine.where(mine.notna(), None).equals(theirs.where(theirs.notna(), None)), name


@pytest.mark.parametrize("folder", ["v100_dlrm_8ranks", "sendrecv_128ranks"])
def test_pointers_stay_right_when_ranks_are_joined(shared_traces, folder):
    trace = c3prof.load(shared_traces / folder)
    linked = trace.activities[trace.activities["launch"] >= 0]
    launches = trace.launches.iloc[linked["launch"]]
    assert (launches["correlation"].to_numpy() == linked["correlation"].to_numpy()).all()
    assert (launches["rank"].to_numpy() == linked["rank"].to_numpy()).all()


def test_windows_of_one_rank_are_one_rank(tmp_path):
    # torch's trace handler writes a file a window; the 10 ms between them were not recorded and are not idle
    for name, at in (("a.json", 0), ("b.json", 10_000)):
        events = [kernel("gemm", at, at + 10), nccl("allreduce", at + 5, at + 12), annotation(f"ProfilerStep#{at}", at, at + 20)]
        rank_file(tmp_path, name, 0, 1, events)
    trace = c3prof.load(tmp_path)
    assert trace.warnings == ()
    assert trace.ranks["path"].tolist() == ["a.json, b.json"]
    assert trace.steps["step"].tolist() == [0, 10_000]
    [row] = c3prof.analyze(trace)["overlap"].frame.to_dict("records")
    assert (row["span_ns"], row["comm_ns"], row["hidden_ns"], row["idle_ns"]) == (24_000, 14_000, 10_000, 0)
