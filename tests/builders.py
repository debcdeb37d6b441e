"""Traces in a few lines: `trace(compute(0, 10), comm(8, 14, stream=20))` is a Trace of one rank, times in ns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from c3prof.trace import ACTIVITIES, ANNOTATIONS, COLLECTIVES, CPU_DEVICE, LAUNCHES, NONE, OPS, RANKS, STEPS, Trace

THREAD = "1/1"


@dataclass(frozen=True)
class Item:
    """One row of a frame: which frame, its columns, and what it is linked to (`launched`: end of its launch call)."""

    frame: str
    row: Mapping[str, Any]
    launched: int | None = None
    thread: str = THREAD
    key: str | None = None
    collective: Mapping[str, Any] = field(default_factory=dict)


def activity(start: int, end: int, of: str, name: str, *, launched: int | None = None, thread: str = THREAD, **row: Any) -> Item:
    """A device activity [start, end) of class `of`; launched: when the call that enqueued it ended."""
    return Item("activities", {"start_ns": start, "end_ns": end, "class": of, "name": name, "kind": "kernel", **row}, launched, thread)


def compute(start: int, end: int, name: str = "gemm_kernel", **more: Any) -> Item:
    """A compute kernel."""
    return activity(start, end, "compute", name, **{"kernel_class": "gemm", **more})


def fused(start: int, end: int, name: str = "ag_gemm_kernel", **more: Any) -> Item:
    """A kernel that computes and communicates."""
    return activity(start, end, "fused", name, **{"kernel_class": "gemm", "evidence": "name", **more})


def copy(start: int, end: int, **more: Any) -> Item:
    """A copy that is not communication."""
    return activity(start, end, "copy", "Memcpy DtoD", **{"kernel_class": "memory", "kind": "memcpy", **more})


def comm(
    start: int, end: int, collective: str = "all_reduce", *, group: str | None = None, key: str | None = None, stream: int = 20, **more: Any
) -> Item:
    """A kernel of a collective; kernels with the same key are one collective."""
    item = activity(start, end, "comm", "ncclDevKernel", stream=stream, **{"kernel_class": collective, "evidence": "metadata", **more})
    return Item(item.frame, item.row, item.launched, item.thread, key, {"collective": collective, "group": group})


def gloo(start: int, end: int, collective: str = "all_reduce", **row: Any) -> Item:
    """The execution span of a collective on a CPU thread."""
    return Item("collectives", {"start_ns": start, "end_ns": end, "collective": collective, "device": CPU_DEVICE, "stream": NONE, **row})


def op(start: int, end: int, name: str, thread: str = THREAD, **row: Any) -> Item:
    """A CPU operator; enclosing ones become its parents."""
    return Item("ops", {"start_ns": start, "end_ns": end, "name": name, **row}, thread=thread)


def annotation(start: int, end: int, name: str, thread: str = THREAD) -> Item:
    """A user annotation on a CPU thread."""
    return Item("annotations", {"start_ns": start, "end_ns": end, "name": name}, thread=thread)


def call(start: int, end: int, name: str = "cudaDeviceSynchronize", thread: str = THREAD, *, blocking: bool = True) -> Item:
    """A runtime call without an activity."""
    return Item("launches", {"start_ns": start, "end_ns": end, "name": name, "blocking": blocking}, thread=thread)


def step(number: int, start: int, end: int) -> Item:
    """A step as the CPU saw it."""
    return Item("steps", {"step": number, "start_ns": start, "end_ns": end})


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "activities": {"device": 0, "stream": 7, "evidence": "none", "suspected": False, "occupancy": np.nan, "grid": None, "block": None},
    "collectives": {"device": 0, "stream": 20, "kernels": 1, "evidence": "metadata", "order": 0},
    "launches": {"blocking": False},
    "ops": {"is_comm": False},
    "annotations": {},
    "steps": {},
}
_SCHEMAS = {
    "activities": ACTIVITIES,
    "collectives": COLLECTIVES,
    "launches": LAUNCHES,
    "ops": OPS,
    "annotations": ANNOTATIONS,
    "steps": STEPS,
}
_ORDER = {
    "activities": ("rank", "device", "stream", "start_ns"),
    "launches": ("rank", "thread", "start_ns"),
    "collectives": ("rank", "start_ns"),
    "ops": ("rank", "thread", "start_ns", "_longest"),
    "annotations": ("rank", "thread", "start_ns", "_longest"),
    "steps": ("rank", "step"),
}
Row = dict[str, Any]


def trace(*items: Item, rank: int = 0, path: str = "rank0.json") -> Trace:
    """The Trace of one rank with these items, linked."""
    rows = {name: _rows(items, name, rank) for name in _SCHEMAS}
    rows["launches"] += [_launch(row) for row in rows["activities"] if row["_launched"] is not None]
    rows["collectives"] += _collectives(rows["activities"])
    for name, found in rows.items():
        found.sort(key=lambda row: tuple(row.get(column, 0) for column in _ORDER[name]))
    launch_of = {row["_id"]: place for place, row in enumerate(rows["launches"])}
    collective_of = {row["_key"]: place for place, row in enumerate(rows["collectives"])}
    for row in rows["activities"]:
        row["launch"] = launch_of.get(row["_id"], NONE)
        row["collective_id"] = collective_of.get(row["_key"], NONE)
    for name in ("ops", "annotations"):
        _nest(rows[name])
    ranks = {"rank": [rank], "path": [path], "world_size": [1], "base_ns": [0], "tick_ns": [1], "events": [len(items)]}
    missing = {column: [None] for column in ("host", "backend", "rank_evidence", "device_name")}
    columns: dict[str, Any] = {name: _frame(name, found) for name, found in rows.items()}
    return Trace(**columns, ranks=RANKS.frame({**ranks, **missing}), coverage={rank: {"activities": len(rows["activities"])}})


def _rows(items: Sequence[Item], frame: str, rank: int) -> list[Row]:
    return [
        {
            "rank": rank,
            "thread": item.thread,
            **item.row,
            "_longest": -int(item.row["end_ns"]),
            "_launched": item.launched,
            "_id": number,
            "_key": item.key or f"#{number}",
            "_collective": item.collective,
        }
        for number, item in enumerate(items)
        if item.frame == frame
    ]


def _launch(activity: Row) -> Row:
    """The runtime call that enqueued an activity; it ends at the instant given."""
    end = activity["_launched"]
    return {
        "rank": activity["rank"],
        "thread": activity["thread"],
        "start_ns": end - 1,
        "end_ns": end,
        "name": "cudaLaunchKernel",
        "_id": activity["_id"],
    }


def _collectives(activities: Sequence[Row]) -> list[Row]:
    """A row for each key among the communication kernels."""
    found: dict[str, Row] = {}
    for a in activities:
        if not a["_collective"]:
            continue
        launched = NONE if a["_launched"] is None else a["_launched"]
        new = {name: a[name] for name in ("rank", "start_ns", "end_ns", "_key")} | {
            "step": a.get("step", NONE),
            "launch_end_ns": launched,
            "kernels": 0,
        }
        row = found.setdefault(a["_key"], {**new, **a["_collective"], "op": a.get("op", NONE)})
        row["start_ns"], row["end_ns"] = min(row["start_ns"], a["start_ns"]), max(row["end_ns"], a["end_ns"])
        row["kernels"] += 1
    return list(found.values())


def _nest(rows: Sequence[Row]) -> None:
    for i, row in enumerate(rows):
        around = [j for j in range(i) if rows[j]["thread"] == row["thread"] and rows[j]["end_ns"] >= row["end_ns"]]
        row["parent"] = around[-1] if around else NONE


def _frame(name: str, rows: Sequence[Row]) -> pd.DataFrame:
    """The rows with every column of the schema; what an item does not say is unknown."""
    schema = _SCHEMAS[name]
    if not rows:
        return schema.frame()
    missing = {column.name: None if column.dtype == "category" else NONE for column in schema.columns} | dict(_DEFAULTS[name])
    return schema.frame({column: [row.get(column, missing[column]) for row in rows] for column in schema.names})
