"""How much communication compute hides, exactly (docs/metrics.md §2): by run, step, stream, group and kind of collective.

P = U(compute ∪ fused), Q = U(comm ∪ fused), each a union over all streams of one device.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM, COMPUTE, COPY, FUSED
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

_WHERE = (
    Column("rank", "int32", "", "global rank; negative when the file does not name it"),
    Column("device", "object", "", "device number, or cpu for CPU threads (gloo)"),
)
_TIMES = (
    Column("span_ns", "int64", "ns", "length of the window"),
    Column("compute_ns", "int64", "ns", "|P|: something computes"),
    Column("comm_ns", "object", "ns", "|Q|: something communicates; null when only fused kernels do"),
    Column("copy_ns", "int64", "ns", "|U(copy)|: memcpy and memset"),
    Column("hidden_ns", "object", "ns", "|P ∩ Q|: communication behind compute; null when only fused kernels communicate"),
    Column("exposed_ns", "int64", "ns", "|Q - P|: communication with no compute at the same instant"),
    Column("exposed_copy_ns", "int64", "ns", "|U(copy) - P - Q|: copies with nothing else"),
    Column("idle_ns", "int64", "ns", "nothing runs"),
    Column("fused_ns", "int64", "ns", "|U(fused)|: part of comm and hidden that cannot be separated"),
    Column("comm_overlap_ns", "int64", "ns", "two or more collectives run; fused kernels are not counted"),
    Column("hidden_ratio", "float64", "ratio", "hidden_ns / comm_ns"),
    Column("covered_ratio", "float64", "ratio", "hidden_ns / compute_ns"),
    Column("note", "object", "", "why a value is unknown"),
)
_SUBSET = (
    Column("collectives", "int64", "", "communication operations that run in it"),
    Column("comm_ns", "int64", "ns", "time in which its communication runs; fused kernels are not counted"),
    Column("hidden_ns", "int64", "ns", "part of comm_ns with compute at the same instant"),
    Column("exposed_ns", "int64", "ns", "the rest of comm_ns"),
    Column("hidden_ratio", "float64", "ratio", "hidden_ns / comm_ns"),
    Column("note", "object", "", "why a value is unknown"),
)
_SOURCE = Column("source", "object", "", "the file that the row comes from")
_STEP = Column("step", "object", "", "step number; outside for what lies in no step; null when the file has no steps")
_COLLECTIVE = Column("collective", "object", "", "kind of collective, unknown where neither record nor name tells")
_GROUP = Column("group", "object", "", "process group; null where the record does not name it")

OVERLAP = Schema("overlap", "Overlap of compute and communication, a row a rank and device", (*_WHERE, _SOURCE, *_TIMES))
BY_STEP = Schema("overlap_by_step", "Overlap by step; the additive columns sum to the run", (*_WHERE, _STEP, *_TIMES))
BY_STREAM = Schema(
    "overlap_by_stream",
    "Overlap of each stream alone with the compute of its device; rows do not add up",
    (
        *_WHERE,
        Column("stream", "int64", "", "stream id; on a CPU the number of the thread, -1 for communication"),
        Column("activities", "int64", "", "activities on the stream"),
        Column("compute_ns", "int64", "ns", "time in which a compute or fused kernel runs on it"),
        Column("copy_ns", "int64", "ns", "time in which a copy runs on it"),
        *_SUBSET,
    ),
)
BY_GROUP = Schema(
    "overlap_by_group",
    "Overlap of each process group alone; rows do not add up",
    (*_WHERE, _GROUP, Column("group_desc", "object", "", "description of the group"), *_SUBSET),
)
BY_COLLECTIVE = Schema("overlap_by_collective", "Overlap of each kind of collective alone; rows do not add up", (*_WHERE, _COLLECTIVE, *_SUBSET))
COLLECTIVE_OVERLAP = Schema(
    "_collective_overlap",
    "Overlap of each collective alone, a row a row of Trace.collectives, in its order",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("comm_ns", "int64", "ns", "time in which its kernels run, inside the steps that were asked for"),
        Column("hidden_ns", "int64", "ns", "part of comm_ns with compute at the same instant"),
        Column("exposed_ns", "int64", "ns", "the rest of comm_ns; several collectives may count the same instant"),
    ),
)

SCHEMAS = (OVERLAP, BY_STEP, BY_STREAM, BY_GROUP, BY_COLLECTIVE, COLLECTIVE_OVERLAP)

NO_COMM, NO_COMPUTE, NO_STEPS = "no communication", "no compute", "no steps in the file"
UNATTRIBUTABLE = "unattributable fused kernel"

Rows = dict[str, list[Any]]


def overlap(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS for a Trace, in that order.

    Every time is exact in ns; on run and step rows compute_ns + exposed_ns + exposed_copy_ns + idle_ns = span_ns.
    """
    data: dict[str, list[pd.DataFrame]] = {schema.name: [] for schema in SCHEMAS}
    alone = np.zeros((2, len(trace.collectives)), np.int64)
    paths = trace.ranks.groupby("rank")["path"].agg(", ".join)
    for lane in lanes(trace, work(trace), settings):
        sets = busy_sets(lane)
        runs, steps = _run_and_steps(lane, sets)
        data["overlap"].append(runs.assign(source=paths.get(lane.rank, "")))
        data["overlap_by_step"].append(steps)
        data["overlap_by_stream"].append(_by_stream(lane, sets))
        for name, keys in _kinds_and_groups(lane, trace):
            data[name].append(_subsets(lane, sets, keys))
        known = lane.rows["collective_id"].to_numpy() >= 0
        _add_alone(alone, lane, sets, known)
    data["_collective_overlap"] = [_collective_rows(trace, alone)]
    return tuple(Table.of(schema, _joined(data[schema.name], schema)) for schema in SCHEMAS)


