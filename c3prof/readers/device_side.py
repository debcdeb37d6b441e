"""Device activities of one file with believable times, and their links: activity ← launch ← operator ← annotation."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.readers.classes import Classified
from c3prof.readers.cpu_side import CpuSide, held_by, step_at, step_number
from c3prof.readers.file import KINDS, File, Int, ranked, whole
from c3prof.readers.links import Links
from c3prof.readers.operations import kernel_classes
from c3prof.readers.scan import MISSING
from c3prof.trace import ACTIVITIES, DEVICE_ANNOTATIONS, NONE

_HOUR_NS = 3_600_000_000_000


def usable(file: File) -> tuple[Int, list[DataWarning]]:
    """Device activities with believable times, sorted by device, stream, start; and what was left out."""
    rows, warnings = file.rows("kernel", "memcpy", "memset"), []

    def without(rows: Int, bad: npt.NDArray[np.bool_], code: str, what: str) -> Int:
        if bad.any():
            first = rows[np.flatnonzero(bad)[0]]
            message = f"{int(bad.sum()):,} device activities {what}; they are left out (first: event {first:,})"
            warnings.append(DataWarning(code, message, int(bad.sum()), file.name))
        return rows[~bad]

    rows = without(rows, file.end[rows] == MISSING, "activity-without-duration", "have no or a negative duration")
    if len(rows):
        away = np.abs(file.start[rows] - np.int64(np.median(file.start[rows]))) > _HOUR_NS
        rows = without(rows, away, "activity-far-away", "start more than an hour from the others")
    device, stream = file.sparse("device", "device", rows, 0), file.sparse("device", "stream", rows, MISSING)
    rows = rows[np.lexsort((file.end[rows], file.start[rows], stream, device))]
    rows = without(rows, _holds_successors(file, rows), "activity-too-long", "hold three or more whole successors of their own stream")
    return rows, warnings


def _holds_successors(file: File, rows: Int) -> npt.NDArray[np.bool_]:
    """Whether a span holds at least three whole later spans of its own stream. Empty ones do not count.

    Times in whole µs make real kernels look empty inside their neighbour; three of them are no damage.
    """
    device, stream = file.sparse("device", "device", rows, 0), file.sparse("device", "stream", rows, MISSING)
    bad = np.zeros(len(rows), bool)
    real = np.flatnonzero(file.end[rows] > file.start[rows])
    if len(real) > 3:
        start, end = file.start[rows[real]], file.end[rows[real]]
        lane = np.cumsum(np.r_[0, (np.diff(device[real]) != 0) | (np.diff(stream[real]) != 0)])
        holds = np.ones(len(real) - 3, bool)
        for later in (1, 2, 3):
            stop = len(real) - 3 + later
            holds &= (lane[later:stop] == lane[:-3]) & (end[later:stop] <= end[:-3]) & (start[later:stop] >= start[:-3])
        bad[real[:-3][holds]] = True
    return bad


def step_of(file: File, rows: Int, links: Links, cpu: CpuSide) -> Int:
    """Step of each activity: of its launch; without launch of the device-side step annotation that holds it; else -1."""
    step = np.full(len(rows), NONE, np.int64)
    known = links.launch >= 0
    step[known] = step_at(cpu.steps, cpu.launches["start_ns"].to_numpy()[links.launch[known]])
    marks = whole(file, file.rows("device_annotation"))
    number = file.strings.lookup(file.scan.events["name"][marks], step_number, np.int64, NONE).astype(np.int64)
    marks, number = marks[number != NONE], number[number != NONE]
    step[~known] = held_by(number, file.start[marks], file.end[marks], file.start[rows[~known]])
    return step


def activities(
    file: File, rows: Int, links: Links, classes: Classified, step: Int, collective_id: npt.NDArray[np.int32], collectives: pd.DataFrame
) -> pd.DataFrame:
    """The activities frame."""
    kinds = ("kernel", "memcpy", "memset")
    kind_codes = np.select([file.kind[rows] == KINDS.index(kind) for kind in kinds], range(3), NONE)
    stream = file.sparse("device", "stream", rows, MISSING)
    columns = {
        "device": file.sparse("device", "device", rows, 0),
        "stream": np.where(stream == MISSING, NONE, stream),
        "start_ns": file.start[rows],
        "end_ns": file.end[rows],
        "name": file.strings.categorical(file.scan.events["name"][rows]),
        "kind": pd.Categorical.from_codes(kind_codes, categories=pd.Index(kinds, dtype=object)),
        "class": classes.activity_class,
        "evidence": classes.evidence,
        "kernel_class": kernel_classes(classes.kernel_class, collective_id, collectives),
        "suspected": classes.suspected,
        "correlation": links.correlation,
        "graph": file.sparse("device", "graph", rows, NONE),
        "launch": links.launch,
        "op": links.op,
        "annotation": links.annotation,
        "collective_id": collective_id,
        "step": step,
        "grid": file.text("device", "grid", rows),
        "block": file.text("device", "block", rows),
        "shared_memory": file.sparse("device", "shared_memory", rows, NONE),
        "registers": file.sparse("device", "registers", rows, NONE),
        "occupancy": file.sparse("device", "occupancy", rows, np.nan),
        "bytes": file.sparse("device", "bytes", rows, NONE),
    }
    return ACTIVITIES.frame(ranked(file, columns))


def device_annotations(file: File) -> pd.DataFrame:
    """The device_annotations frame."""
    rows = whole(file, file.rows("device_annotation"))
    stream = file.sparse("device", "stream", rows, MISSING)
    columns = {
        "device": file.sparse("device", "device", rows, 0),
        "stream": np.where(stream == MISSING, NONE, stream),
        "start_ns": file.start[rows],
        "end_ns": file.end[rows],
        "name": file.strings.categorical(file.scan.events["name"][rows]),
    }
    return DEVICE_ANNOTATIONS.frame(ranked(file, columns))
