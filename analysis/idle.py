"""Why a device or a stream does nothing: it waits for the CPU, for another stream, or for launches to arrive."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import busy
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.launch_delay import Enqueued, blocked, by_thread, enqueued, launch_latency
from c3prof.analysis.rows import DEVICE, RANK, joined, placed
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import Lane, lanes
from c3prof.table import Column, Schema, Table
from c3prof.trace import CPU_DEVICE, Trace

CAUSES: Mapping[str, str] = {
    "host": "nothing ran on the device, the next activity was not enqueued, its thread was in no operator (Python, data loading)",
    "host-sync": "nothing ran, the next activity was not enqueued, its thread sat in a synchronize or wait call",
    "launch-bound": "nothing ran, its thread was busy with operators and launches; or its launch was on the way (up to the launch latency)",
    "other-stream": "the next activity was enqueued, and another stream ran",
    "kernel-gap": "the next activity was enqueued, and nothing ran: the device's own gap between kernels, or an event that holds it",
    "no-work": "the next activity was not enqueued, and another stream ran",
    "unknown": "no launch record of the next activity, or a graph replay",
}

IDLE = Schema(
    "idle",
    "Idle time by cause: of the whole device (stream null; sums to idle_ns of the run) and between the activities of each stream",
    (
        RANK,
        DEVICE,
        Column("stream", "object", "", "stream id; null for the whole device, where no stream runs"),
        Column("cause", "object", "", "; ".join(f"{cause}: {why}" for cause, why in CAUSES.items())),
        Column("gaps", "int64", "", "gaps that have such time"),
        Column("idle_ns", "int64", "ns", "idle time"),
    ),
)


class _Gaps(NamedTuple):
    """Gaps [low, high), the position in the lane of the activity that ends each, and the place in `streams` of its stream.

    streams: stream ids; only None for the gaps of the whole device.
    """

    low: Int64s
    high: Int64s
    after: Int64s
    of: Int64s
    streams: Sequence[int | None]


def idle(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table]:
    """The table idle. Each instant of a gap has one cause, so that the causes of a gap sum to it."""
    found = []
    for lane in lanes(trace, work(trace), settings):
        causes = _Causes.of(lane, trace)
        found.append(placed(lane, _summed(causes, _device_gaps(lane), lane)))
        if lane.device != CPU_DEVICE:
            found.append(placed(lane, _summed(causes, _stream_gaps(lane), lane)))
    return (Table.of(IDLE, joined(found, IDLE)),)


def _device_gaps(lane: Lane) -> _Gaps:
    start, end = lane.rows["start_ns"].to_numpy(), lane.rows["end_ns"].to_numpy()
    low, high = intervals.complement(intervals.union(start, end), *lane.run)  # empty activities may open or close the run
    by_start = np.argsort(start, kind="stable")
    return _Gaps(low, high, by_start[np.searchsorted(start[by_start], high)], np.zeros(len(low), np.int64), [None])


def _stream_gaps(lane: Lane) -> _Gaps:
    start, end, stream = (lane.rows[column].to_numpy() for column in ("start_ns", "end_ns", "stream"))
    streams = intervals.distinct(stream)
    code = np.searchsorted(streams, stream)
    key, starts, ends = intervals.union_by(code, start, end)
    same = key[1:] == key[:-1]
    low, high, of = ends[:-1][same], starts[1:][same], key[1:][same]
    # Rows are sorted by (stream, start): give that pair one number to find the activity that opens after the gap.
    rank_of = intervals.distinct(start)
    real = np.flatnonzero(start < end)
    place = code[real] * np.int64(len(rank_of)) + np.searchsorted(rank_of, start[real])
    after = real[np.searchsorted(place, of * np.int64(len(rank_of)) + np.searchsorted(rank_of, high))]
    return _Gaps(low, high, after, of, streams.tolist())


class _Causes(NamedTuple):
    """What is needed to tell why a gap of a lane is there; blocked, working: threads while nothing runs on the device."""

    when: Enqueued
    latency: int
    blocked: dict[int, Spans]
    working: dict[int, Spans]
    running: Spans

    @classmethod
    def of(cls, lane: Lane, trace: Trace) -> "_Causes":
        when = enqueued(lane, trace)
        sits, calls = blocked(trace, lane), trace.launches[["thread", "start_ns", "end_ns"]]
        ops = trace.ops.loc[trace.ops["parent"] < 0, ["thread", "start_ns", "end_ns"]]
        # Frames number their threads each for itself: the launches' numbers are the ones that `when` has.
        ops = ops.assign(thread=ops["thread"].cat.set_categories(calls["thread"].cat.categories))
        ops = ops[ops["thread"].notna()]
        busy_threads = by_thread(pd.concat([calls, ops])) if lane.device != CPU_DEVICE else {}
        working = {thread: intervals.difference(spans, sits.get(thread, intervals.EMPTY)) for thread, spans in busy_threads.items()}
        running = busy(lane.rows).anything
        sits, working = ({thread: intervals.difference(spans, running) for thread, spans in sets.items()} for sets in (sits, working))
        return cls(when, max(launch_latency(lane.rows, when) or 0, 0), sits, working, running)


def _summed(causes: _Causes, gaps: _Gaps, lane: Lane) -> pd.DataFrame:
    """A row a stream and cause with time in it."""
    row, low, high = intervals.pieces(gaps.low, gaps.high, np.concatenate([lane.asked.starts, lane.asked.ends]))
    asked = intervals.contains(lane.asked, low)
    row, low, high = row[asked], low[asked], high[asked]
    parts = _parts(causes, low, high, gaps.after[row])
    if lane.device == CPU_DEVICE:
        parts = {cause: np.zeros_like(low) for cause in CAUSES} | {"unknown": high - low}
    counts = np.zeros((len(gaps.streams), len(parts)), np.int64)
    sums = np.zeros_like(counts)
    for column, values in enumerate(parts.values()):
        np.add.at(sums[:, column], gaps.of[row], values)
        np.add.at(counts[:, column], gaps.of[intervals.distinct(row[values > 0])], 1)
    stream, cause = np.nonzero(counts)
    names = list(parts)
    return pd.DataFrame(
        {
            "cause": [names[place] for place in cause.tolist()],
            "gaps": counts[stream, cause],
            "idle_ns": sums[stream, cause],
            "stream": pd.Series([gaps.streams[place] for place in stream.tolist()], dtype=object),
        }
    )


def _parts(causes: _Causes, low: Int64s, high: Int64s, after: Int64s) -> dict[str, Int64s]:
    """For each cause how much of each gap falls to it, ns."""
    known, enqueued_ns, thread = causes.when.known[after], causes.when.time_ns[after], causes.when.thread[after]
    queued = np.where(known, np.clip(enqueued_ns, low, high), high)
    arrived = np.where(known, np.clip(enqueued_ns + causes.latency, queued, high), high)
    sits = _spent(causes.blocked, thread, low, queued)
    works = _spent(causes.working, thread, low, queued)
    elsewhere = intervals.shared_ns(low, queued, causes.running)
    others = intervals.shared_ns(arrived, high, causes.running)
    return {
        "host": np.where(known, queued - low - sits - works - elsewhere, 0),
        "host-sync": np.where(known, sits, 0),
        "launch-bound": np.where(known, works + (arrived - queued), 0),
        "other-stream": np.where(known, others, 0),
        "kernel-gap": np.where(known, high - arrived - others, 0),
        "no-work": np.where(known, elsewhere, 0),
        "unknown": np.where(known, 0, high - low),
    }


def _spent(spans: Mapping[int, Spans], thread: npt.NDArray[np.int64], low: Int64s, high: Int64s) -> Int64s:
    """How much of each [low, high) the thread beside it is inside its spans, ns."""
    spent = np.zeros(len(low), np.int64)
    for code, of_thread in spans.items():
        chosen = thread == code
        spent[chosen] = intervals.shared_ns(low[chosen], high[chosen], of_thread)
    return spent