def busy_sets(lane: Lane) -> dict[str, Spans]:
    """The instants of each time column of a lane, without window: {column: Spans}, and comm, all for comm alone and anything."""
    start, end, of = lane.rows["start_ns"].to_numpy(), lane.rows["end_ns"].to_numpy(), class_masks(lane.rows)

    def busy(*classes: str) -> Spans:
        chosen = np.logical_or.reduce([of[name] for name in classes])
        return intervals.union(start[chosen], end[chosen])

    p, comm, fused, copy = busy(COMPUTE, FUSED), busy(COMM), busy(FUSED), busy(COPY)
    q = busy(COMM, FUSED) if len(fused.starts) else comm
    either = intervals.union(np.concatenate([p.starts, q.starts]), np.concatenate([p.ends, q.ends]))
    _, low, high = intervals.union_by(collective_keys(lane.rows)[of[COMM]], start[of[COMM]], end[of[COMM]])
    return {
        "compute_ns": p,
        "comm_ns": q,
        "copy_ns": copy,
        "hidden_ns": intervals.intersection(p, q),
        "exposed_ns": intervals.difference(q, p),
        "exposed_copy_ns": intervals.difference(copy, either),
        "fused_ns": fused,
        "comm_overlap_ns": intervals.at_least(2, low, high),
        "comm": comm,
        "all": busy(COMPUTE, COMM, FUSED, COPY),
    }


