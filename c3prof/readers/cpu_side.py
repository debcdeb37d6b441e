"""Frames of the CPU side of one file: steps, operators, annotations, launches, and who encloses whom."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from c3prof import kernels
from c3prof.readers.file import File, Int, Threads, ranked, thread_column, threads, whole
from c3prof.readers.nesting import Nesting, innermost, nesting
from c3prof.trace import ANNOTATIONS, LAUNCHES, NONE, OPS, STEPS

_STEP = re.compile(r"ProfilerStep#(\d{1,18})$")


@dataclass(frozen=True)
class CpuSide:
    """Frames of the CPU side; op_rows: the event behind each row of ops."""

    steps: pd.DataFrame
    ops: pd.DataFrame
    annotations: pd.DataFrame
    launches: pd.DataFrame
    op_rows: Int


def cpu_side(file: File) -> CpuSide:
    """The CPU side of a file: steps, operators, annotations and launches, nested by time on each thread."""
    on = threads(file)
    number = file.strings.lookup(file.scan.events["name"], step_number, np.int64, NONE).astype(np.int64)
    steps = _steps(file, number)
    op_rows, op_nesting = _nested(file, on, "op", number)
    note_rows, note_nesting = _nested(file, on, "annotation", number)
    return CpuSide(
        steps=steps,
        ops=_ops(file, on, op_rows, op_nesting, steps),
        annotations=_annotations(file, on, note_rows, note_nesting),
        launches=_launches(file, on, (op_rows, op_nesting), (note_rows, note_nesting)),
        op_rows=op_rows,
    )


def step_number(text: str) -> int:
    """The number in ProfilerStep#n, -1 for another text."""
    found = _STEP.match(text)
    return int(found[1]) if found else NONE


def step_at(steps: pd.DataFrame, at: Int) -> Int:
    """The step of the steps frame whose range [start_ns, end_ns) holds each instant, -1 for none."""
    return held_by(steps["step"].to_numpy(), steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy(), at)


def held_by(number: Int, start: Int, end: Int, at: Int) -> Int:
    """The number of the range [start, end) that holds each instant, -1 for none."""
    if not len(number):
        return np.full(len(at), NONE, np.int64)
    by_start = np.argsort(start, kind="stable")
    start, end, number = start[by_start], end[by_start], number[by_start]
    last = np.searchsorted(start, at, side="right") - 1
    inside = (last >= 0) & (at < end[last])
    return np.where(inside, number[last], NONE)


def _steps(file: File, number: Int) -> pd.DataFrame:
    """The steps frame; a number that occurs twice keeps its first marker."""
    rows = whole(file, file.rows("annotation", "op"))
    rows = rows[number[rows] != NONE]
    rows = rows[np.lexsort((file.start[rows], number[rows]))]
    rows = rows[np.unique(number[rows], return_index=True)[1]]
    return STEPS.frame(ranked(file, {"step": number[rows], "start_ns": file.start[rows], "end_ns": file.end[rows]}))


def _nested(file: File, on: Threads, kind: str, number: Int) -> tuple[Int, Nesting]:
    """Events of a kind that are no step markers, in the order of their nesting."""
    rows = whole(file, file.rows(kind))
    rows = rows[number[rows] == NONE]
    nest = nesting(on.codes[rows], file.start[rows], file.end[rows])
    return rows[nest.order], nest


def _ops(file: File, on: Threads, rows: Int, nest: Nesting, steps: pd.DataFrame) -> pd.DataFrame:
    events = file.scan.events
    columns = {
        "thread": thread_column(on, rows),
        "start_ns": file.start[rows],
        "end_ns": file.end[rows],
        "name": file.strings.categorical(events["name"][rows]),
        "external_id": events["external_id"][rows],
        "parent": nest.parent,
        **{column: file.text("ops", column, rows) for column in ("dims", "types", "strides", "concrete")},
        "is_comm": file.strings.lookup(events["name"][rows], kernels.is_comm_op, bool, absent=False),
        "step": step_at(steps, file.start[rows]),
    }
    return OPS.frame(ranked(file, columns))


def _annotations(file: File, on: Threads, rows: Int, nest: Nesting) -> pd.DataFrame:
    columns = {
        "thread": thread_column(on, rows),
        "start_ns": file.start[rows],
        "end_ns": file.end[rows],
        "name": file.strings.categorical(file.scan.events["name"][rows]),
        "parent": nest.parent,
        "dims": file.text("ops", "dims", rows),
        "types": file.text("ops", "types", rows),
    }
    return ANNOTATIONS.frame(ranked(file, columns))


def _launches(file: File, on: Threads, ops: tuple[Int, Nesting], annotations: tuple[Int, Nesting]) -> pd.DataFrame:
    rows = whole(file, file.rows("launch"))
    rows = rows[np.lexsort((file.start[rows], on.codes[rows]))]
    thread, start, events = on.codes[rows], file.start[rows], file.scan.events
    columns = {
        "thread": thread_column(on, rows),
        "start_ns": start,
        "end_ns": file.end[rows],
        "name": file.strings.categorical(events["name"][rows]),
        "correlation": np.maximum(events["correlation"][rows], NONE),
        "op": innermost(ops[1], thread, start, on.codes[ops[0]]),
        "annotation": innermost(annotations[1], thread, start, on.codes[annotations[0]]),
        "blocking": file.strings.lookup(events["name"][rows], kernels.is_blocking_call, bool, absent=False),
    }
    return LAUNCHES.frame(ranked(file, columns))
