"""When the CPU had enqueued each activity, and how long an activity then takes to start (launch delay)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.steps import Lane
from c3prof.kernels import is_wait_op
from c3prof.trace import CPU_DEVICE, Trace


class Enqueued(NamedTuple):
    """Per activity of a lane: end of the call that enqueued it (ns), whether that is known, and the thread (-1 unknown).

    Not known without a launch record and in a graph replay, where one call stands for many activities. Work of a CPU
    lane is enqueued when it starts, by its own thread.
    """

    time_ns: Int64s
    known: npt.NDArray[np.bool_]
    thread: Int64s


def enqueued(lane: Lane, trace: Trace) -> Enqueued:
    """When each activity of the lane was enqueued."""
    rows, launches = lane.rows, trace.launches
    if lane.device == CPU_DEVICE:
        return Enqueued(rows["start_ns"].to_numpy(), np.ones(len(rows), bool), rows["stream"].to_numpy())
    launch = rows["launch"].to_numpy()
    known = launch >= 0
    if not len(launches):
        return Enqueued(np.zeros(len(rows), np.int64), np.zeros(len(rows), bool), np.full(len(rows), -1))
    at = np.maximum(launch, 0)
    names = launches["name"].cat
    replays = np.array([*("GraphLaunch" in str(name) for name in names.categories), False], bool)[names.codes.to_numpy()]
    known &= ~replays[at] & (rows["graph"].to_numpy() <= 0)
    thread = launches["thread"].cat.codes.to_numpy().astype(np.int64)[at]
    return Enqueued(launches["end_ns"].to_numpy()[at], known, np.where(known, thread, -1))


def launch_latency(rows: pd.DataFrame, when: Enqueued) -> int | None:
    """Median of start - launch end over the activities that found their stream idle, ns; None without any."""
    start, end, stream = (rows[column].to_numpy() for column in ("start_ns", "end_ns", "stream"))
    follows = np.concatenate(([False], stream[1:] == stream[:-1]))
    before = np.concatenate((start[:1], end[:-1]))
    found_idle = when.known & (~follows | (before <= when.time_ns))
    return int(np.median((start - when.time_ns)[found_idle])) if found_idle.any() else None


def blocked(trace: Trace, lane: Lane) -> dict[int, Spans]:
    """When each thread (code of the launches' threads; of the ops' on a CPU lane) sat in a call that waits."""
    if lane.device == CPU_DEVICE:
        waits = np.array([*(is_wait_op(str(name)) for name in trace.ops["name"].cat.categories), False], bool)
        calls = trace.ops[waits[trace.ops["name"].cat.codes.to_numpy()]]
    else:
        calls = trace.launches[trace.launches["blocking"].to_numpy()]
    return by_thread(calls)


def by_thread(calls: pd.DataFrame) -> dict[int, Spans]:
    """The instants in which each thread, by its code, is inside one of the calls."""
    code, start, end = intervals.union_by(calls["thread"].cat.codes.to_numpy(), calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    return {int(thread): Spans(start[code == thread], end[code == thread]) for thread in intervals.distinct(code).tolist()}


def inside(spans: dict[int, Spans], thread: Int64s, instants: Int64s) -> npt.NDArray[np.bool_]:
    """Whether the thread beside each instant is in one of its spans then."""
    result = np.zeros(len(instants), bool)
    for code, of_thread in spans.items():
        asked = thread == code
        result[asked] = intervals.contains(of_thread, instants[asked])
    return result
