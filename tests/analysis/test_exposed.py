"""What exposed communication falls to, and why no compute ran: drawn cases, rows of one value of `by` at a time."""

from typing import Any

import numpy as np
import pytest

from c3prof.analysis.exposed import attributed, exposed
from c3prof.analysis.settings import Settings
from c3prof.table import Table
from tests.builders import Item, annotation, call, comm, compute, fused, gloo, op, step, trace


def table(*items: Item) -> Table:
    return exposed(trace(*items), {}, Settings())[0]


def rows(found: Table, by: str, *columns: str) -> list[list[Any]]:
    frame = found.frame
    return frame.loc[frame["by"] == by, [*columns, "exposed_ns"]].to_numpy().tolist()


def causes(*items: Item) -> dict[str, int]:
    return {cause: int(ns) for cause, ns in rows(table(*items), "cause", "cause")}


def test_an_instant_is_split_over_the_collectives_that_run_in_it() -> None:
    # a 0--------10       alone 0-3, with b 3-10 (7 ns: 3 each, the odd one to a, which started first), b alone 10-13
    # b    3--------13
    found = table(comm(0, 10, "all_gather", group="tp"), comm(3, 13, "all_reduce", group="dp", stream=21))
    assert rows(found, "collective", "collective") == [["all_gather", 7], ["all_reduce", 6]]
    assert rows(found, "group", "group") == [["tp", 7], ["dp", 6]]


def test_two_kernels_of_one_collective_count_once() -> None:
    found = table(comm(0, 10, "all_gather", key="a"), comm(0, 10, "all_gather", key="a", stream=21), comm(0, 10, "all_reduce", stream=22))
    assert rows(found, "collective", "collective") == [["all_gather", 5], ["all_reduce", 5]]


def test_compute_and_fused_kernels_hide() -> None:
    found = table(comm(0, 10), compute(2, 4), fused(6, 9))
    assert rows(found, "collective", "collective") == [["all_reduce", 5]]


def test_steps_and_what_lies_outside() -> None:
    items = [compute(0, 10, step=1), comm(10, 18, step=1), compute(20, 30, step=2), comm(29, 40), step(1, 0, 1), step(2, 1, 2)]
    assert rows(table(*items), "step", "step") == [["outside", 10], [1, 8]]
    assert rows(table(comm(0, 5)), "step", "step") == [[None, 5]]


def test_the_launching_operator_and_annotation() -> None:
    # ops: my_module holds c10d::allreduce_ holds record_param_comms (row 2), which launched the collective
    found = table(
        op(0, 9, "my_module"),
        op(1, 8, "c10d::allreduce_", is_comm=True),
        op(2, 7, "record_param_comms", is_comm=True),
        annotation(0, 9, "backward"),
        annotation(1, 8, "nccl:all_reduce"),
        comm(20, 30, op=2),
        comm(40, 41),
    )
    assert rows(found, "op", "op") == [["my_module", 10], [None, 1]]
    assert rows(found, "annotation", "op") == [["backward", 10], [None, 1]]
    assert rows(found, "combination", "collective", "op", "cause") == [
        ["all_reduce", "my_module", "no-work", 10],
        ["all_reduce", None, "no-work", 1],
    ]


def test_without_a_compute_operator_around_it_the_outermost_communication_operator_is_named() -> None:
    found = table(op(0, 9, "c10d::allreduce_", is_comm=True), op(1, 8, "record_param_comms", is_comm=True), comm(20, 30, op=1))
    assert rows(found, "op", "op") == [["c10d::allreduce_", 10]]


# The stream of the compute kernels is found idle with a latency of 10: what starts later than that after its launch is
# not late.
LATENCY = [compute(10, 11, launched=0, stream=30), compute(110, 111, launched=100, stream=31), compute(210, 211, launched=200, stream=32)]


def test_dependency_the_next_compute_was_enqueued_before() -> None:
    assert causes(*LATENCY, comm(300, 400, launched=220), compute(400, 500, launched=250)) == {"dependency": 100}


def test_host_the_next_compute_was_enqueued_later() -> None:
    # enqueued at 360: until then the host is behind, afterwards it is the collective that is waited for
    assert causes(*LATENCY, comm(300, 400, launched=220), compute(400, 500, launched=360)) == {"host": 60, "dependency": 40}


def test_host_sync_while_the_thread_sits_in_a_synchronize_call() -> None:
    items = [*LATENCY, comm(300, 400, launched=220), compute(400, 500, launched=360)]
    assert causes(*items, call(310, 350)) == {"host-sync": 40, "dependency": 40, "host": 20}
    assert causes(*items, call(310, 350, thread="1/9")) == {"host": 60, "dependency": 40}


def test_late_launch_the_collective_started_as_soon_as_it_was_launched() -> None:
    assert causes(*LATENCY, comm(300, 400, launched=295), compute(400, 500, launched=360)) == {"late-launch": 100}


def test_no_work_nothing_follows() -> None:
    assert causes(*LATENCY, comm(300, 400, launched=220)) == {"no-work": 100}


def test_unknown_without_launch_records_and_in_graph_replays() -> None:
    assert causes(comm(0, 10), compute(10, 20)) == {"unknown": 10}
    assert causes(*LATENCY, comm(300, 400, launched=220), compute(400, 500, launched=250, graph=3)) == {"unknown": 100}


def test_a_cpu_lane_waits_for_the_host() -> None:
    items = [op(0, 10, "aten::mm"), op(30, 40, "aten::mm"), op(12, 20, "_c10d_functional::wait_tensor", is_comm=True), gloo(5, 30)]
    assert causes(*items) == {"host": 12, "host-sync": 8}


@pytest.mark.parametrize(("arrival", "waited"), [(-1, 0), (0, 0), (40, 40), (100, 100), (500, 100)])
def test_waiting_for_the_last_rank_is_cut_out_once_its_arrival_is_known(arrival: int, waited: int) -> None:
    run = trace(*LATENCY, comm(300, 400, launched=220), compute(400, 500, launched=360), comm(600, 650))
    alone, pieces, by_whom = exposed(run, {}, Settings())
    unknown = np.iinfo(np.int64).min
    found = attributed(pieces.frame, run.collectives, by_whom.frame, np.array([300 + arrival if arrival >= 0 else unknown, unknown]))
    of_cause = {cause: int(ns) for cause, ns in rows(found, "cause", "cause")}
    assert of_cause.get("wait", 0) == waited
    for by in ("combination", "collective", "group", "step", "op", "annotation", "cause"):
        assert sum(int(row[-1]) for row in rows(found, by)) == 150
    if arrival < 0:
        assert found.frame.equals(alone.frame)
