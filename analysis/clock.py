"""One clock for all ranks: offset and drift of each, from the ends of synchronizing collectives, which end together.

Trace → Trace (`aligned`) and the table `clocks`. The lowest rank is the reference. Process groups are visited one
after another, each tying new ranks to those already known, so that ranks without a common group are tied through others.
Ranks of one host share a clock: their offset is one, unless the ends say that the host's name lies.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock_fit import FEW, STANDARD_ERRORS, Ends, Lines, common_clock, medians
from c3prof.matching import Matches, ProcessGroups
from c3prof.table import Column, Schema, Table
from c3prof.trace import NONE, Trace
from c3prof.units import NS_PER_MS, NS_PER_US

SYNCHRONIZING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Collectives that no rank leaves before the last one came, so that they end everywhere at once."""

_SOME = 3
"""Fewer ends than this say nothing of their scatter."""

COARSEST_TICK_NS = NS_PER_US
"""A timer is at least this fine; a larger common divisor of a file's times is chance among few events."""

CLOCKS = Schema(
    "clocks",
    "Clock of each rank against a reference rank's",
    (
        Column("rank", "int32", "", "global rank"),
        Column(
            "offset_ns", "float64", "ns", "clock of the rank minus reference clock at the middle of the run; null when nothing ties them"
        ),
        Column("drift_ppm", "float64", "ppm", "how much faster it runs; 0 unless it exceeds 5 standard errors"),
        Column("bound_ns", "float64", "ns", "the offset is right within this, over the whole window of the rank"),
        Column("reference", "int32", "", "rank that the offset is against: the lowest of those tied together by common ends or hosts"),
        Column("common_ends", "int64", "", "synchronizing collectives whose ends were compared"),
        Column("scatter_ns", "float64", "ns", "robust standard deviation of those ends around the fit; null without"),
        Column("note", "object", "", "why there is no offset, or what it rests on"),
    ),
)

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def clocks(trace: Trace, groups: ProcessGroups, matches: Matches) -> Table:
    """Table `clocks`, a row a rank.

    A rank's line offset + drift · (t − middle) minimizes the distance of its ends from the median end of each operation.
    bound_ns = 4 standard errors at its farthest record + the timer's tick; of a drift too small to be told from 0,
    and of one unknown (50 ppm), what it may have moved since the nearest common end is added. One or two ends do not
    show how well ends agree: then the bound is the duration of a collective.
    """
    numbers = np.array(trace.rank_numbers, np.int64)
    frame = trace.collectives
    rows = np.flatnonzero(frame["collective"].isin(SYNCHRONIZING).to_numpy() & (matches.ranks > 1))
    rank = np.searchsorted(numbers, frame["rank"].to_numpy()[rows])
    origin = middle(trace)
    ends = Ends(groups.code[rows], matches.operation[rows], rank, (frame["end_ns"].to_numpy()[rows] - origin).astype(np.float64))
    host = _hosts(trace, numbers)
    lines = common_clock(ends, host)
    duration = (frame["end_ns"].to_numpy() - frame["start_ns"].to_numpy())[rows].astype(np.float64)
    lasting = medians(rank, duration, len(numbers))
    tied = lines.reference != np.arange(len(numbers))
    lines.error[tied & (lines.n < _SOME)] = (lasting / STANDARD_ERRORS)[tied & (lines.n < _SOME)]
    notes = _one_clock_a_host(lines, host, lasting)
    bound = _bounds(lines, ends, trace, numbers, origin)
    data = {
        "rank": numbers,
        "offset_ns": lines.offset,
        "drift_ppm": lines.drift * 1e6,
        "bound_ns": bound,
        "reference": numbers[lines.reference] if len(numbers) else numbers,
        "common_ends": lines.n,
        "scatter_ns": lines.scatter,
        "note": notes,
    }
    return Table.of(CLOCKS, data)


def aligned(trace: Trace, clocks: Table) -> Trace:
    """The same Trace with all times on the reference clock; ranks without an offset stay as they are.

    t → middle + (t − middle − offset) / (1 + drift), rounded to the nearest ns.
    """
    table = clocks.frame
    offset = np.rint(table["offset_ns"].fillna(0.0).to_numpy()).astype(np.int64)
    drift = table["drift_ppm"].fillna(0.0).to_numpy() * 1e-6
    if not offset.any() and not drift.any():
        return trace
    ranks, origin = table["rank"].to_numpy(), middle(trace)

    def moved(frame: pd.DataFrame) -> pd.DataFrame:
        code = np.searchsorted(ranks, frame["rank"].to_numpy())
        result = {}
        for column in (c for c in _TIMES if c in frame and len(frame)):
            time = frame[column].to_numpy()
            lag = time - origin - offset[code]
            shifted = time - offset[code] - np.rint(lag * (drift / (1 + drift))[code]).astype(np.int64)
            result[column] = np.where(time == NONE, NONE, shifted) if column in _MAY_LACK else shifted
        return frame.assign(**result)

    return replace(trace, **{name: moved(getattr(trace, name)) for name in _TIMED})


