"""Where device time goes by kernel class and by kernel, and how much of it the other side shares."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import Busy, busy, computing
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.rows import DEVICE, RANK, joined, placed, summed
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import Lane, lanes
from c3prof.table import Column, Schema, Table
from c3prof.trace import CPU_DEVICE, Trace

KERNELS = Schema(
    "kernels",
    "Device time by kernel class (by = class) and of the longest kernels (by = kernel)",
    (
        RANK,
        DEVICE,
        Column("by", "object", "", "class or kernel; the rows of each add up the same activities"),
        Column("class", "object", "", "compute, comm, fused or copy"),
        Column("kernel_class", "object", "", "gemm, attention, …; the kind of collective for communication"),
        Column("kernel", "object", "", "name of the kernel or copy; of the operator on a CPU; null for by = class"),
        Column("count", "int64", "", "how many ran"),
        Column("total_ns", "int64", "ns", "sum of their durations; streams that run at once count each"),
        Column("busy_ns", "int64", "ns", "time in which at least one of them runs"),
        Column("median_ns", "float64", "ns", "median duration"),
        Column("share", "float64", "ratio", "total_ns of all activities of the device that falls to them"),
        Column(
            "overlapped_ns",
            "int64",
            "ns",
            "part of total_ns with the other side at the same instant: compute for comm and copies, comm for compute",
        ),
        Column(
            "overlapped_ratio",
            "float64",
            "ratio",
            "overlapped_ns / total_ns: the hidden share of communication, the covered share of compute",
        ),
    ),
)


def kernel_time(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table]:
    """The table kernels: all kernel classes, and the settings.top kernels with most total time, of each rank and device."""
    found = []
    for lane in lanes(trace, work(trace), settings):
        measured = _measured(lane, busy(lane.rows), lane.rows["kernel_class"].array)
        found.append(placed(lane, _grouped(lane, measured, ("class", "kernel_class")).assign(by="class")))
        kernels = _grouped(lane, measured, ("class", "kernel_class", "kernel")).head(settings.top)
        found.append(placed(lane, kernels.assign(by="kernel")))
    return (Table.of(KERNELS, joined(found, KERNELS)),)


def _measured(lane: Lane, now: Busy, kernel_class: pd.Categorical) -> pd.DataFrame:
    """Names, duration and overlapped time of each activity inside the steps asked for, and the number of what it is a piece of."""
    rows, asked = lane.rows, lane.asked
    start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    with_comm, with_compute = (intervals.shared_ns(start, end, intervals.intersection(spans, asked)) for spans in (now.q, now.p))
    frame = pd.DataFrame(
        {
            "class": rows["class"].array,
            "kernel_class": kernel_class,
            "kernel": rows["name"].array,
            "start_ns": start,
            "end_ns": end,
            "duration_ns": intervals.shared_ns(start, end, asked),
            "overlapped_ns": np.where(computing(rows), with_comm, with_compute),
            "number": rows["op"].to_numpy() if lane.device == CPU_DEVICE else np.arange(len(rows)),
        }
    )
    inside = (frame["duration_ns"].to_numpy() > 0) | ((start == end) & intervals.contains(asked, start))
    chosen: pd.DataFrame = frame.loc[inside]
    return chosen


def _grouped(lane: Lane, rows: pd.DataFrame, keys: tuple[str, ...]) -> pd.DataFrame:
    """A row a combination of keys, longest total first."""
    groups = rows.groupby(list(keys), observed=True, sort=True, dropna=False)
    code = np.asarray(groups.ngroup(), np.int64)
    n = int(code.max(initial=-1)) + 1
    first = np.unique(code, return_index=True)[1]
    total, overlapped = (summed(code, rows[column].to_numpy(), n) for column in ("duration_ns", "overlapped_ns"))
    key, low, high = intervals.union_by(code, rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    each, durations = _whole(code, rows) if lane.device == CPU_DEVICE else (code, rows["duration_ns"].to_numpy())
    frame = pd.DataFrame(
        {
            **{name: pd.Series(rows[name].to_numpy(dtype=object)[first], dtype=object) for name in keys},
            "count": np.bincount(each, minlength=n),
            "total_ns": total,
            "busy_ns": summed(key, intervals.shared_ns(low, high, lane.asked), n),
            "median_ns": _medians(each, durations, n),
            "share": ratio(total, np.full(n, total.sum())),
            "overlapped_ns": overlapped,
            "overlapped_ratio": ratio(overlapped, total),
        }
    )
    if "kernel" not in keys:
        frame = frame.assign(kernel=pd.Series([None] * n, dtype=object))
    return frame.sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)


def _whole(code: Int64s, rows: pd.DataFrame) -> tuple[Int64s, Int64s]:
    """Code and duration of each operator, whose pieces are the rows."""
    pairs, of = np.unique(np.stack([code, rows["number"].to_numpy()]), axis=1, return_inverse=True)
    return pairs[0], summed(of.ravel(), rows["duration_ns"].to_numpy(), pairs.shape[1])


_BITS = 43  # code and duration in one number sort ten times faster than in two; 2**43 ns are 2.4 h
_LONGEST = (1 << _BITS) - 1


def _medians(code: Int64s, values: Int64s, n: int) -> npt.NDArray[np.float64]:
    """Median of the values of each code 0 … n-1."""
    ordered = values[np.lexsort((values, code))] if n >= 1 << 20 else np.sort((code << _BITS) | np.minimum(values, _LONGEST)) & _LONGEST
    count = np.bincount(code, minlength=n)
    first = np.cumsum(count) - count
    low, high = (ordered[first + at] for at in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2, np.float64)
