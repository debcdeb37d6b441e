"""All ranks on one clock with their operations matched: what the analyses of ranks share."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c3prof.analysis.clock import aligned, clocks
from c3prof.matching import Matches, ProcessGroups, matches, peers, process_groups
from c3prof.table import Table
from c3prof.trace import Trace

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Joined:
    """A run whose records are matched. Every array has an element a record of trace.collectives.

    trace: on one clock; peer: global rank of the peer or root, -1 unknown; bound_ns: of the rank's clock, NaN without
    one; reference: the rank that its clock is against (records of different references cannot be compared);
    first: the record is the rank's first after its recording window opened; asked: its step is looked at.
    """

    trace: Trace
    groups: ProcessGroups
    matches: Matches
    clocks: Table
    peer: Codes
    bound_ns: Floats
    reference: Codes
    first: Mask
    asked: Mask


def joined(trace: Trace, steps: tuple[int, int] | None = None) -> Joined:
    """The Joined run of a summary Trace: groups, matches by what is recorded, clocks, and matches of send/recv by them.

    steps: first and last step that sums, fits and rankings look at; clocks and matches use every record.
    """
    world = int(trace.ranks["world_size"].max()) if len(trace.ranks) else -1
    groups = process_groups(trace.collectives, trace.groups, world)
    found = matches(trace.collectives, groups)
    clock = clocks(trace, groups, found)
    on_one_clock = aligned(trace, clock)
    if on_one_clock is not trace:
        found = matches(on_one_clock.collectives, groups)
    frame = clock.frame
    code = np.searchsorted(frame["rank"].to_numpy(), trace.collectives["rank"].to_numpy())
    known = frame["offset_ns"].notna().to_numpy()
    return Joined(
        trace=on_one_clock,
        groups=groups,
        matches=found,
        clocks=clock,
        peer=peers(trace.collectives, groups),
        bound_ns=np.where(known, frame["bound_ns"].to_numpy(), np.nan)[code],
        reference=np.where(known, frame["reference"].to_numpy(), -1 - np.arange(len(frame)))[code].astype(np.int64),
        first=first_in_window(on_one_clock),
        asked=_asked(trace, steps),
    )


def first_in_window(trace: Trace) -> Mask:
    """Records that are their rank's first after its window opened; a gap in the numbers of the steps opens one as well."""
    frame = trace.collectives
    rank, start = frame["rank"].to_numpy().astype(np.int64), frame["start_ns"].to_numpy()
    by = np.lexsort((start, rank))
    # numbers of windows grow along a rank; a record without a step is in the window of the one before it
    window = np.maximum.accumulate((_windows_opened(trace) + _step_gaps(trace))[by])
    first = np.zeros(len(frame), bool)
    first[by[(np.diff(rank[by], prepend=rank[by[:1]] - 1) != 0) | (np.diff(window, prepend=window[:1]) > 0)]] = True
    return first


def _windows_opened(trace: Trace) -> Codes:
    """For each record how many windows opened before it, of its rank and of those before."""
    frame, windows = trace.collectives, trace.windows
    rank = np.concatenate([windows["rank"].to_numpy(), frame["rank"].to_numpy()])
    time = np.concatenate([windows["start_ns"].to_numpy(), frame["start_ns"].to_numpy()])
    opens = np.arange(len(rank)) < len(windows)
    by = np.lexsort((~opens, time, rank))
    count = np.empty(len(rank), np.int64)
    count[by] = np.cumsum(opens[by])
    return count[len(windows) :]


def _step_gaps(trace: Trace) -> Codes:
    """For each record how many gaps in the numbers of the steps come before its step, of its rank and of those before."""
    frame, steps = trace.collectives, trace.steps
    if not len(steps):
        return np.zeros(len(frame), np.int64)
    rank, step = frame["rank"].to_numpy().astype(np.int64), frame["step"].to_numpy()
    step_rank, number = steps["rank"].to_numpy().astype(np.int64), steps["step"].to_numpy()
    gap = (np.diff(step_rank, prepend=step_rank[0]) == 0) & (np.diff(number, prepend=number[0]) > 1)
    span = int(max(number.max(), step.max(initial=0))) + 2
    at = np.searchsorted(step_rank * span + number, rank * span + step, side="right") - 1
    return np.where(step >= 0, np.cumsum(gap)[np.maximum(at, 0)], 0)


def _asked(trace: Trace, steps: tuple[int, int] | None) -> Mask:
    step = trace.collectives["step"].to_numpy()
    return np.ones(len(step), bool) if steps is None else (step >= steps[0]) & (step <= steps[1])
