"""Links from device activities to the CPU side: launch by correlation id, operator by time or External id."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c3prof.readers.cpu_side import CpuSide
from c3prof.readers.file import File, Int
from c3prof.trace import NONE


@dataclass(frozen=True)
class Links:
    """Per activity: row in launches, ops, annotations (-1 none), correlation id, and whether it is part of a graph replay."""

    launch: Int
    op: Int
    annotation: Int
    correlation: Int
    replayed: npt.NDArray[np.bool_]


def links(file: File, rows: Int, cpu: CpuSide) -> Links:
    """The links of the activities `rows`."""
    launches, ops = cpu.launches, cpu.ops
    events = file.scan.events
    correlation = events["correlation"][rows]
    correlation = np.where(correlation > 0, correlation, NONE)  # 0 is what writers put when there is none
    launch = _position_of(launches["correlation"].to_numpy(), correlation)
    known = launch >= 0
    op, annotation = np.full(len(rows), NONE, np.int64), np.full(len(rows), NONE, np.int64)
    op[known] = launches["op"].to_numpy()[launch[known]]
    annotation[known] = launches["annotation"].to_numpy()[launch[known]]
    # Old files repeat the correlation id as External id: that names no operator.
    external = events["external_id"][rows]
    by_id = (op < 0) & (external > 0) & (external != correlation)
    op[by_id] = _position_of(ops["external_id"].to_numpy(), external[by_id])
    graph_call = launches["name"].str.contains("GraphLaunch", regex=False).to_numpy(dtype=bool) if len(launches) else np.zeros(0, bool)
    replayed = file.sparse("device", "graph", rows, NONE) > 0
    replayed[known] |= graph_call[launch[known]]
    return Links(launch, op, annotation, correlation, replayed)


def _position_of(table: Int, wanted: Int) -> Int:
    """First position of each wanted id in the table, -1 when it is not there or is not positive."""
    usable = np.flatnonzero(table > 0)
    if not len(usable) or not len(wanted):
        return np.full(len(wanted), NONE, np.int64)
    order = usable[np.argsort(table[usable], kind="stable")]
    at = np.minimum(np.searchsorted(table[order], wanted), len(order) - 1)
    found = order[at]
    return np.where((table[found] == wanted) & (wanted > 0), found, NONE)
