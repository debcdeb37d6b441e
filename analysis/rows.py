"""Rows of the tables of this room: the columns that say where, ratios, notes, and frames put under each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.intervals import Int64s
from c3prof.analysis.steps import Lane
from c3prof.table import Column, Schema

RANK = Column("rank", "int32", "", "global rank; negative when the file does not name it")
DEVICE = Column("device", "object", "", "device number, or cpu for CPU threads (gloo)")
NOTE = Column("note", "object", "", "why a value is unknown")

NO_COMM = "no communication"


def placed(lane: Lane, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the rank and device of the lane."""
    return rows.assign(rank=np.int32(lane.rank), device=pd.Series([lane.label] * len(rows), index=rows.index, dtype=object))


def joined(frames: Sequence[pd.DataFrame], schema: Schema) -> pd.DataFrame | None:
    """The frames under each other with the columns of the schema; None without rows."""
    frames = [frame[schema.names] for frame in frames if len(frame)]
    if not frames:
        return None
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def notes(*reasons: Any) -> str | None:
    """The reasons that are texts, once each; None without any."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if isinstance(reason, str) and reason)) or None


def summed(key: npt.NDArray[Any], values: Int64s, n: int) -> Int64s:
    """Exact sum of the values of each key 0 … n-1."""
    sums = np.zeros(n, np.int64)
    np.add.at(sums, key, values)
    return sums


def texts(values: Any, missing: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.object_]:
    """Values as objects, None where they are missing (NaN, None, or told by `missing`)."""
    result = np.asarray(pd.Series(values).astype(object).to_numpy(), object).copy()
    result[pd.isna(result)] = None
    if missing is not None:
        result[missing] = None
    return result
