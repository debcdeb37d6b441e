"""CPU lanes: a thread computes while its innermost open operator is neither communication nor a wait."""

from typing import Any

import numpy as np
import pytest

from c3prof.analysis.cpu_lanes import innermost_at, innermost_pieces
from c3prof.analysis.overlap import overlap
from c3prof.analysis.settings import Settings
from c3prof.readers import load
from tests.builders import Item, annotation, gloo, op, step, trace


def row(*items: Item) -> dict[str, Any]:
    (found,) = overlap(trace(*items), {}, Settings())[0].frame.to_dict("records")
    return {str(name): value for name, value in found.items()}


def test_innermost_pieces() -> None:
    # a 0------------------20
    #     b 2----8 c 8--12  d 15--17        e 30--31 on another thread
    #       f 3-5
    ops = trace(op(0, 20, "a"), op(2, 8, "b"), op(3, 5, "f"), op(8, 12, "c"), op(15, 17, "d"), op(30, 31, "e", thread="1/2")).ops
    names = ops["name"].to_numpy()
    row_of, low, high = innermost_pieces(ops)
    assert sorted(zip(low.tolist(), high.tolist(), names[row_of].tolist(), strict=True)) == [
        (0, 2, "a"),
        (2, 3, "b"),
        (3, 5, "f"),
        (5, 8, "b"),
        (8, 12, "c"),
        (12, 15, "a"),
        (15, 17, "d"),
        (17, 20, "a"),
        (30, 31, "e"),
    ]


def test_innermost_at_an_instant() -> None:
    notes = trace(annotation(0, 20, "a"), annotation(2, 8, "b"), annotation(10, 12, "c", thread="1/2")).annotations
    found = innermost_at(notes, np.array(["1/1", "1/1", "1/1", "1/2", "1/2", "1/3"], object), np.array([1, 3, 8, 11, 12, 11]))
    assert [notes["name"][at] if at >= 0 else None for at in found.tolist()] == ["a", "b", "a", "c", None, None]


def test_a_wait_inside_an_operator_is_no_compute() -> None:
    # dispatch 0-----------------------------30      the collective runs on gloo's thread while the caller waits for it
    #          c10d 2--4  wait 6------25 mm 26--30
    # gloo            5---------25
    found = row(
        op(0, 30, "Redistribute"),
        op(2, 4, "c10d::allreduce_", is_comm=True),
        op(6, 25, "_c10d_functional::wait_tensor", is_comm=True),
        op(26, 30, "aten::mm"),
        gloo(5, 25),
    )
    assert (found["device"], found["comm_ns"], found["hidden_ns"], found["exposed_ns"]) == ("cpu", 20, 1, 19)
    assert found["compute_ns"] == 2 + 2 + 1 + 4


def test_a_hook_inside_an_operator_is_no_compute_but_the_operators_in_it_are() -> None:
    # backward 0----------------------30     FSDP waits for its all_gather in a hook: no operator tells
    #   hook        5-----------25
    #     copy           20--24
    # gloo           6-------20
    found = row(
        op(0, 30, "evaluate_function: AddmmBackward0"), annotation(5, 25, "FSDP::pre_backward"), op(20, 24, "aten::copy_"), gloo(6, 20)
    )
    assert (found["compute_ns"], found["comm_ns"], found["hidden_ns"]) == (5 + 4 + 5, 14, 0)


def test_an_annotation_around_operators_changes_nothing() -> None:
    found = row(annotation(0, 50, "forward"), op(0, 30, "aten::mm"), gloo(20, 40))
    assert (found["compute_ns"], found["hidden_ns"]) == (30, 10)


def test_copies_on_the_thread_that_serves_gloo_belong_to_the_collective() -> None:
    items = [op(0, 10, "aten::mm"), op(1, 2, "c10d::allreduce_", is_comm=True), gloo(5, 25)]
    served = [annotation(5, 25, "gloo:all_reduce", thread="1/2"), op(12, 20, "aten::copy_", thread="1/2")]
    assert row(*items, *served)["compute_ns"] == row(*items)["compute_ns"] == 9


def test_a_send_on_the_callers_thread_does_not_end_its_compute() -> None:
    found = row(op(0, 4, "c10d::send", is_comm=True), annotation(1, 20, "gloo:send"), op(5, 15, "aten::mm"), gloo(1, 20, "send"))
    assert (found["compute_ns"], found["hidden_ns"], found["exposed_ns"]) == (10, 10, 9)


def test_steps_of_a_cpu_run_are_the_ranges_of_its_markers() -> None:
    run = trace(op(0, 10, "aten::mm", step=1), gloo(5, 15, step=1), op(20, 30, "aten::mm", step=2), step(1, 0, 18), step(2, 18, 30))
    found = overlap(run, {}, Settings())[1].frame
    assert found[["step", "span_ns", "compute_ns", "exposed_ns"]].to_numpy().tolist() == [[1, 18, 10, 5], [2, 12, 10, 0]]


# README of the real traces: hidden of communication in ms, rank 0 of each.
GLOO = {"tp_2r": (2.3, 82), "ddp_2r": (20, 68), "ddp_2r_link1500mbit": (46, 107), "fsdp2_2r": (0.0, 87), "fsdp2_asyncunshard_2r": (29, 154)}


@pytest.mark.parametrize("run", GLOO)
def test_real_gloo_runs(shared_traces: Any, run: str) -> None:
    found = overlap(load(shared_traces / "gloo" / f"{run}_rank0.json.gz"), {}, Settings())[0].frame.iloc[0]
    hidden, communication = GLOO[run]
    assert found["hidden_ns"] / 1e6 == pytest.approx(hidden, abs=0.5 if hidden >= 10 else 0.05)
    assert found["comm_ns"] / 1e6 == pytest.approx(communication, abs=0.5)
