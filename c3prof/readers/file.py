"""What the steps of reading one Kineto file share: the scan, which event is what, threads and times."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.readers.scan import MISSING, Scan
from c3prof.readers.strings import Strings, categorical
from c3prof.trace import NONE

Int = npt.NDArray[np.int64]

_KIND_OF_CATEGORY = {
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
KINDS = ("", *dict.fromkeys(_KIND_OF_CATEGORY.values()))
"""What an event can be; File.kind holds positions in here, 0 for what no frame needs."""


def kinds_of(strings: Strings, categories: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """The kind of each event by its category, whatever its case: files of 2021 write Kernel, Runtime, Operator."""
    known = strings.lookup(categories, lambda text: KINDS.index(_KIND_OF_CATEGORY.get(text.lower(), "")), np.int8, 0)
    return known.astype(np.int8)


@dataclass(frozen=True)
class File:
    """What the steps below share: the scan, its strings, which event is what, and the rank it goes to."""

    scan: Scan
    strings: Strings
    kind: npt.NDArray[np.int8]
    start: Int
    end: Int
    rank: int
    name: str

    def rows(self, *kinds: str) -> Int:
        """Events of the kinds, in file order."""
        wanted = np.zeros(len(self.kind), bool)
        for kind in kinds:
            wanted |= self.kind == KINDS.index(kind)
        return np.flatnonzero(wanted)

    @cached_property
    def _places(self) -> dict[str, npt.NDArray[np.int32]]:
        """By sparse group the row in it of each event, -1 for none."""
        places = {}
        for group in ("ops", "device", "comm"):
            row = getattr(self.scan, group)["row"]
            places[group] = np.full(len(self.kind), NONE, np.int32)
            places[group][row] = np.arange(len(row), dtype=np.int32)
        return places

    def sparse(self, group: str, column: str, rows: Int, absent: float) -> npt.NDArray[Any]:
        """A column of one of the scan's sparse groups for the given events."""
        values = getattr(self.scan, group)[column]
        if not len(values):
            return np.full(len(rows), absent, values.dtype)
        return np.append(values, np.array(absent, values.dtype)).take(self._places[group].take(rows))  # -1 reads the last entry

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
    codes, unique = pd.factorize(key, sort=True)
    texts = [*file.strings.texts, ""]  # code -1 reads the empty text
    return Threads(codes.astype(np.int64), [f"{texts[k // stride - 1]}/{texts[k % stride - 1]}" for k in unique.tolist()])


def thread_column(threads: Threads, rows: Int) -> pd.Categorical:
    codes = threads.codes[rows]
    used = np.flatnonzero(np.bincount(codes, minlength=1)) if len(codes) else np.zeros(0, np.int64)
    return categorical(codes.astype(np.int32), used, [threads.labels[code] for code in used])


def ranked(file: File, columns: Mapping[str, Any]) -> dict[str, Any]:
    length = len(next(iter(columns.values())))
    return {"rank": np.full(length, file.rank, np.int32), **columns}


def whole(file: File, rows: Int) -> Int:
    return rows[file.end[rows] != MISSING]
