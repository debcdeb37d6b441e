"""Who launched each collective: the operator that asked for it, and the annotation or module around it."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.cpu_lanes import innermost_at
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.rows import RANK, texts
from c3prof.kernels import is_comm_op
from c3prof.table import Column, Schema, Table
from c3prof.trace import NONE, Trace

LAUNCHERS = Schema(
    "_launchers",
    "Who launched each collective, a row a row of Trace.collectives, in its order",
    (
        RANK,
        Column("op", "category", "", "nearest operator around its launch that is not communication, else the outermost that is"),
        Column("annotation", "category", "", "nearest annotation or module around its launch that is not torch's own about communication"),
    ),
)


def launchers(trace: Trace) -> Table:
    """The table _launchers of a Trace."""
    op = _climbed(trace.ops, trace.collectives["op"].to_numpy().astype(np.int64))
    note = _climbed(trace.annotations, _annotations(trace))
    note = np.where((note >= 0) & _is_comm(trace.annotations)[note], NONE, note) if len(trace.annotations) else note
    columns = {
        "rank": trace.collectives["rank"].to_numpy(),
        "op": pd.Categorical(_names(trace.ops, op)),
        "annotation": pd.Categorical(_names(trace.annotations, note)),
    }
    return Table.of(LAUNCHERS, columns)


def _annotations(trace: Trace) -> Int64s:
    """Row of the innermost annotation around the launch of each collective: of its first activity, else of its operator."""
    found = np.full(len(trace.collectives), NONE, np.int64)
    ids, notes = (trace.activities[column].to_numpy() for column in ("collective_id", "annotation"))
    rows = np.flatnonzero((ids >= 0) & (notes >= 0))[::-1]
    found[ids[rows]] = notes[rows]
    op = trace.collectives["op"].to_numpy()
    left = np.flatnonzero((found < 0) & (op >= 0))
    threads = trace.ops["thread"].iloc[op[left]].astype(object).to_numpy()
    found[left] = innermost_at(trace.annotations, threads, trace.ops["start_ns"].to_numpy()[op[left]])
    return found


def _climbed(spans: pd.DataFrame, row: Int64s) -> Int64s:
    """The nearest of each span and those around it that is no communication; the outermost where all are."""
    is_comm, parent, found = _is_comm(spans), spans["parent"].to_numpy(), row.copy()
    todo = np.flatnonzero(found >= 0)
    while len(todo):
        todo = todo[is_comm[found[todo]] & (parent[found[todo]] >= 0)]
        found[todo] = parent[found[todo]]
    return found


def _is_comm(spans: pd.DataFrame) -> npt.NDArray[np.bool_]:
    names = spans["name"].cat
    return np.array([*(is_comm_op(str(name)) for name in names.categories), False], bool)[names.codes.to_numpy()]


def _names(spans: pd.DataFrame, row: Int64s) -> npt.NDArray[np.object_]:
    if not len(spans):
        return np.full(len(row), None, object)
    return texts(spans["name"].iloc[np.maximum(row, 0)].array, row < 0)
