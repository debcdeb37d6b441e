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
    "activities": ["rank", "device", "stream", "start_ns"],
    "launches": ["rank", "thread", "start_ns"],
    "collectives": ["rank", "start_ns"],
    "steps": ["rank", "step"],
}


def trace(*items: Item, rank: int = 0, path: str = "rank0.json") -> Trace:
    """The Trace of one rank with these items, linked."""
    activities = _rows(items, "activities", rank)
    launches = [
        *_rows(items, "launches", rank),
        *({"rank": rank, "thread": a["_thread"], "start_ns": a["_launched"] - 1, "end_ns": a["_launched"], "name": "cudaLaunchKernel", "_id": a["_id"]}
          for a in activities if a["_launched"] is not None),
    ]  # fmt: skip
    collectives = [*_rows(items, "collectives", rank), *_collectives(activities)]
    frames = {
        "activities": _frame("activities", activities),
        "launches": _frame("launches", launches),
        "collectives": _frame("collectives", collectives),
        "ops": _nested("ops", _rows(items, "ops", rank)),
        "annotations": _nested("annotations", _rows(items, "annotations", rank)),
        "steps": _frame("steps", _rows(items, "steps", rank)),
    }
    activity_frame = frames["activities"]
    activity_frame["launch"] = _positions(frames["launches"], "_id", activity_frame["_id"])
    activity_frame["collective_id"] = _positions(frames["collectives"], "_key", activity_frame["_key"])
    ranks = {"rank": [rank], "path": [path], "world_size": [1], "base_ns": [0], "tick_ns": [1], "events": [len(items)]}
    missing = {column: [None] for column in ("host", "backend", "rank_evidence", "device_name")}
    columns: dict[str, Any] = {name: _SCHEMAS[name].frame(frame[_SCHEMAS[name].names]) for name, frame in frames.items()}
    return Trace(
        **columns,
        ranks=RANKS.frame({**ranks, **missing}),
        coverage={rank: {"activities": len(activities)}},
    )


def _rows(items: Sequence[Item], frame: str, rank: int) -> list[dict[str, Any]]:
    found = [(number, item) for number, item in enumerate(items) if item.frame == frame]
    return [
        {
            "rank": rank,
            "thread": item.thread,
            **item.row,
            "_thread": item.thread,
            "_launched": item.launched,
            "_id": number,
            "_key": item.key or f"#{number}",
            "_collective": item.collective,
        }
        for number, item in found
    ]


def _collectives(activities: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each key among the communication kernels."""
    found: dict[str, dict[str, Any]] = {}
    for a in activities:
        if not a["_collective"]:
            continue
        row = found.setdefault(
            a["_key"],
            {
                "rank": a["rank"],
                "start_ns": a["start_ns"],
                "end_ns": a["end_ns"],
                "kernels": 0,
                "_key": a["_key"],
                "step": a.get("step", NONE),
            }
            | dict(a["_collective"])
            | {"launch_end_ns": NONE if a["_launched"] is None else a["_launched"]},
        )
        row["start_ns"], row["end_ns"] = min(row["start_ns"], a["start_ns"]), max(row["end_ns"], a["end_ns"])
        row["kernels"] += 1
    return list(found.values())


def _frame(name: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows with every column of the schema, sorted as the schema says; columns with _ are kept for linking."""
    schema = _SCHEMAS[name]
    columns: dict[str, Any] = {}
    for column in schema.columns:
        missing = _DEFAULTS[name].get(column.name, None if column.dtype == "category" else NONE)
        columns[column.name] = pd.Series([row.get(column.name, missing) for row in rows], dtype=object)
    for extra in ("_id", "_key"):
        columns[extra] = pd.Series([row.get(extra) for row in rows], dtype=object)
    return pd.DataFrame(columns).sort_values(_ORDER.get(name, ["rank"]), kind="stable", ignore_index=True)


def _nested(name: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Spans of CPU threads sorted as the schema says, with parents."""
    rows = sorted(rows, key=lambda row: (row["thread"], row["start_ns"], -row["end_ns"]))
    frame, parents = _frame(name, rows), []
    for i, row in enumerate(rows):
        around = [j for j in range(i) if rows[j]["thread"] == row["thread"] and rows[j]["end_ns"] >= row["end_ns"]]
        parents.append(around[-1] if around else NONE)
    return frame.assign(parent=pd.Series(parents, dtype=object))


def _positions(frame: pd.DataFrame, key: str, wanted: pd.Series) -> list[int]:
    place = {value: position for position, value in enumerate(frame[key].tolist()) if value is not None}
    return [place.get(value, NONE) for value in wanted.tolist()]
