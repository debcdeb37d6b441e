"""What a lane is busy with: the instants of each class of work as sets, and which collective an activity belongs to."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.kernels import COMM, COMPUTE, COPY, FUSED

CLASSES = (COMPUTE, COMM, FUSED, COPY)


class Busy(NamedTuple):
    """The instants at which a device is busy, a union over all its streams each.

    p: compute or fused; q: comm or fused; comm, fused, copy: those classes alone; anything: any of them.
    """

    p: Spans
    q: Spans
    comm: Spans
    fused: Spans
    copy: Spans
    anything: Spans


def busy(rows: pd.DataFrame) -> Busy:
    """The busy instants of the activities of one device (schema ACTIVITIES)."""
    start, end, of = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), class_masks(rows)

    def instants(chosen: npt.NDArray[np.bool_]) -> Spans:
        return intervals.union(start[chosen], end[chosen])

    comm, fused = instants(of[COMM]), instants(of[FUSED])
    return Busy(
        p=instants(of[COMPUTE] | of[FUSED]),
        q=instants(of[COMM] | of[FUSED]) if len(fused.starts) else comm,
        comm=comm,
        fused=fused,
        copy=instants(of[COPY]),
        anything=instants(np.ones(len(rows), bool)),
    )


def class_masks(rows: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """For each class which of the activities are of it."""
    names = list(rows["class"].cat.categories)
    codes = rows["class"].cat.codes.to_numpy()
    return {name: codes == names.index(name) if name in names else np.zeros(len(codes), bool) for name in CLASSES}


def computing(rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which of the activities compute: compute or fused."""
    of = class_masks(rows)
    return of[COMPUTE] | of[FUSED]


def collective_keys(rows: pd.DataFrame) -> Int64s:
    """A number for the collective of each activity; an activity without one stands alone, with a negative number."""
    ids = rows["collective_id"].to_numpy().astype(np.int64)
    return np.where(ids >= 0, ids, -1 - np.arange(len(ids)))
