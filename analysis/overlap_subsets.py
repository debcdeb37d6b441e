"""Overlap of parts of the communication, each alone (docs/metrics.md §2): of a stream, a group, a kind, a collective."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import busy, class_masks, collective_keys
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.rows import DEVICE, NO_COMM, NOTE, RANK, joined, placed, summed, texts
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM, COMPUTE, COPY, FUSED
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

_SUBSET = (
    Column("collectives", "int64", "", "communication operations that run in it"),
    Column("comm_ns", "int64", "ns", "time in which its communication runs; fused kernels are not counted"),
    Column("hidden_ns", "int64", "ns", "part of comm_ns with compute at the same instant"),
    Column("exposed_ns", "int64", "ns", "the rest of comm_ns"),
    Column("hidden_ratio", "float64", "ratio", "hidden_ns / comm_ns"),
    NOTE,
)

BY_STREAM = Schema(
    "overlap_by_stream",
    "Overlap of each stream alone with the compute of its device; rows do not add up",
    (
        RANK,
        DEVICE,
        Column("stream", "int64", "", "stream id; on a CPU the number of the thread, -1 for communication"),
        Column("activities", "int64", "", "activities on the stream in the whole run"),
        Column("compute_ns", "int64", "ns", "time in which a compute or fused kernel runs on it"),
        Column("copy_ns", "int64", "ns", "time in which a copy runs on it"),
        *_SUBSET,
    ),
)
BY_GROUP = Schema(
    "overlap_by_group",
    "Overlap of each process group alone; rows do not add up",
    (
        RANK,
        DEVICE,
        Column("group", "object", "", "process group; null where the record does not name it"),
        Column("group_desc", "object", "", "description of the group"),
        *_SUBSET,
    ),
)
BY_COLLECTIVE = Schema(
    "overlap_by_collective",
    "Overlap of each kind of collective alone; rows do not add up",
    (RANK, DEVICE, Column("collective", "object", "", "kind of collective; unknown where neither record nor name tells"), *_SUBSET),
)
COLLECTIVE_OVERLAP = Schema(
    "_collective_overlap",
    "Overlap of each collective alone, a row a row of Trace.collectives, in its order",
    (
        RANK,
        Column("comm_ns", "int64", "ns", "time in which its kernels run"),
        Column("hidden_ns", "int64", "ns", "part of comm_ns with compute at the same instant"),
        Column("exposed_ns", "int64", "ns", "the rest of comm_ns; two collectives may count the same instant"),
    ),
)
SCHEMAS = (BY_STREAM, BY_GROUP, BY_COLLECTIVE, COLLECTIVE_OVERLAP)


def overlap_subsets(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS. Only what lies in the steps asked for counts, if the settings ask for steps."""
    data: dict[str, list[pd.DataFrame]] = {schema.name: [] for schema in SCHEMAS}
    alone = np.zeros((2, len(trace.collectives)), np.int64)
    for lane in lanes(trace, work(trace), settings):
        hiding = intervals.intersection(busy(lane.rows).p, lane.asked)
        data["overlap_by_stream"].append(_by_stream(lane, hiding))
        data["overlap_by_group"].append(_by_named(lane, hiding, _of_collective(lane, trace, "group", "group_desc")))
        data["overlap_by_collective"].append(_by_named(lane, hiding, {"collective": lane.rows["kernel_class"].to_numpy(dtype=object)}))
        known = np.flatnonzero((lane.rows["collective_id"].to_numpy() >= 0) & class_masks(lane.rows)[COMM])
        alone += _times(lane, hiding, known, lane.rows["collective_id"].to_numpy()[known], alone.shape[1])
    comm, hidden = alone
    each = pd.DataFrame({"rank": trace.collectives["rank"], "comm_ns": comm, "hidden_ns": hidden, "exposed_ns": comm - hidden})
    data["_collective_overlap"] = [each]
    return tuple(Table.of(schema, joined(data[schema.name], schema)) for schema in SCHEMAS)


def _of_collective(lane: Lane, trace: Trace, *columns: str) -> dict[str, npt.NDArray[np.object_]]:
    """Columns of the collective that each activity belongs to, None without one."""
    ids = lane.rows["collective_id"].to_numpy()
    if not len(trace.collectives):
        return {column: np.full(len(ids), None, object) for column in columns}
    return {column: texts(trace.collectives[column].iloc[np.maximum(ids, 0)].array, ids < 0) for column in columns}


def _by_stream(lane: Lane, hiding: Spans) -> pd.DataFrame:
    of = class_masks(lane.rows)
    streams = intervals.distinct(lane.rows["stream"].to_numpy())
    code = np.searchsorted(streams, lane.rows["stream"].to_numpy())
    other = {
        "compute_ns": _times(lane, hiding, *_chosen(of[COMPUTE] | of[FUSED], code), len(streams))[0],
        "copy_ns": _times(lane, hiding, *_chosen(of[COPY], code), len(streams))[0],
    }
    rows = _subsets(lane, hiding, *_chosen(of[COMM], code), len(streams))
    return placed(lane, rows.assign(stream=streams, activities=np.bincount(code, minlength=len(streams)), **other))


def _by_named(lane: Lane, hiding: Spans, names: Mapping[str, npt.NDArray[np.object_]]) -> pd.DataFrame:
    """A row for each combination of names among the communication of the lane, sorted, unnamed last."""
    comm = np.flatnonzero(class_masks(lane.rows)[COMM])
    grouped = pd.DataFrame({name: values[comm] for name, values in names.items()}).groupby(list(names), sort=True, dropna=False)
    code = np.asarray(grouped.ngroup(), np.int64)
    first = np.unique(code, return_index=True)[1]
    rows = _subsets(lane, hiding, comm, code, len(first))
    return placed(lane, rows.assign(**{name: pd.Series(values[comm][first], dtype=object) for name, values in names.items()}))


def _chosen(mask: npt.NDArray[np.bool_], code: Int64s) -> tuple[Int64s, Int64s]:
    rows = np.flatnonzero(mask)
    return rows, code[rows]


def _subsets(lane: Lane, hiding: Spans, rows: Int64s, code: Int64s, n: int) -> pd.DataFrame:
    """The columns of _SUBSET for subsets 0 … n-1 of the communication `rows` (positions in the lane), code: its subset."""
    comm_ns, hidden_ns = _times(lane, hiding, rows, code, n)
    inside = intervals.shared_ns(*_span(lane, rows), lane.asked) > 0
    pairs = np.unique(np.stack([code, collective_keys(lane.rows)[rows]])[:, inside], axis=1)
    share = ratio(hidden_ns, comm_ns)
    return pd.DataFrame(
        {
            "collectives": np.bincount(pairs[0].astype(np.int64), minlength=n),
            "comm_ns": comm_ns,
            "hidden_ns": hidden_ns,
            "exposed_ns": comm_ns - hidden_ns,
            "hidden_ratio": share,
            "note": pd.Series([NO_COMM if unknown else None for unknown in np.isnan(share).tolist()], dtype=object),
        }
    )


def _times(lane: Lane, hiding: Spans, rows: Int64s, code: npt.NDArray[Any], n: int) -> Int64s:
    """Time in which each subset runs, and how much of that lies in `hiding`: shape (2, n), ns."""
    key, low, high = intervals.union_by(code, *_span(lane, rows))
    return np.stack([summed(key, intervals.shared_ns(low, high, spans), n) for spans in (lane.asked, hiding)])


def _span(lane: Lane, rows: Int64s) -> tuple[Int64s, Int64s]:
    return lane.rows["start_ns"].to_numpy()[rows], lane.rows["end_ns"].to_numpy()[rows]
