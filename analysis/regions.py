"""Where compute and communication really run at once: connected groups of both, cut at steps (docs/metrics.md §4)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.segments import FloatArray
from c3prof.analysis.steps import StepWindows, step_at
from c3prof.kernels import COMM, COMPUTE
from c3prof.trace import NONE

BoolArray = npt.NDArray[np.bool_]


class Pieces(NamedTuple):
    """Parts of compute and comm activities, cut at the windows of steps: row of the activity, [start, end), step, class,
    and the region of each, -1 for none."""

    row: Int64s
    start: Int64s
    end: Int64s
    step: Int64s
    comm: BoolArray
    region: Int64s


def region_pieces(rows: pd.DataFrame, steps: StepWindows) -> Pieces:
    """The Pieces of the activities of one device. Regions are numbered in order of time; each has both classes.

    Two pieces are linked when they share time on different streams; a region is a connected group of them.
    """
    chosen = np.flatnonzero(rows["class"].isin([COMPUTE, COMM]).to_numpy(dtype=bool))
    first, last = (rows[name].to_numpy()[chosen] for name in ("start_ns", "end_ns"))
    row, start, end = intervals.pieces(first, last, np.concatenate([steps.starts, steps.ends]))
    row = chosen[row]
    comm = (rows["class"] == COMM).to_numpy(dtype=bool)[row]
    group = _connected(start, end, rows["stream"].to_numpy()[row])
    number = int(group.max(initial=-1)) + 1
    both = np.ones(number, bool)
    for side in (comm, ~comm):
        both &= np.bincount(group[side & (group >= 0)], minlength=number) > 0
    renumbered = np.append(np.where(both, np.cumsum(both) - 1, -1), -1)
    return Pieces(row, start, end, step_at(steps, start), comm, renumbered[group])


def _connected(start: Int64s, end: Int64s, stream: Int64s) -> Int64s:
    """The group of each piece, -1 without company, numbered in order of time.

    The instants with two busy streams are cut wherever a piece starts or ends; a piece links all those it covers.
    """
    _, low, high = intervals.union_by(stream, start, end)
    busy_twice = intervals.at_least(2, low, high)
    _, low, high = intervals.pieces(*busy_twice, np.concatenate([start, end]))
    first = np.searchsorted(high, start, side="right")
    last = np.searchsorted(low, end, side="left") - 1
    covers = first <= last
    reach = np.zeros(len(low) + 1, np.int64)
    np.add.at(reach, first[covers], 1)
    np.add.at(reach, last[covers], -1)
    apart = np.cumsum(reach)[:-1] == 0
    label = np.append(0, np.cumsum(apart))
    return np.where(covers, label[np.minimum(first, len(label) - 1)], -1)


def regions(pieces: Pieces, duration: Int64s, clean_ns: FloatArray, reach_ns: FloatArray) -> pd.DataFrame:
    """A row a region: step, [start_ns, end_ns), n_compute, n_comm, union and time alone of both sides, baseline_share.

    duration, clean_ns, reach_ns: of each activity of the device its duration, the clean time of its signature (NaN
    unknown) and the half width of that time's 95 % interval. alone = Σ w·|U|/Σ d over the members of a class; members
    without a clean time count with d.
    """
    inside = pieces.region >= 0
    region, comm, row = pieces.region[inside], pieces.comm[inside], pieces.row[inside]
    start, end = pieces.start[inside], pieces.end[inside]
    count = int(region.max(initial=-1)) + 1
    length = (end - start).astype(float)
    share = length / duration[row]
    known = ~np.isnan(clean_ns[row])
    alone = np.where(known, clean_ns[row] * share, length)
    reach = np.where(known, reach_ns[row] * share, 0.0)
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, region, start)
    np.maximum.at(last, region, end)
    step = np.full(count, NONE)
    step[region] = pieces.step[inside]
    columns: dict[str, npt.NDArray[np.generic]] = {"region": np.arange(count), "step": step, "start_ns": first, "end_ns": last}
    for name, side in (("compute", ~comm), ("comm", comm)):
        of, low, high = intervals.union_by(region[side], start[side], end[side])
        union = np.bincount(of, weights=high - low, minlength=count)
        whole = np.bincount(region[side], weights=length[side], minlength=count)
        scale = np.divide(union, whole, out=np.ones(count), where=whole > 0)
        columns[f"{name}_scale"] = scale
        columns[f"n_{name}"] = _members(region[side], row[side], count)
        columns[f"{name}_ns"] = union
        columns[f"{name}_alone_ns"] = np.bincount(region[side], weights=alone[side], minlength=count) * scale
        columns[f"{name}_reach_ns"] = np.bincount(region[side], weights=reach[side], minlength=count) * scale
    total = np.bincount(region, weights=length, minlength=count)
    based = np.bincount(region, weights=length * known, minlength=count)
    columns["baseline_share"] = np.divide(based, total, out=np.full(count, np.nan), where=total > 0)
    columns["first_collective"] = _first_comm(region, comm, start, row, count)
    return pd.DataFrame(columns)


def _members(region: Int64s, row: Int64s, count: int) -> Int64s:
    pairs = np.unique(np.stack([region, row]), axis=1)
    return np.bincount(pairs[0], minlength=count).astype(np.int64)


def _first_comm(region: Int64s, comm: BoolArray, start: Int64s, row: Int64s, count: int) -> Int64s:
    """Row of the communication activity of each region that starts first."""
    at = np.flatnonzero(comm)
    at = at[np.lexsort((start[at], region[at]))][::-1]
    first = np.full(count, NONE)
    first[region[at]] = row[at]
    return first
