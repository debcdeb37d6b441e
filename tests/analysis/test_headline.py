"""The sentence that answers first, for each situation."""

import math

import pytest

from c3prof.analysis.headline import headline, percent
from c3prof.table import Column, Schema
from tests.reports import BY_STEP, OVERLAP, exposed_rows, report, run_row, table


def said(*tables):
    return headline(report(*tables))


def test_most_of_it_is_named():
    row = run_row(compute=50, comm=50, hidden=12, exposed=38, idle=12)
    found = said(table(OVERLAP, [row]), exposed_rows(("reduce_scatter", "dp", "dependency", 30), ("all_gather", "dp", "wait", 8)))
    assert found.sentence == "38 % of the run is exposed communication, most of it reduce_scatter in group dp."
    assert found.details[0] == "24 % of the communication is hidden behind compute (12 ns of 50 ns)."
    assert found.details[1].startswith("Main cause: dependency (79 % of the exposed time) – ")
    assert len(found.details) == 2


def test_the_step_is_the_measure_where_there_are_steps():
    run = run_row(compute=50, comm=30, hidden=0, exposed=30, idle=920)
    step = run_row(compute=50, comm=30, hidden=0, exposed=30, idle=20)
    outside = run_row(compute=0, comm=0, hidden=0, exposed=0, idle=900)
    found = said(table(OVERLAP, [run]), table(BY_STEP, [{**step, "step": 3}, {**outside, "step": "outside"}]))
    assert found.sentence == "30 % of the step is exposed communication."


def test_no_majority():
    row = run_row(compute=70, comm=30, hidden=0, exposed=30)
    found = said(
        table(OVERLAP, [row]),
        exposed_rows(("send_recv", None, "unknown", 12), ("all_reduce", "0", "unknown", 10), ("all_gather", "0", "unknown", 8)),
    )
    assert found.sentence == "30 % of the run is exposed communication, the largest part (40 %) send_recv."
    assert found.details == ("None of the 30 ns of communication is hidden behind compute.",)


def test_all_of_one_kind_and_one_that_is_not_named():
    row = run_row(compute=70, comm=30, hidden=0, exposed=30)
    assert said(table(OVERLAP, [row]), exposed_rows(("all_reduce", "0", "wait", 30))).sentence.endswith("all of it all_reduce in group 0.")
    assert said(table(OVERLAP, [row]), exposed_rows(("unknown", None, "wait", 30))).sentence.endswith(
        "all of it of a kind that the trace does not name."
    )


def test_all_hidden():
    found = said(table(OVERLAP, [run_row(compute=100, comm=25, hidden=25, exposed=0)]), exposed_rows())
    assert found.sentence == "All communication is hidden behind compute: 25 ns, 25 % of the run."


def test_no_communication():
    found = said(table(OVERLAP, [run_row(compute=99, comm=0, hidden=0, exposed=0, idle=1)]))
    assert found.sentence == "No communication was found; compute fills 99 % of the run, 1.0 % is idle."
    assert found.details == ()


def test_only_fused_kernels():
    row = run_row(compute=100, comm=None, hidden=None, exposed=0, fused=40)
    assert said(table(OVERLAP, [row])).sentence == (
        "Only fused kernels communicate (40 % of the run): how much of it is hidden cannot be told from a trace."
    )


def test_nothing_at_all_and_no_overlap_table():
    assert said(table(OVERLAP, [])).sentence.startswith("No device activity and no communication")
    assert headline(report()).sentence == ""


STEP_TIMES = Schema(
    "step_times",
    "",
    (Column("phase", "object", "", ""), Column("duration_ns", "int64", "ns", ""), Column("blocked_ns", "object", "ns", "")),
)


@pytest.mark.parametrize(
    ("blocked", "sentence"),
    [
        ((10, 30, None), "Steps take 100 ns (median of 3); the host waits for collectives 20 % of the step."),
        ((None, None, None), "Steps take 100 ns (median of 3); no wait for a collective was seen."),
    ],
)
def test_a_run_without_windows_tells_steps_and_waits(blocked, sentence):
    rows = [{"phase": None, "duration_ns": 100, "blocked_ns": value} for value in blocked]
    found = said(table(OVERLAP, []), table(STEP_TIMES, [*rows, {"phase": "serialized", "duration_ns": 900, "blocked_ns": 900}]))
    assert found.sentence == sentence
    assert found.details == ("No profiler window was recorded: what is hidden cannot be told, only how long the host waits.",)


def test_several_ranks_show_their_spread():
    rows = [run_row(rank, compute=90, comm=10 * rank, hidden=0, exposed=10 * rank, idle=10) for rank in (0, 1, 2)]
    found = said(table(OVERLAP, rows))
    assert found.sentence == "9.1 % of the run is exposed communication."
    assert "Over 3 ranks the exposed share of the run goes from 0.0 % (rank 0) to 17 % (rank 2)." in found.details


def test_ranks_that_pay_the_same_are_said_to():
    rows = [run_row(rank, compute=90, comm=10, hidden=0, exposed=10) for rank in (0, 1)]
    assert "The exposed share is the same on all 2 ranks." in said(table(OVERLAP, rows)).details


def test_a_group_goes_by_its_description():
    schema = Schema("overlap_by_group", "", tuple(Column(name, "object", "", "") for name in ("group", "group_desc")))
    row = run_row(compute=70, comm=30, hidden=0, exposed=30)
    for desc, words in (("dp", "dp"), (None, "3"), ("undefined", "3")):
        groups = table(schema, [{"group": "2", "group_desc": "tp"}, {"group": "3", "group_desc": desc}])
        found = said(table(OVERLAP, [row]), exposed_rows(("all_reduce", "3", "wait", 30)), groups)
        assert found.sentence.endswith(f"all of it all_reduce in group {words}.")


def test_the_straggler_that_costs_most_is_named():
    names = ("rank", "n_last", "n_collectives", "caused_wait_ns", "cause")
    schema = Schema(
        "stragglers",
        "",
        tuple(Column(name, "object" if name == "cause" else "float64" if "ns" in name else "int64", "ns", "") for name in names),
    )
    rows = [dict(zip(names, values, strict=True)) for values in ((1, 3, 9, 50.0, None), (2, 5, 9, 8_000_000.0, "compute-late"))]
    found = said(table(OVERLAP, [run_row(compute=70, comm=30, hidden=0, exposed=30)]), table(schema, rows))
    assert "The others wait for rank 2: it comes last in 5 of 9 collectives and costs them 8.00 ms (compute-late)." in found.details


def test_idle_that_costs_more_is_said():
    found = said(table(OVERLAP, [run_row(compute=20, comm=20, hidden=0, exposed=20, idle=60)]))
    assert found.details[-1] == "Idle time is larger still: 60 % of the run has nothing running on the device."


def test_a_cpu_run_says_what_compute_means():
    found = said(table(OVERLAP, [run_row(compute=80, comm=20, hidden=0, exposed=20, device="cpu")]))
    assert found.details[-1].startswith("CPU run (gloo): ")


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (38.2, 100, "38 %"),
        (9.96, 100, "10 %"),
        (4.25, 100, "4.2 %"),
        (0.01, 100, "< 0.1 %"),
        (0, 100, "0.0 %"),
        (1, 0, "an unknown share"),
        (math.nan, 1, "an unknown share"),
    ],
)
def test_percent(part, whole, text):
    assert percent(part, whole) == text
