"""The export for Perfetto: exact times, counters of hidden and exposed time, slowdowns in the arguments."""

import gzip
import json
from io import BytesIO

import pandas as pd
import pytest

import c3prof
from c3prof.renderers.perfetto import chosen_ranks, overlap_edges, write_perfetto
from c3prof.table import Column, Report, Schema, Table
from tests.kineto_files import annotation, document, kernel, launched, nccl, op, written

MS = 1_000_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    #  gemm  0-10 ms, all_reduce 6-14 ms: hidden 6-10, exposed 10-14
    start = 1_700_000_000_000_000.123
    events = [annotation("ProfilerStep#1", start, start + 20_000), op("aten::mm", start + 1, start + 50, **{"Input Dims": [[8, 8]]})]
    events += launched(kernel("gemm", start + 100, start + 10_100), start + 10)
    events += launched(nccl("allreduce", start + 6_100, start + 14_100), start + 20)
    return c3prof.load(written(tmp_path_factory.mktemp("perfetto") / "t.json", document(events, rank=3)))


def exported(trace, report=None, **settings):
    file = BytesIO()
    count = write_perfetto(trace, report, file, **settings)
    events = json.loads(gzip.decompress(file.getvalue()))["traceEvents"]
    assert len(events) == count + 1
    return events


def test_spans_have_exact_times_and_what_they_are(trace):
    spans = {event["name"]: event for event in exported(trace) if event["ph"] == "X"}
    gemm, reduce = spans["gemm"], spans["ncclDevKernel_allreduce_RING_LL"]
    assert (gemm["ts"], gemm["dur"]) == (100, 10_000)
    assert (reduce["ts"], reduce["dur"]) == (6_100, 8_000)
    assert gemm["args"]["op"] == "aten::mm"
    assert gemm["args"]["input dims"] == "[[8,8]]"
    assert reduce["args"]["collective"] == "all_reduce"
    assert reduce["args"]["class"] == "comm"
    assert gemm["pid"] == reduce["pid"] != spans["aten::mm"]["pid"]


def test_counters_are_what_is_hidden_and_exposed(trace):
    counters = [(e["ts"], e["args"]["hidden"], e["args"]["exposed"]) for e in exported(trace) if e["name"] == "communication"]
    assert counters == [(100, 0, 0), (6_100, 1, 0), (10_100, 0, 1), (14_100, 0, 0)]
    total = [e["args"]["ms"] for e in exported(trace) if e["name"] == "exposed ms so far"]
    assert total[-1] == 4.0


def test_launches_are_tied_to_what_they_launched(trace):
    flows = [event for event in exported(trace) if event["ph"] in "sf"]
    assert sorted(event["id"] for event in flows if event["ph"] == "s") == sorted(event["id"] for event in flows if event["ph"] == "f")


def test_the_slowdown_stands_in_the_arguments_of_its_kernel(trace):
    columns = ("rank", "kernel", "input_dims", "co_runner", "slowdown")
    schema = Schema("slowdown", "", tuple(Column(name, "object", "", "") for name in columns))
    rows = [(3, "gemm", "[[8,8]]", "comm:all_reduce", 1.25), (3, "gemm", "[[9,9]]", "copy", 9.0), (3, "gemm", "[[8,8]]", "mixed", None)]
    table = Table(schema, pd.DataFrame(rows, columns=list(columns)))
    spans = {event["name"]: event for event in exported(trace, Report({"slowdown": table})) if event["ph"] == "X"}
    factors = {key: value for key, value in spans["gemm"]["args"].items() if key.startswith("slowdown")}
    assert factors == {"slowdown beside comm:all_reduce": 1.25}


def test_a_window_and_ranks_leave_out_the_rest(trace):
    begin = int(trace.steps["start_ns"].iloc[0])
    names = {event["name"] for event in exported(trace, window=(begin + 12 * MS, begin + 13 * MS)) if event["ph"] == "X"}
    assert names == {"ncclDevKernel_allreduce_RING_LL", "ProfilerStep#1"}
    assert [event for event in exported(trace, ranks=[7]) if event["ph"] == "X"] == []


def test_the_same_trace_gives_the_same_bytes(trace):
    one, other = BytesIO(), BytesIO()
    write_perfetto(trace, None, one)
    write_perfetto(trace, None, other)
    assert one.getvalue() == other.getvalue()


def test_edges_of_a_device_without_communication():
    frame = pd.DataFrame({"class": pd.Categorical(["compute"]), "start_ns": [0], "end_ns": [5]})
    edges, hidden, exposed = overlap_edges(frame)
    assert edges.tolist() == [0]
    assert not hidden.any()
    assert not exposed.any()
    assert len(overlap_edges(frame.iloc[:0])[0]) == 0


@pytest.mark.parametrize("text", ["x", "1-", "1-x", "1,,2"])
def test_ranks_that_are_no_numbers(text):
    with pytest.raises(ValueError, match="invalid literal"):
        chosen_ranks(text, [0, 1])
