"""The collectors' line files → frames of one rank."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.readers.operations import sizes
from c3prof.records import CollectiveRecord, EventRecord, GroupRecord, PowerRecord, StepRecord
from c3prof.trace import COUNTERS, CPU_DEVICE, NONE, RECORDED_COLLECTIVES, RECORDED_STEPS

Record = TypeVar("Record")

_COUNTERS = {
    "power_w": "power [W]",
    "sm_clock_mhz": "SM clock [MHz]",
    "memory_clock_mhz": "memory clock [MHz]",
    "temperature_c": "temperature [°C]",
}


@dataclass(frozen=True)
class Lines(Generic[Record]):
    """The records of a line file in their order, and what could not be read."""

    records: Sequence[Record]
    warnings: Sequence[DataWarning] = ()


def lines(path: Path, kind: type[Record], name: str) -> Lines[Record]:
    """The records of a line file; none when there is no such file. Lines that cannot be read are counted and left out."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Lines(())
    except OSError as error:
        return Lines((), (DataWarning("unreadable", f"cannot be read ({error.strerror or error})", path=name),))
    decoder = msgspec.json.Decoder(kind)
    try:
        if _MAYBE_HUGE.search(content):
            return _line_by_line(content, decoder, name)
        return Lines(decoder.decode_lines(content))
    except (msgspec.DecodeError, RecursionError):
        return _line_by_line(content, decoder, name)


_MAYBE_HUGE = re.compile(rb"9[2-9]\d{17}|\d{20}")
"""Digits that may be a number outside int64; rare, so that the lines of most files need no second look."""


def fits(record: object) -> bool:
    """Whether every whole number of a record fits a column of int64."""
    return all(abs(value) < 2**63 for value in vars(record).values() if isinstance(value, int))


def _line_by_line(content: bytes, decoder: Any, name: str) -> Lines[Any]:
    records, bad, first, at = [], 0, 0, 0
    for line in content.split(b"\n"):
        try:
            if line.strip():
                record = decoder.decode(line)
                if not fits(record):
                    raise msgspec.ValidationError("a number outside int64")
                records.append(record)
        except (msgspec.DecodeError, RecursionError):
            bad, first = bad + 1, first if bad else at
        at += len(line) + 1
    if not bad:
        return Lines(records)
    message = f"{bad} of {bad + len(records)} lines cannot be read, the first at byte {first:,}; the others are used"
    return Lines(records, (DataWarning("bad-line", message, bad, name),))


def recorded_steps(records: Sequence[StepRecord], rank: int) -> pd.DataFrame:
    """The frame recorded_steps of a rank, sorted by step."""
    records = sorted(records, key=lambda record: record.step)
    return RECORDED_STEPS.frame(
        {
            "rank": np.full(len(records), rank, np.int32),
            "step": [record.step for record in records],
            "start_ns": [record.start_ns for record in records],
            "end_ns": [record.end_ns for record in records],
            "cpu_ns": [_number(record.cpu_ns) for record in records],
            "phase": [record.phase for record in records],
            "window": [_number(record.window) for record in records],
        }
    )


def recorded_collectives(records: Sequence[CollectiveRecord], groups: Sequence[GroupRecord], rank: int) -> pd.DataFrame:
    """The frame recorded_collectives of a rank, sorted by call. Its end is -1 where the host did not learn it."""
    records = sorted(records, key=lambda record: record.call_ns)
    known = {group.name: group for group in groups}
    absent = GroupRecord("")
    group_of = [known.get(record.group, absent) for record in records]
    kind = np.array([record.collective for record in records], object)
    dtype = np.array([record.dtype or "" for record in records], object)
    group_size = np.array([group.size or NONE for group in group_of], np.int64)
    inputs, outputs = (
        np.array([_elements(size, r.itemsize) for r, size in zip(records, bytes_, strict=True)], np.int64)
        for bytes_ in ([r.in_bytes for r in records], [r.out_bytes for r in records])
    )
    return RECORDED_COLLECTIVES.frame(
        {
            "rank": np.full(len(records), rank, np.int32),
            "device": np.full(len(records), CPU_DEVICE, np.int32),
            "start_ns": [record.call_ns for record in records],
            "end_ns": [_number(record.end_ns) for record in records],
            "collective": kind,
            "group": [record.group for record in records],
            "group_desc": [group.desc for group in group_of],
            "group_size": group_size,
            "group_ranks": [json.dumps(list(group.ranks), separators=(",", ":")) if group.ranks else None for group in group_of],
            "seq": [_number(record.seq) for record in records],
            "dtype": [record.dtype for record in records],
            "in_elements": inputs,
            "out_elements": outputs,
            "size_bytes": sizes(kind, inputs, outputs, group_size, dtype),
            "peer": [_number(record.peer) for record in records],
            "step": [record.step for record in records],
            "launch_end_ns": [record.return_ns for record in records],
            "evidence": ["hook"] * len(records),
            "wait_start_ns": [_number(record.wait_start_ns) for record in records],
            "blocked_ns": [_number(record.blocked_ns) for record in records],
            "asynchronous": [record.asynchronous for record in records],
            "phase": [record.phase for record in records],
        }
    )


def with_device_times(collectives: pd.DataFrame, events: Sequence[EventRecord], device: int) -> pd.DataFrame:
    """recorded_collectives with what the device measured: start where the caller's stream reached the call, end, and blocked_ns.

    blocked_ns is then how long the caller's stream waited (end of the collective after it reached the wait); the host of a
    GPU does not. Operations without an event keep the host's start and have no end.
    """
    known = {(event.step, event.group, event.seq): event for event in events if event.group is not None and event.end_ns is not None}
    keys = zip(collectives["step"].tolist(), collectives["group"].astype(object).tolist(), collectives["seq"].tolist(), strict=True)
    found = [known.get(key) for key in keys]
    if not any(found):
        return collectives
    start, end, wait, blocked = (collectives[name].to_numpy(copy=True) for name in ("start_ns", "end_ns", "wait_start_ns", "blocked_ns"))
    for at, event in enumerate(found):
        if event is None or event.end_ns is None:
            continue
        start[at] = event.ready_ns if event.ready_ns is not None else start[at]
        end[at] = event.end_ns
        if event.reached_ns is not None:
            wait[at], blocked[at] = event.reached_ns, max(0, event.end_ns - event.reached_ns)
    on_device = np.where([event is not None for event in found], device, collectives["device"]).astype(np.int32)
    return collectives.assign(start_ns=start, end_ns=end, wait_start_ns=wait, blocked_ns=blocked, device=on_device)


def counters(records: Sequence[PowerRecord], rank: int) -> pd.DataFrame:
    """Power, clocks and temperature as counter samples, sorted by time."""
    rows = [(r.at_ns, text, float(value)) for r in records for field, text in _COUNTERS.items() if (value := getattr(r, field)) is not None]
    if not rows:
        return COUNTERS.frame()
    at, name, value = zip(*sorted(rows), strict=True)
    return COUNTERS.frame({"rank": np.full(len(rows), rank, np.int32), "at_ns": at, "name": name, "value": value})


def _number(value: int | None) -> int:
    return NONE if value is None else value


def _elements(size: int, itemsize: int) -> int:
    return size // itemsize if itemsize else 0