def class_masks(rows: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """For each class which of the activities are of it."""
    names = list(rows["class"].cat.categories)
    codes = rows["class"].cat.codes.to_numpy()
    return {name: codes == names.index(name) if name in names else np.zeros(len(codes), bool) for name in (COMPUTE, COMM, FUSED, COPY)}


def collective_keys(rows: pd.DataFrame) -> Int64s:
    """A number for the collective of each activity; an activity without one is on its own (negative)."""
    ids = rows["collective_id"].to_numpy().astype(np.int64)
    return np.where(ids >= 0, ids, -1 - np.arange(len(ids)))


_MEASURED = ("compute_ns", "comm_ns", "copy_ns", "hidden_ns", "exposed_ns", "exposed_copy_ns", "fused_ns", "comm_overlap_ns")


def _run_and_steps(lane: Lane, sets: Mapping[str, Spans]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The row of the run (or of the steps asked for) and the rows of its steps, with `outside` when there is such time."""
    run = _measured(sets, lane.asked).sum().to_frame().T
    steps = _measured(sets, Spans(lane.steps.starts, lane.steps.ends)).assign(step=lane.steps.steps.astype(object))
    outside = run - steps.drop(columns="step").sum()
    if not len(steps):
        steps = run.assign(step=None)
    elif outside["span_ns"].iloc[0] > 0:
        steps = pd.concat([steps, outside.assign(step="outside")], ignore_index=True)
    only_fused = bool(len(sets["fused_ns"].starts)) and not len(sets["comm"].starts)
    rows = [_with_ratios(frame.reset_index(drop=True), sets, only_fused) for frame in (run, steps)]
    if not len(lane.steps.steps):
        rows[1]["note"] = [_notes(NO_STEPS, note) for note in rows[1]["note"]]
    return _placed(lane, rows[0]), _placed(lane, rows[1])


def _measured(sets: Mapping[str, Spans], windows: Spans) -> pd.DataFrame:
    """Span, the time of each set, of anything and of pure communication in each window, ns."""

    def inside(spans: Spans) -> Int64s:
        return intervals.covered_before(spans, windows.ends) - intervals.covered_before(spans, windows.starts)

    columns = {name: inside(sets[name]) for name in (*_MEASURED, "comm", "all")}
    return pd.DataFrame({"span_ns": windows.ends - windows.starts, **columns})


def _with_ratios(rows: pd.DataFrame, sets: Mapping[str, Spans], only_fused: bool) -> pd.DataFrame:
    """Times, ratios and notes; unknown where only fused kernels communicate (in the row, or in the whole run)."""
    comm, hidden, compute = (rows[name].to_numpy() for name in ("comm_ns", "hidden_ns", "compute_ns"))
    fused_alone = (rows["fused_ns"].to_numpy() > 0) & (rows["comm"].to_numpy() == 0)
    unknown = np.full(len(rows), None, object)
    data = {name: rows[name].to_numpy() for name in ("span_ns", *_MEASURED)}
    data |= {name: unknown if only_fused else data[name].astype(object) for name in ("comm_ns", "hidden_ns")}
    data["idle_ns"] = rows["span_ns"].to_numpy() - rows["all"].to_numpy()
    lost = fused_alone | only_fused
    data["hidden_ratio"] = _ratio(hidden, np.where(lost, 0, comm))
    data["covered_ratio"] = _ratio(hidden, np.where(lost, 0, compute))
    notes = [
        _notes(UNATTRIBUTABLE if fused else "", NO_COMM if not (fused or c) else "", NO_COMPUTE if not (fused or p) else "")
        for fused, c, p in zip(lost.tolist(), comm.tolist(), compute.tolist(), strict=True)
    ]
    kept = {"step": rows["step"].to_numpy(dtype=object)} if "step" in rows else {}
    return pd.DataFrame({**kept, **data, "note": notes})


def _by_stream(lane: Lane, sets: Mapping[str, Spans]) -> pd.DataFrame:
    streams = lane.rows["stream"].to_numpy()
    of, everything = class_masks(lane.rows), np.unique(streams)
    rows = _subsets(lane, sets, {"stream": streams}, everything)
    counts = np.bincount(np.searchsorted(everything, streams), minlength=len(everything))
    compute = _time_by(lane, of[COMPUTE] | of[FUSED], streams, everything, lane.asked)
    copy = _time_by(lane, of[COPY], streams, everything, lane.asked)
    return rows.assign(activities=counts, compute_ns=compute, copy_ns=copy)


def _kinds_and_groups(lane: Lane, trace: Trace) -> list[tuple[str, dict[str, npt.NDArray[Any]]]]:
    """For each subset table its key columns, an array over the activities of the lane each."""
    ids = lane.rows["collective_id"].to_numpy()
    row = np.where(ids >= 0, ids, 0)
    named = trace.collectives.iloc[row] if len(trace.collectives) else None

    def of_collective(column: str) -> npt.NDArray[Any]:
        if named is None:
            return np.full(len(ids), None, object)
        values = named[column].astype(object).to_numpy()
        return np.where((ids < 0) | pd.isna(values), None, values)

    kind = of_collective("collective")
    by_name = lane.rows["kernel_class"].astype(object).to_numpy()
    kind = np.where(pd.isna(kind), by_name, kind)
    return [
        ("overlap_by_group", {"group": of_collective("group"), "group_desc": of_collective("group_desc")}),
        ("overlap_by_collective", {"collective": kind}),
    ]


def _subsets(
    lane: Lane, sets: Mapping[str, Spans], keys: Mapping[str, npt.NDArray[Any]], everything: npt.NDArray[Any] | None = None
) -> pd.DataFrame:
    """Communication of each subset alone: a row a value of `keys` among the communication of the lane.

    everything: the values that get a row even if they do not communicate (only with one key).
    """
    comm = np.flatnonzero(class_masks(lane.rows)[COMM])
    columns = pd.DataFrame({name: values[comm] for name, values in keys.items()})
    code = columns.groupby(list(keys), sort=True, dropna=False).ngroup().to_numpy()
    if everything is not None:
        code = np.searchsorted(everything, next(iter(keys.values()))[comm])
    n = len(everything) if everything is not None else int(code.max(initial=-1)) + 1
    hidden_in = intervals.intersection(sets["compute_ns"], lane.asked)
    start, end = lane.rows["start_ns"].to_numpy()[comm], lane.rows["end_ns"].to_numpy()[comm]
    key, low, high = intervals.union_by(code, start, end)
    comm_ns, hidden_ns = (_summed(key, intervals.shared_ns(low, high, spans), n) for spans in (lane.asked, hidden_in))
    pair = np.unique(np.stack([code, collective_keys(lane.rows)[comm]])[:, _touches(start, end, lane.asked)], axis=1)
    named = {name: _first_of(code, columns[name].to_numpy(), n) for name in keys} if everything is None else {next(iter(keys)): everything}
    ratio = _ratio(hidden_ns, comm_ns)
    return _placed(
        lane,
        pd.DataFrame(
            {
                **named,
                "collectives": np.bincount(pair[0].astype(np.int64), minlength=n),
                "comm_ns": comm_ns,
                "hidden_ns": hidden_ns,
                "exposed_ns": comm_ns - hidden_ns,
                "hidden_ratio": ratio,
                "note": [NO_COMM if np.isnan(value) else None for value in ratio.tolist()],
            }
        ),
    )


def _touches(start: Int64s, end: Int64s, asked: Spans) -> npt.NDArray[np.bool_]:
    return (intervals.shared_ns(start, end, asked) > 0) | intervals.contains(asked, start)


def _time_by(lane: Lane, chosen: npt.NDArray[np.bool_], keys: Int64s, everything: Int64s, asked: Spans) -> Int64s:
    code = np.searchsorted(everything, keys[chosen])
    key, low, high = intervals.union_by(code, lane.rows["start_ns"].to_numpy()[chosen], lane.rows["end_ns"].to_numpy()[chosen])
    return _summed(key, intervals.shared_ns(low, high, asked), len(everything))


def _add_alone(alone: Int64s, lane: Lane, sets: Mapping[str, Spans], known: npt.NDArray[np.bool_]) -> None:
    """Add comm and hidden time of each collective of the lane to the rows of `alone`."""
    rows = lane.rows[known & class_masks(lane.rows)[COMM]]
    key, low, high = intervals.union_by(rows["collective_id"].to_numpy(), rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    hidden_in = intervals.intersection(sets["compute_ns"], lane.asked)
    np.add.at(alone[0], key, intervals.shared_ns(low, high, lane.asked))
    np.add.at(alone[1], key, intervals.shared_ns(low, high, hidden_in))


def _collective_rows(trace: Trace, alone: Int64s) -> pd.DataFrame:
    comm, hidden = alone
    return pd.DataFrame({"rank": trace.collectives["rank"].to_numpy(), "comm_ns": comm, "hidden_ns": hidden, "exposed_ns": comm - hidden})


def _summed(key: Int64s, values: Int64s, n: int) -> Int64s:
    sums = np.zeros(n, np.int64)
    np.add.at(sums, key, values)
    return sums


def _first_of(code: Int64s, values: npt.NDArray[Any], n: int) -> npt.NDArray[np.object_]:
    first = np.full(n, None, object)
    first[code[::-1]] = values[::-1]
    return np.array([None if pd.isna(value) else value for value in first], object)


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    result = np.full(len(whole), np.nan)
    known = whole > 0
    result[known] = part[known] / whole[known]
    return result


def _notes(*notes: str | None) -> str | None:
    return "; ".join(dict.fromkeys(note for note in notes if note)) or None


def _placed(lane: Lane, rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(rank=np.int32(lane.rank), device=np.full(len(rows), lane.label, object))


def _joined(frames: Sequence[pd.DataFrame], schema: Schema) -> pd.DataFrame | None:
    frames = [frame[schema.names] for frame in frames if len(frame)]
    if not frames:
        return None
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
