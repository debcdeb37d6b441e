"""When each step ran on a device (docs/metrics.md §2, Steps), and which part of a run the user asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import computing
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.settings import Settings
from c3prof.errors import WrongSettings
from c3prof.records import SERIALIZED
from c3prof.trace import CPU_DEVICE, NONE, Trace

_LATE = np.iinfo(np.int64).max


class StepWindows(NamedTuple):
    """Windows [starts, ends) of the steps of one device, in order of step; a step without time of its own is empty."""

    steps: Int64s
    starts: Int64s
    ends: Int64s


class Lane(NamedTuple):
    """The work of one device (or of the CPU threads) of one rank, its window and its steps.

    rows: activities, sorted by stream and start; run: window [low, high) of the run; steps: windows of the steps that
    were asked for;
    asked: the instants that the tables are about, the run or the steps asked for.
    """

    rank: int
    device: int
    rows: pd.DataFrame
    run: tuple[int, int]
    steps: StepWindows
    asked: Spans

    @property
    def label(self) -> int | str:
        """The device as tables write it."""
        return "cpu" if self.device == CPU_DEVICE else self.device


def lanes(trace: Trace, work: pd.DataFrame, settings: Settings) -> Iterator[Lane]:
    """A Lane for each rank and device of the work, in order; without devices that have none of the steps asked for.

    WrongSettings when steps are asked for that no device of a rank has.
    """
    if not len(work):
        return
    rank, device = work["rank"].to_numpy(), work["device"].to_numpy()
    recorded: dict[int, list[int]] = {}
    begins = np.flatnonzero(np.concatenate(([True], (rank[1:] != rank[:-1]) | (device[1:] != device[:-1]))))
    for low, high in zip(begins.tolist(), [*begins[1:].tolist(), len(work)], strict=True):
        rows = work.iloc[low:high] if len(begins) > 1 else work
        run = int(rows["start_ns"].min()), int(rows["end_ns"].max())
        steps = step_windows(rows) if device[low] != CPU_DEVICE else cpu_windows(trace, int(rank[low]), run)
        if settings.steps:
            recorded.setdefault(int(rank[low]), []).extend(steps.steps.tolist())
            steps = _asked_for(steps, settings.steps)
            if not len(steps.steps):
                continue
            asked = intervals.union(steps.starts, steps.ends)
        else:
            steps, asked = _unforced(trace, int(rank[low]), steps, recorded_spans(trace, rows, run))
        yield Lane(int(rank[low]), int(device[low]), rows, run, steps, asked)
    if settings.steps:
        _check(recorded, settings.steps)


def _unforced(trace: Trace, rank: int, steps: StepWindows, recorded: Spans) -> tuple[StepWindows, Spans]:
    """Steps and instants without the serialized steps of calibration: there the profiler made communication wait."""
    marks = trace.steps[(trace.steps["rank"] == rank) & (trace.steps["phase"] == SERIALIZED)]
    forced = np.isin(steps.steps, marks["step"].to_numpy())
    held_up = intervals.union(steps.starts[forced], steps.ends[forced])
    return StepWindows(*(column[~forced] for column in steps)), intervals.difference(recorded, held_up)


def recorded_spans(trace: Trace, rows: pd.DataFrame, run: tuple[int, int]) -> Spans:
    """The instants of the run that a profiler recorded: all of it, or without the gaps between its windows.

    A window reaches from the first start to the last end of the activities that lie before the next window opens.
    """
    opens = trace.windows["start_ns"].to_numpy()[trace.windows["rank"].to_numpy() == rows["rank"].iloc[0]][1:]
    start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    window = np.searchsorted(opens, start, side="right")
    low, high = np.full(len(opens) + 1, run[1], np.int64), np.full(len(opens) + 1, run[0], np.int64)
    np.minimum.at(low, window, start)
    np.maximum.at(high, window, end)
    return intervals.union(low, high)


def step_windows(rows: pd.DataFrame) -> StepWindows:
    """The windows of the steps of one device from its activities.

    start(N) = max(first start of N, last end of N-1 on the main stream), the stream with most compute; a window ends
    where the next one starts, the last one, and one whose successor was not recorded, at the last end of its members.
    """
    rows = rows[rows["step"] != NONE]
    if not len(rows):
        return StepWindows(*intervals.EMPTY, intervals.EMPTY.starts)
    steps = intervals.distinct(rows["step"].to_numpy())
    place = np.searchsorted(steps, rows["step"].to_numpy())
    start, end, main = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), rows["stream"].to_numpy() == main_stream(rows)
    begun, last, main_end = (np.full(len(steps), bound, np.int64) for bound in (_LATE, -_LATE, -_LATE))
    np.minimum.at(begun, place, start)
    np.maximum.at(last, place, end)
    np.maximum.at(main_end, place[main], end[main])
    follows = steps[1:] == steps[:-1] + 1
    starts = begun.copy()
    starts[1:] = np.where(follows, np.maximum(begun[1:], main_end[:-1]), begun[1:])
    starts = np.maximum.accumulate(starts)
    ends = last.copy()
    ends[:-1] = np.where(follows, starts[1:], np.minimum(last[:-1], starts[1:]))
    return StepWindows(steps, starts, np.maximum(ends, starts))


def step_at(windows: StepWindows, instants: Int64s) -> Int64s:
    """The step whose window holds each instant, -1 for none."""
    steps, starts, ends = windows
    if not len(steps):
        return np.full(len(instants), NONE, np.int64)
    at = np.searchsorted(starts, instants, side="right") - 1
    return np.where((at >= 0) & (instants < ends[at]), steps[at], NONE)


def cpu_windows(trace: Trace, rank: int, run: tuple[int, int]) -> StepWindows:
    """The windows of the steps on CPU lanes: the ranges of the step markers, inside the run."""
    marks = trace.steps[trace.steps["rank"] == rank]
    starts, ends = (np.clip(marks[column].to_numpy(), *run) for column in ("start_ns", "end_ns"))
    starts = np.maximum.accumulate(starts) if len(starts) else starts
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return StepWindows(marks["step"].to_numpy(), starts, np.maximum(ends, starts))


def main_stream(rows: pd.DataFrame) -> int:
    """The stream with most time in compute and fused kernels; the lowest of equals, and the first of all without any."""
    busy = np.where(computing(rows), rows["end_ns"].to_numpy() - rows["start_ns"].to_numpy(), 0)
    streams = intervals.distinct(rows["stream"].to_numpy())
    place = np.searchsorted(streams, rows["stream"].to_numpy())
    total = np.zeros(len(streams), np.int64)
    np.add.at(total, place, busy)
    return int(streams[np.argmax(total)])


def _asked_for(windows: StepWindows, asked: tuple[int, int]) -> StepWindows:
    wanted = (windows.steps >= asked[0]) & (windows.steps <= asked[1])
    return StepWindows(windows.steps[wanted], windows.starts[wanted], windows.ends[wanted])


def _check(recorded: Mapping[int, Sequence[int]], asked: tuple[int, int]) -> None:
    """WrongSettings for a rank that has recorded none of the steps asked for on any device."""
    low, high = asked
    for rank, steps in recorded.items():
        if not any(low <= step <= high for step in steps):
            seen = f"{min(steps)} to {max(steps)}" if steps else "none"
            raise WrongSettings(f"steps {low}-{high}: rank {rank} has no such step; recorded are {seen}")
