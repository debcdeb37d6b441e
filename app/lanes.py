"""The lanes of the timeline: which rows of a Trace stand in which line, rank by rank.

Under a rank: its steps; for each device what was hidden and exposed, the device's streams and annotations; collectives that ran on
CPU threads; then the CPU threads with their launches and, by depth, annotations and operators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.cpu_lanes import cpu_activities
from c3prof.app.levels import Pyramid, Spans, pyramid
from c3prof.renderers.perfetto import overlap_edges
from c3prof.trace import ACTIVITIES, CPU_DEVICE, Trace

CLASSES = ("compute", "comm", "fused", "copy", "hidden", "exposed", "launch", "blocking", "op", "comm_op", "annotation", "step")
"""What the class codes of a lane stand for, in order."""

DEPTHS = 6
"""Nested operators and annotations are shown to this depth."""

_CPU_SECTION = "CPU communication"
_CODE = {name: code for code, name in enumerate(CLASSES)}
Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Lane:
    """One line of the timeline.

    key: stable name, for links; section: device or CPU thread that it belongs to; frame: the Trace frame that its rows are in,
    "" for lanes that are computed; rows: position in that frame of each span; shown: whether it is visible at first.
    """

    key: str
    rank: int
    section: str
    label: str
    frame: str
    rows: npt.NDArray[np.int32]
    pyramid: Pyramid
    shown: bool = True

    def __len__(self) -> int:
        return len(self.pyramid.spans)


def lanes(trace: Trace) -> Iterator[Lane]:
    """Every lane of the trace that holds a span, in order of display."""
    cpu = ACTIVITIES.frame() if len(trace.activities) else cpu_activities(trace)
    for rank in trace.rank_numbers:
        frames = {name: _of_rank(getattr(trace, name), rank) for name in _FRAMES} | {"cpu": _of_rank(cpu, rank)}
        yield from (lane for lane in _rank_lanes(rank, frames) if len(lane))


_FRAMES = ("steps", "activities", "device_annotations", "collectives", "launches", "annotations", "ops")


def _of_rank(frame: pd.DataFrame, rank: int) -> pd.DataFrame:
    """The rows of one rank, which are neighbours, with their positions in the whole frame as index."""
    low, high = np.searchsorted(frame["rank"].to_numpy(), [rank, rank + 1])
    part = frame.iloc[low:high]
    part.index = pd.RangeIndex(low, high)
    return part


def _rank_lanes(rank: int, frames: Frames) -> Iterator[Lane]:
    on_device = len(frames["activities"]) > 0
    yield _lane(f"r{rank}/steps", rank, "", "steps", "steps", frames["steps"], _CODE["step"])
    yield from _device_lanes(rank, frames)
    if len(frames["cpu"]):
        yield _overlap_lane(rank, f"r{rank}/c", _CPU_SECTION, frames["cpu"])
    yield from _cpu_collective_lanes(rank, frames["collectives"])
    yield from _thread_lanes(rank, frames, on_device=on_device)


def _lane(
    key: str, rank: int, section: str, label: str, frame: str, rows: pd.DataFrame, cls: npt.NDArray[np.uint8] | int, *, shown: bool = True
) -> Lane:
    codes = np.full(len(rows), cls, np.uint8) if isinstance(cls, int) else cls
    start, end, positions = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), rows.index.to_numpy(np.int32)
    if len(start) > 1 and (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end, codes, positions = start[order], end[order], codes[order], positions[order]
    spans = Spans(start, np.maximum(end, start), codes)
    return Lane(key, rank, section, label, frame, positions, pyramid(spans), shown)


def _device_lanes(rank: int, frames: Frames) -> Iterator[Lane]:
    activities, annotations = frames["activities"], frames["device_annotations"]
    for device, of_device in _parts(activities, "device"):
        section = f"device {device}"
        classes = _class_codes(of_device)
        yield _overlap_lane(rank, f"r{rank}/d{device}", section, of_device)
        for stream, rows in _parts(of_device, "stream"):
            codes = classes[rows.index[0] - of_device.index[0] : rows.index[-1] + 1 - of_device.index[0]]
            yield _lane(f"r{rank}/d{device}/s{stream}", rank, section, f"stream {stream}", "activities", rows, codes)
        for stream, rows in _parts(annotations[annotations["device"] == device], "stream"):
            key, label = f"r{rank}/d{device}/a{stream}", f"annotations on {stream}"
            yield _lane(key, rank, section, label, "device_annotations", rows, _CODE["annotation"], shown=False)


def _parts(frame: pd.DataFrame, column: str) -> Iterator[tuple[int | str, pd.DataFrame]]:
    """Runs of neighbours with one value, which are all rows of it, since the frame is sorted; else the rows gathered by value."""
    if not len(frame):
        return
    values = frame[column].cat.codes.to_numpy() if isinstance(frame[column].dtype, pd.CategoricalDtype) else frame[column].to_numpy()
    edges = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))
    if len(np.unique(values[edges[:-1]])) == len(edges) - 1:
        for low, high in pairwise(edges):
            yield frame[column].iloc[low], frame.iloc[low:high]
        return
    for value in pd.unique(values):
        rows = frame[values == value]
        yield rows[column].iloc[0], rows


def _class_codes(activities: pd.DataFrame) -> npt.NDArray[np.uint8]:
    classes = activities["class"].astype("category").cat
    lookup = np.array([_CODE.get(str(name), _CODE["compute"]) for name in classes.categories] or [0], np.uint8)
    return lookup[classes.codes.to_numpy()]


def _overlap_lane(rank: int, key: str, section: str, activities: pd.DataFrame) -> Lane:
    """Communication of a device over all streams, cut where compute starts or ends beside it: hidden or exposed."""
    edges, hidden, exposed = overlap_edges(activities)
    communicates = np.flatnonzero(hidden[:-1] | exposed[:-1])
    codes = np.where(hidden[communicates], _CODE["hidden"], _CODE["exposed"]).astype(np.uint8)
    spans = Spans(edges[communicates], edges[communicates + 1], codes)
    return Lane(f"{key}/overlap", rank, section, "communication", "", np.full(len(spans), -1, np.int32), pyramid(spans))


def _cpu_collective_lanes(rank: int, collectives: pd.DataFrame) -> Iterator[Lane]:
    on_cpu = collectives[collectives["device"] == CPU_DEVICE]
    for group in pd.unique(on_cpu["group"].astype(object).fillna("")):
        rows = on_cpu[on_cpu["group"].astype(object).fillna("") == group]
        label = f"group {group}" if group else "collectives"
        yield _lane(f"r{rank}/c/{group}", rank, _CPU_SECTION, label, "collectives", rows, _CODE["comm"])


def _thread_lanes(rank: int, frames: Frames, *, on_device: bool) -> Iterator[Lane]:
    launches, annotations, ops = frames["launches"], frames["annotations"], frames["ops"]
    threads = dict.fromkeys(str(t) for frame in (launches, annotations, ops) for t in frame["thread"].dropna().unique())
    nested = {"annotations": _by_depth(annotations), "ops": _by_depth(ops)}
    for thread in threads:
        section, key = f"thread {thread}", f"r{rank}/t{thread}"
        mine = launches[launches["thread"] == thread]
        codes = np.where(mine["blocking"].to_numpy(bool), _CODE["blocking"], _CODE["launch"]).astype(np.uint8)
        yield _lane(f"{key}/launches", rank, section, "launches", "launches", mine, codes)
        for depth, rows in enumerate(nested["annotations"]):
            part = rows[rows["thread"] == thread]
            label = f"annotations {depth}" if depth else "annotations"
            yield _lane(f"{key}/annotations{depth}", rank, section, label, "annotations", part, _CODE["annotation"], shown=not depth)
        for depth, rows in enumerate(nested["ops"]):
            part = rows[rows["thread"] == thread]
            codes = np.where(part["is_comm"].to_numpy(bool), _CODE["comm_op"], _CODE["op"]).astype(np.uint8)
            shown = not on_device and depth < 2
            yield _lane(f"{key}/ops{depth}", rank, section, f"operators {depth}" if depth else "operators", "ops", part, codes, shown=shown)


def _by_depth(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of each depth of nesting, outermost first, down to DEPTHS."""
    first = frame.index[0] if len(frame) else 0
    parent = frame["parent"].to_numpy(np.int64)
    parent = np.where(parent >= 0, parent - first, -1)
    depth = np.zeros(len(frame), np.int8)
    nested = np.flatnonzero(parent >= 0)
    for _ in range(DEPTHS):
        depth[nested] = np.minimum(depth[parent[nested]] + 1, DEPTHS)
    return [frame[depth == d] for d in range(DEPTHS) if (depth == d).any()]