_TIMES = ("start_ns", "end_ns", "at_ns", "launch_end_ns", "wait_start_ns")
_MAY_LACK = ("launch_end_ns", "wait_start_ns")
_TIMED = ("activities", "launches", "ops", "annotations", "device_annotations", "collectives", "steps", "counters", "windows")


def middle(trace: Trace) -> int:
    """The time at which offsets hold: half way through the collectives of the reference rank."""
    frame = trace.collectives
    end = frame["end_ns"].to_numpy()[(frame["rank"] == min(trace.rank_numbers, default=0)).to_numpy()]
    return (int(end.min()) + int(end.max())) // 2 if len(end) else 0


def _hosts(trace: Trace, numbers: Codes) -> Codes:
    """Host code of each rank, -1 unknown."""
    first = trace.ranks.drop_duplicates("rank").set_index("rank")["host"].reindex(numbers)
    return pd.factorize(first.where(first.notna(), None))[0].astype(np.int64)


def _one_clock_a_host(lines: Lines, host: Codes, duration: Floats) -> list[str]:
    """Sets the ranks of each host to one line, in place, and returns the notes.

    A host's clock is the median of its ranks; the reference's own host is exactly 0. Where the ends disagree by more
    than 1 ms and 10 times their scatter, the host name is not believed (containers may share one). Fewer than 6 ends
    do not show their scatter: then they must disagree by more than a collective lasts (`duration`, median by rank).
    """
    alone = (lines.reference == np.arange(len(host))) & (np.bincount(lines.reference, minlength=len(host)) == 1)
    notes = np.where(alone & (len(host) > 1), "no synchronizing collective in common with another rank", "").astype(object)
    lines.offset[alone & (np.arange(len(host)) > 0)] = np.nan
    for number, reference in sorted({(int(h), int(r)) for h, r in zip(host, lines.reference, strict=True) if h >= 0}):
        mates = np.flatnonzero((host == number) & (lines.reference == reference))
        if len(mates) < 2:
            continue
        center = 0.0 if mates[0] == reference else float(np.median(lines.offset[mates]))
        unsure = np.where(lines.n[mates] < FEW, duration[mates], 10 * lines.scatter[mates])
        limit = max(NS_PER_MS, float(np.nanmax(np.append(unsure, 0.0))))
        if np.abs(lines.offset[mates] - center).max() > limit:
            notes[mates] = "ranks of one host, but their ends say that their clocks differ"
            continue
        for name, middle_of in (("offset", np.median), ("drift", np.median), ("error", np.min), ("drift_error", np.min)):
            values = getattr(lines, name)
            values[mates] = 0.0 if mates[0] == reference else middle_of(values[mates])
        notes[mates] = "one host, one clock"
    return list(notes)


def _bounds(lines: Lines, ends: Ends, trace: Trace, numbers: Codes, origin: int) -> Floats:
    tick = trace.ranks.groupby("rank")["tick_ns"].max().reindex(numbers).clip(1, COARSEST_TICK_NS).to_numpy().astype(np.float64)
    return STANDARD_ERRORS * lines.error + STANDARD_ERRORS * lines.drift_error * _distance(lines, ends, trace, numbers, origin) + tick


def _distance(lines: Lines, ends: Ends, trace: Trace, numbers: Codes, origin: int) -> Floats:
    """How far the farthest record of each rank is from its nearest common end."""
    frame = trace.collectives
    code = np.searchsorted(numbers, frame["rank"].to_numpy())
    low, high = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(low, code, (frame["start_ns"].to_numpy() - origin).astype(np.float64))
    np.maximum.at(high, code, (frame["end_ns"].to_numpy() - origin).astype(np.float64))
    first, last = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(first, ends.rank, ends.end)
    np.maximum.at(last, ends.rank, ends.end)
    seen = np.isfinite(first)
    distance = np.zeros(len(numbers))
    distance[seen] = np.maximum(np.maximum(first[seen] - low[seen], high[seen] - last[seen]), 0.0)
    by = np.lexsort((ends.end, ends.rank))
    gaps = np.diff(ends.end[by])
    same = ends.rank[by][1:] == ends.rank[by][:-1]
    np.maximum.at(distance, ends.rank[by][1:][same], gaps[same] / 2)
    return np.where(np.isfinite(lines.offset), distance, np.nan)
