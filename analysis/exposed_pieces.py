"""Exposed instants of each collective and their cause, as one rank alone can tell it (docs/metrics.md §2).

The exposed instants Q - P are cut into elementary intervals at every boundary; each is split over the collectives that
run in it, and has one cause.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import busy, class_masks, collective_keys
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.launch_delay import Enqueued, blocked, enqueued, inside, launch_latency
from c3prof.analysis.rows import RANK
from c3prof.analysis.steps import Lane, step_at
from c3prof.kernels import COMM, COMPUTE, FUSED
from c3prof.table import Column, Schema
from c3prof.trace import CPU_DEVICE, NONE, Trace

CAUSES = ("wait", "late-launch", "dependency", "host", "host-sync", "no-work", "unknown")
WAIT, LATE_LAUNCH, DEPENDENCY, HOST, HOST_SYNC, NO_WORK, CAUSE_UNKNOWN = CAUSES

PIECES = Schema(
    "_exposed_pieces",
    "Exposed time of each collective in elementary intervals, sorted by rank, device, start",
    (
        RANK,
        Column("device", "int32", "", "device, -1 for CPU threads"),
        Column("collective_id", "int64", "", "row in Trace.collectives of that rank alone, -1 for none"),
        Column("step", "int64", "", "step whose window holds it, -1 for none"),
        Column("cause", "category", "", "cause as one rank alone can tell it"),
        Column("start_ns", "int64", "ns", "start of the interval"),
        Column("end_ns", "int64", "ns", "end of the interval"),
        Column("exposed_ns", "int64", "ns", "share of the interval that falls to the collective"),
    ),
)


class _Next(NamedTuple):
    """The compute that follows each exposed instant: is there any, is its launch known, when and by whom enqueued."""

    exists: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    time_ns: Int64s
    thread: Int64s


def exposed_pieces(lane: Lane, trace: Trace) -> pd.DataFrame:
    """The rows of PIECES of one lane."""
    now, when = busy(lane.rows), enqueued(lane, trace)
    gaps = intervals.intersection(intervals.difference(now.q, now.p), lane.asked)
    comm = np.flatnonzero(class_masks(lane.rows)[COMM])
    start, end = lane.rows["start_ns"].to_numpy()[comm], lane.rows["end_ns"].to_numpy()[comm]
    key, low, high = intervals.union_by(collective_keys(lane.rows)[comm], start, end)
    waiting = blocked(trace, lane)
    nexts = _next_compute(lane, when, gaps.ends)
    cuts = [
        low,
        high,
        lane.steps.starts,
        lane.steps.ends,
        nexts.time_ns[nexts.known],
        *(np.concatenate(spans) for spans in waiting.values()),
    ]
    _, starts, ends = intervals.pieces(gaps.starts, gaps.ends, np.concatenate(cuts))
    place, of = _pairs(starts, ends, low, high)
    shares = _shares(starts, ends, place, key[of], low[of])
    cause = _causes(lane, when, (starts, ends), waiting)[place]
    cause[np.isin(key, _launched_late(lane, when))[of]] = CAUSES.index(LATE_LAUNCH)
    return pd.DataFrame(
        {
            "rank": np.int32(lane.rank),
            "device": np.int32(lane.device),
            "collective_id": np.where(key[of] >= 0, key[of], NONE),
            "step": step_at(lane.steps, starts)[place],
            "cause": pd.Categorical.from_codes(cause, categories=pd.Index(CAUSES, dtype=object)),
            "start_ns": starts[place],
            "end_ns": ends[place],
            "exposed_ns": shares,
        }
    )


def _pairs(starts: Int64s, ends: Int64s, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """(interval, span) for every elementary interval that lies in a span [low, high) of a collective."""
    first = np.searchsorted(starts, low, side="left")
    count = np.maximum(np.searchsorted(ends, high, side="right") - first, 0)
    of = np.repeat(np.arange(len(low)), count)
    place = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
    order = np.argsort(place, kind="stable")
    return place[order], of[order]


def _shares(starts: Int64s, ends: Int64s, place: Int64s, key: Int64s, begun: Int64s) -> Int64s:
    """Share of each pair: the interval by integer division, the remainder to the collective that started first."""
    running = np.bincount(place, minlength=len(starts))
    length = ends - starts
    shares = (length // np.maximum(running, 1))[place]
    _, number = np.unique(key, return_inverse=True)
    start_of = np.full(int(number.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(start_of, number, begun)
    order = np.lexsort((number, start_of[number], place))
    first = order[np.concatenate(([True], place[order][1:] != place[order][:-1]))] if len(order) else order
    shares[first] += (length % np.maximum(running, 1))[place[first]]
    return shares


def _next_compute(lane: Lane, when: Enqueued, instants: Int64s) -> _Next:
    """The first compute or fused activity that starts at or after each instant."""
    of = class_masks(lane.rows)
    start, end = lane.rows["start_ns"].to_numpy(), lane.rows["end_ns"].to_numpy()
    rows = np.flatnonzero((of[COMPUTE] | of[FUSED]) & (end > start))
    rows = rows[np.argsort(start[rows], kind="stable")]
    at = np.searchsorted(start[rows], instants, side="left")
    last = int(lane.asked.ends[-1]) if len(lane.asked.ends) else lane.run[1]
    row = np.append(rows, 0)[at]
    exists = (at < len(rows)) & (start[row] < last)
    return _Next(exists, exists & when.known[row], when.time_ns[row], when.thread[row])


def _causes(lane: Lane, when: Enqueued, span: tuple[Int64s, Int64s], waiting: dict[int, Spans]) -> npt.NDArray[Any]:
    """Code in CAUSES of the cause of each elementary interval; late-launch and wait belong to collectives."""
    starts, ends = span
    after = _next_compute(lane, when, ends)
    sits = inside(waiting, after.thread, starts)
    return np.select(
        [~after.exists, ~after.known, starts >= after.time_ns, sits],
        [CAUSES.index(cause) for cause in (NO_WORK, CAUSE_UNKNOWN, DEPENDENCY, HOST_SYNC)],
        CAUSES.index(HOST),
    )


def _launched_late(lane: Lane, when: Enqueued) -> Int64s:
    """Collectives (keys) that started within the launch latency of their launch call."""
    latency = launch_latency(lane.rows, when)
    comm = np.flatnonzero(class_masks(lane.rows)[COMM] & when.known)
    if latency is None or lane.device == CPU_DEVICE:
        return np.zeros(0, np.int64)
    key = collective_keys(lane.rows)[comm]
    start = lane.rows["start_ns"].to_numpy()[comm]
    order = np.lexsort((start, key))
    first = order[np.concatenate(([True], key[order][1:] != key[order][:-1]))] if len(order) else order
    return key[first[(start - when.time_ns[comm])[first] <= latency]]
