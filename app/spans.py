"""What is known about one span of the timeline: its row, its launch, what ran beside it, its slowdown and its waiting."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from c3prof.app.lanes import CLASSES, Lane
from c3prof.app.timeline import Timeline, readable
from c3prof.table import Report
from c3prof.units import text_of_size, text_of_time

_CO_RUNNERS = 12
_SKIPPED = frozenset(
    {"rank", "start_ns", "end_ns", "launch", "op", "annotation", "collective_id", "parent", "class", "name", "kernels", "order"}
)
_HIDDEN_WHEN = (-1, "", None, False)

Fields = list[tuple[str, str]]
Row: TypeAlias = Any
"""A row of a frame as pandas gives it, values by column."""


def details(timeline: Timeline, report: Report | None, key: str, row: int) -> dict[str, Any]:
    """Everything about the span in a row of a lane's frame. KeyError if there is no such span.

    fields: (label, text) in order of interest; co_runners: other activities of the device at the same time, most shared first;
    links: the launch, operator and annotation that it came from, as lane, row, begin, end.
    """
    lane = timeline.lanes[key]
    places = np.flatnonzero(lane.rows == row) if row >= 0 else np.empty(0, np.int64)
    if not len(places):
        raise KeyError(f"no span {row} in lane {key}")
    place, spans = int(places[0]), lane.pyramid.spans
    begin, end = int(spans.start[place]), int(spans.end[place])
    values = getattr(timeline.trace, lane.frame).iloc[row]
    return {
        "lane": key,
        "row": row,
        "name": _name(lane, values),
        "class": CLASSES[int(spans.cls[place])],
        "begin": begin - timeline.begin,
        "end": end - timeline.begin,
        "fields": [*_measured(lane, values, begin, end), *_found(timeline, report, lane, values), *_recorded(values)],
        "links": dict(_links(timeline, lane, values)),
        "co_runners": _co_runners(timeline, lane, begin, end),
    }


def _name(lane: Lane, values: Row) -> str:
    if lane.frame == "steps":
        return f"step {values['step']}"
    return str(values["collective"] if lane.frame == "collectives" else values["name"])


def _measured(lane: Lane, values: Row, begin: int, end: int) -> Fields:
    fields = [("duration", text_of_time(end - begin)), ("rank", str(lane.rank) if lane.rank >= 0 else "unknown"), ("lane", lane.label)]
    if lane.section:
        fields.insert(2, ("on", lane.section))
    sizes = [name for name in ("size_bytes", "bytes", "shared_memory") if name in values and values[name] > 0]
    return [*fields, *((name.removesuffix("_bytes").replace("_", " "), text_of_size(float(values[name]))) for name in sizes)]


def _found(timeline: Timeline, report: Report | None, lane: Lane, values: Row) -> Iterator[tuple[str, str]]:
    """What the analyses say about the span, and what the rows that it points to add."""
    trace = timeline.trace
    op = _row(trace.ops, values.get("op", -1))
    if op is not None:
        yield "operator", str(op["name"])
        yield from ((label, str(op[label])) for label in ("dims", "types") if readable(op[label]) is not None)
    annotation = _row(trace.annotations, values.get("annotation", -1))
    if annotation is not None:
        yield "inside", str(annotation["name"])
    launch = _row(trace.launches, values.get("launch", -1))
    if launch is not None:
        yield "launch delay", text_of_time(int(values["start_ns"]) - int(launch["end_ns"]))
    collective = values if lane.frame == "collectives" else _row(trace.collectives, values.get("collective_id", -1))
    if collective is not None:
        yield from _of_collective(report, collective)
    if report is not None and lane.frame == "activities" and collective is None:
        yield from _slowdowns(report, lane.rank, str(values["name"]), op)


def _row(frame: pd.DataFrame, position: Any) -> Row | None:
    return frame.iloc[int(position)] if 0 <= int(position) < len(frame) else None


def _of_collective(report: Report | None, collective: Row) -> Iterator[tuple[str, str]]:
    yield "collective", str(collective["collective"])
    for label, column in (("group", "group"), ("group is", "group_desc"), ("type", "dtype")):
        if readable(collective[column]) not in _HIDDEN_WHEN:
            yield label, str(collective[column])
    for label, column in (("group size", "group_size"), ("sequence number", "seq")):
        if int(collective[column]) >= 0:
            yield label, str(collective[column])
    if int(collective["size_bytes"]) >= 0:
        yield "message size", text_of_size(int(collective["size_bytes"]))
    ledger = report.get("collectives") if report else None
    if ledger is None or not len(ledger):
        return
    rows = ledger.frame[ledger.frame["rank"] == collective["rank"]]
    same = rows[(rows["arrival_ns"] - int(collective["start_ns"])).abs() <= 1]
    if len(same):
        yield from _of_ledger(same.iloc[0])


def _of_ledger(row: Row) -> Iterator[tuple[str, str]]:
    for column in ("wait_ns", "transfer_ns", "skew_ns", "hidden_ns", "exposed_ns"):
        if readable(row[column]) is not None:
            yield column.removesuffix("_ns"), text_of_time(float(row[column]))
    if readable(row["busbw_gb_s"]) is not None:
        bound = "at least " if bool(row["lower_bound"]) else ""
        yield "busbw", f"{bound}{row['busbw_gb_s']:.3g} GB/s"
    if readable(row["note"]):
        yield "note", str(row["note"])


def _slowdowns(report: Report, rank: int, kernel: str, op: Row | None) -> Iterator[tuple[str, str]]:
    table = report.get("slowdown")
    if table is None or not len(table):
        return
    rows = table.frame[(table.frame["rank"] == rank) & (table.frame["kernel"] == kernel)]
    if op is not None and readable(op["dims"]) is not None:
        rows = rows[(rows["input_dims"] == op["dims"]) | rows["input_dims"].isna()]
    for row in rows.head(4).to_dict("records"):
        yield f"slowdown beside {row['co_runner']}", _factor(row)


def _factor(row: Mapping[Any, Any]) -> str:
    if readable(row["slowdown"]) is None:
        return f"not known: {row['note'] or 'no reason given'}"
    interval = f" ({row['slowdown_low']:.2f} to {row['slowdown_high']:.2f})" if readable(row["slowdown_low"]) is not None else ""
    return f"{row['slowdown']:.2f}×{interval}, {row['n_clean']} clean and {row['n_overlapped']} overlapped"


def _recorded(values: Row) -> Fields:
    """The columns of the row that hold something and were not said yet."""
    said = {"size_bytes", "bytes", "shared_memory", "group", "group_desc", "group_size", "seq", "dtype", "collective"}
    rest = ((str(name), readable(value)) for name, value in values.items() if name not in _SKIPPED | said)
    return [(name.replace("_", " "), str(value)) for name, value in rest if value not in _HIDDEN_WHEN]


def _links(timeline: Timeline, lane: Lane, values: Row) -> Iterator[tuple[str, dict[str, Any]]]:
    for column, frame in (("launch", "launches"), ("op", "ops"), ("annotation", "annotations"), ("collective_id", "collectives")):
        position = int(values.get(column, -1))
        if position < 0:
            continue
        for other in timeline.lanes.values():
            if other.rank == lane.rank and other.frame == frame and len(place := np.flatnonzero(other.rows == position)):
                yield frame, _target(timeline, other, int(place[0]))
                break
    if lane.frame == "launches":
        yield from _launched(timeline, lane, int(values.name))


def _launched(timeline: Timeline, lane: Lane, position: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for other in timeline.lanes.values():
        if other.rank == lane.rank and other.frame == "activities":
            launches = timeline.trace.activities["launch"].to_numpy()[other.rows]
            if len(place := np.flatnonzero(launches == position)):
                yield "activities", _target(timeline, other, int(place[0]))
                return


def _target(timeline: Timeline, lane: Lane, place: int) -> dict[str, Any]:
    spans, row = lane.pyramid.spans, int(lane.rows[place])
    return {
        "lane": lane.key,
        "row": row,
        "name": _name(lane, getattr(timeline.trace, lane.frame).iloc[row]),
        "class": CLASSES[int(spans.cls[place])],
        "begin": int(spans.start[place]) - timeline.begin,
        "end": int(spans.end[place]) - timeline.begin,
    }


def _co_runners(timeline: Timeline, lane: Lane, begin: int, end: int) -> list[dict[str, Any]]:
    if lane.frame not in ("activities", "collectives"):
        return []
    found = []
    for other in timeline.lanes.values():
        if other.rank != lane.rank or other.section != lane.section or other.frame != lane.frame or other.key == lane.key:
            continue
        places, _ = other.pyramid.window(begin, end, 1)
        spans = other.pyramid.spans
        shared = np.minimum(spans.end[places], end) - np.maximum(spans.start[places], begin)
        best = np.argsort(-shared, kind="stable")[:_CO_RUNNERS]
        found += [_target(timeline, other, int(places[i])) | {"shared_ns": int(shared[i])} for i in best if shared[i] > 0]
    return sorted(found, key=lambda one: -int(one["shared_ns"]))[:_CO_RUNNERS]
