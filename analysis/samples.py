"""Which durations show an activity alone and which beside a co-runner (docs/metrics.md §3, Samples)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.intervals import Int64s
from c3prof.analysis.pairs import SharedTime, shared_time
from c3prof.analysis.segments import Segments
from c3prof.analysis.signatures import Signatures, signatures
from c3prof.kernels import COMM, COMPUTE
from c3prof.trace import NONE, Trace

BoolArray = npt.NDArray[np.bool_]

CLEAN, OVERLAPPED, MIXED, SLIGHT, OWN_STREAM, FIRST_STEP, NO_SAMPLE = range(7)
USES = ("clean", "overlapped", "mixed", "slightly shared", "same-stream overlap", "first step", "no sample")
"""What a sample is used for, by code."""

MIXED_LABEL = "mixed"
UNION_OF_COMPUTE = "compute"

CLEAN_BELOW, OVERLAPPED_FROM = 0.01, 0.05
"""Shares of a duration: shared with anything for less, it is clean; with one co-runner from the other on, overlapped."""

_STEPS_TO_SPARE = 3
PARTS_OF_STEP = 16


@dataclass(frozen=True)
class Samples:
    """One sample an activity of class compute or comm of one device; arrays of equal length, by stream and start.

    own_label: of each signature, as the co-runner that it is to others;
    row: position in the activities of the device; use: code of USES; label: code of the co-runner in `labels` (that of
    MIXED_LABEL for several, -1 for none); duration, shared: ns, shared with that co-runner (with all for MIXED);
    step: as recorded, -1 none; part: which sixteenth of its step's activities it belongs to, in order of start; place: n-th of its name on its stream in the step;
    phase: serialized, concurrent, discarded or None of its step; after_wait: the
    stream stood still before it because the host had waited for the device.
    """

    marks: Signatures
    labels: list[str]
    own_label: Int64s
    row: Int64s
    signature: Int64s
    comm: BoolArray
    use: Int64s
    label: Int64s
    duration: Int64s
    shared: Int64s
    step: Int64s
    part: Int64s
    place: Int64s
    phase: npt.NDArray[np.object_]
    after_wait: BoolArray
    first_step_included: bool


def samples(trace: Trace, rows: pd.DataFrame, shared: SharedTime | None = None) -> Samples:
    """The Samples of the activities of one device (rows: by stream and start)."""
    shared = shared or shared_time(rows)
    marks = signatures(trace, rows)
    duration = rows["end_ns"].to_numpy() - rows["start_ns"].to_numpy()
    comm = (rows["class"] == COMM).to_numpy(dtype=bool)
    use, label, shared_ns = _uses(shared, duration, comm)
    step = rows["step"].to_numpy()
    first, included = first_steps(step)
    use = np.where(first & np.isin(use, (CLEAN, OVERLAPPED, MIXED, SLIGHT)), FIRST_STEP, use)
    chosen = np.flatnonzero((comm | (rows["class"] == COMPUTE).to_numpy(dtype=bool)) & (duration > 0))
    return Samples(
        marks,
        [*shared.labels, UNION_OF_COMPUTE, MIXED_LABEL],
        shared.label[marks.first],
        chosen,
        marks.code[chosen],
        comm[chosen],
        use[chosen],
        label[chosen],
        duration[chosen],
        shared_ns[chosen],
        step[chosen],
        _parts(step, rows["start_ns"].to_numpy())[chosen],
        marks.place[chosen],
        _phases(trace, rows, step)[chosen],
        _after_wait(trace, rows)[chosen],
        included,
    )


def _uses(shared: SharedTime, duration: Int64s, comm: BoolArray) -> tuple[Int64s, Int64s, Int64s]:
    """Use, co-runner and time shared with it. A collective sees all compute as one co-runner: it spans many kernels."""
    n, codes = len(duration), len(shared.labels)
    most, most_code, together = np.zeros(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)
    for code, name in enumerate(shared.labels):
        single = np.where(comm & name.startswith(COMPUTE + ":"), 0, shared.by_label[code])
        together += single
        bigger = single > most
        most, most_code = np.where(bigger, single, most), np.where(bigger, code, most_code)
    computing = np.where(comm, shared.compute, 0)
    together += computing
    bigger = computing > most
    most, most_code = np.where(bigger, computing, most), np.where(bigger, codes, most_code)
    clean = shared.any_other < CLEAN_BELOW * duration
    overlapped = most >= OVERLAPPED_FROM * duration
    alone = together - most < OVERLAPPED_FROM * duration
    own = (shared.own_stream > 0) & (shared.own_stream >= CLEAN_BELOW * duration)
    use = np.select([own, clean, overlapped & alone, overlapped], [OWN_STREAM, CLEAN, OVERLAPPED, MIXED], SLIGHT)
    label = np.select([use == OVERLAPPED, use == MIXED], [most_code, codes + 1], -1)
    return use, label, np.where(use == MIXED, shared.any_other, np.where(use == OVERLAPPED, most, 0))


def first_steps(step: Int64s) -> tuple[BoolArray, bool]:
    """Which activities belong to the first step of a recording window, and whether some window had too few steps to spare it.

    A window is a run of consecutive step numbers.
    """
    steps = np.unique(step[step != NONE])
    begins = np.flatnonzero(np.append(True, np.diff(steps) != 1)) if len(steps) else np.zeros(0, np.int64)
    sizes = np.diff(np.append(begins, len(steps)))
    return np.isin(step, steps[begins[sizes >= _STEPS_TO_SPARE]]), bool(not len(steps) or (sizes < _STEPS_TO_SPARE).any())


def _parts(step: Int64s, start: Int64s) -> Int64s:
    """Which sixteenth of its step's activities each belongs to, in order of start."""
    steps, number = np.unique(step, return_inverse=True)
    order = np.lexsort((start, number))
    in_order = Segments(number[order], len(steps))
    part = np.empty(len(step), np.int64)
    part[order] = PARTS_OF_STEP * in_order.ordinals() // np.maximum(in_order.sizes[in_order.label], 1)
    return part


def _phases(trace: Trace, rows: pd.DataFrame, step: Int64s) -> npt.NDArray[np.object_]:
    phases = np.full(len(step), None, object)
    if not len(rows) or "phase" not in trace.steps or not trace.steps["phase"].notna().any():
        return phases
    mine = trace.steps[trace.steps["rank"] == rows["rank"].iloc[0]]
    known = dict(zip(mine["step"].tolist(), mine["phase"].astype(object).tolist(), strict=True))
    numbers, place = np.unique(step, return_inverse=True)
    return np.array([known.get(int(number)) for number in numbers], object)[place]


def _after_wait(trace: Trace, rows: pd.DataFrame) -> BoolArray:
    """Whether the host waited for the device between the launches of an activity and of the one before it on its stream."""
    launch = rows["launch"].to_numpy()
    blocking = np.sort(trace.launches["end_ns"].to_numpy()[trace.launches["blocking"].to_numpy(dtype=bool)])
    if not len(blocking) or not len(rows):
        return np.zeros(len(rows), bool)
    waits = np.searchsorted(blocking, np.append(trace.launches["start_ns"].to_numpy(), 0)[launch], side="right")
    stream, start, end = (rows[name].to_numpy() for name in ("stream", "start_ns", "end_ns"))
    after = np.zeros(len(rows), bool)
    after[1:] = (launch[1:] >= 0) & (launch[:-1] >= 0) & (stream[1:] == stream[:-1]) & (waits[1:] > waits[:-1]) & (start[1:] > end[:-1])
    return after
