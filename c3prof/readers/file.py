"""What the steps of reading one Kineto file share: the scan, which event is what, threads and times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.readers.scan import MISSING, Scan
from c3prof.readers.strings import Strings, categorical
from c3prof.trace import NONE

Int = npt.NDArray[np.int64]

KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "launch",
    "cuda_driver": "launch",
    "hip_runtime": "launch",
    "hip_driver": "launch",
    "xpu_runtime": "launch",
    "xpu_driver": "launch",
    "privateuse1_runtime": "launch",
    "privateuse1_driver": "launch",
    "runtime": "launch",
    "driver": "launch",
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "annotation",
    "python_function": "annotation",
    "gpu_user_annotation": "device_annotation",
}


@dataclass(frozen=True)
class File:
    """What the steps below share: the scan, its strings, which event is what, and the rank it goes to."""

    scan: Scan
    strings: Strings
    kind: npt.NDArray[np.object_]
    start: Int
    end: Int
    rank: int
    name: str

    def rows(self, *kinds: str) -> Int:
        """Events of the kinds, in file order."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    def sparse(self, group: str, column: str, rows: Int, absent: float) -> npt.NDArray[Any]:
        """A column of one of the scan's sparse groups for the given events."""
        table = getattr(self.scan, group)
        out = np.full(len(rows), absent, table[column].dtype)
        if len(table["row"]) and len(rows):
            at = np.minimum(np.searchsorted(table["row"], rows), len(table["row"]) - 1)
            hit = table["row"][at] == rows
            out[hit] = table[column][at[hit]]
        return out

    def text(self, group: str, column: str, rows: Int) -> pd.Categorical:
        """A text column of a sparse group for the given events."""
        return self.strings.categorical(self.sparse(group, column, rows, NONE))


@dataclass(frozen=True)
class Threads:
    """CPU threads: a code 0, 1, … for each event, and their labels pid/tid."""

    codes: Int
    labels: list[str]


def threads(file: File) -> Threads:
    events = file.scan.events
    stride = len(file.strings.texts) + 1
    key = (events["pid"].astype(np.int64) + 1) * stride + events["tid"] + 1
    unique, codes = np.unique(key, return_inverse=True)
    texts = [*file.strings.texts, ""]  # code -1 reads the empty text
    return Threads(codes, [f"{texts[k // stride - 1]}/{texts[k % stride - 1]}" for k in unique.tolist()])


def thread_column(threads: Threads, rows: Int) -> pd.Categorical:
    codes = threads.codes[rows]
    used = np.flatnonzero(np.bincount(codes, minlength=1)) if len(codes) else np.zeros(0, np.int64)
    return categorical(codes.astype(np.int32), used, [threads.labels[code] for code in used])


def ranked(file: File, columns: Mapping[str, Any]) -> dict[str, Any]:
    length = len(next(iter(columns.values())))
    return {"rank": np.full(length, file.rank, np.int32), **columns}


def whole(file: File, rows: Int) -> Int:
    return rows[file.end[rows] != MISSING]
