"""Clean and overlapped samples side by side: the rows that the estimators work on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from c3prof.analysis.intervals import Int64s
from c3prof.analysis.samples import Samples
from c3prof.analysis.segments import FloatArray, IntArray, Segments
from c3prof.trace import NONE

BoolArray = npt.NDArray[np.bool_]

_STEPS = 3


@dataclass(frozen=True)
class Sides:
    """The samples of `rows` rows (signature × co-runner), each array sorted by row.

    *_ns: durations; shared_ns: time shared with the co-runner; *_step: unit that may share an effect: the step, or the
    sample itself in a run with fewer than 3 steps; *_part: part of the step;
    *_place: n-th of its name in the step;
    signature, group: of each row; rows of one signature hold the same clean samples, group is its kernel class.
    """

    signature: IntArray
    group: IntArray
    clean_row: IntArray
    clean_ns: FloatArray
    clean_step: IntArray
    clean_part: IntArray
    clean_place: IntArray
    over_row: IntArray
    over_ns: FloatArray
    shared_ns: FloatArray
    over_step: IntArray
    over_part: IntArray
    over_place: IntArray

    @property
    def rows(self) -> int:
        return len(self.signature)

    @property
    def clean(self) -> Segments:
        return Segments(self.clean_row, self.rows)

    @property
    def over(self) -> Segments:
        return Segments(self.over_row, self.rows)

    def keeping(self, over: BoolArray) -> "Sides":
        """The same rows with only some of the overlapped samples."""
        kept = {name: getattr(self, name)[over] for name in ("over_row", "over_ns", "shared_ns", "over_step", "over_part", "over_place")}
        return replace(self, **kept)

    def only(self, rows: BoolArray) -> "Sides":
        """Some of the rows, numbered anew."""
        place = np.cumsum(rows) - 1
        clean, over = rows[self.clean_row], rows[self.over_row]
        return Sides(
            self.signature[rows],
            self.group[rows],
            place[self.clean_row[clean]],
            self.clean_ns[clean],
            self.clean_step[clean],
            self.clean_part[clean],
            self.clean_place[clean],
            place[self.over_row[over]],
            self.over_ns[over],
            self.shared_ns[over],
            self.over_step[over],
            self.over_part[over],
            self.over_place[over],
        )


@dataclass(frozen=True)
class Rows:
    """Which signature and co-runner each row is about, and which samples it rests on (positions in Samples)."""

    signature: Int64s
    label: Int64s
    sides: Sides
    clean: Int64s
    over: Int64s


def rows_of(samples: Samples, group: Any, clean: BoolArray, over: BoolArray, *, same_place: bool = False) -> Rows:
    """A row for each signature and co-runner that has overlapped samples.

    clean, over: which samples may stand on either side; group: kernel class code of each signature;
    same_place: only clean samples from those places in the step where the row has overlapped ones.
    """
    over_at = np.flatnonzero(over)
    key = samples.signature[over_at] * len(samples.labels) + samples.label[over_at]
    keys, row = np.unique(key, return_inverse=True)
    order = np.argsort(row, kind="stable")
    over_at, row = over_at[order], row[order]
    signature, label = keys // len(samples.labels), keys % len(samples.labels)
    clean_at, clean_row = _clean_of(samples, signature, np.flatnonzero(clean))
    if same_place:
        known = _place_key(samples, over_at, row)
        there = np.isin(_place_key(samples, clean_at, clean_row), known)
        clean_at, clean_row = clean_at[there], clean_row[there]
    step = _units(samples)
    sides = Sides(
        signature,
        np.asarray(group)[signature],
        clean_row,
        samples.duration[clean_at].astype(float),
        step[clean_at],
        samples.part[clean_at],
        samples.place[clean_at],
        row,
        samples.duration[over_at].astype(float),
        samples.shared[over_at].astype(float),
        step[over_at],
        samples.part[over_at],
        samples.place[over_at],
    )
    return Rows(signature, label, sides, clean_at, over_at)


def _units(samples: Samples) -> IntArray:
    """The step of each sample, numbered from 0; with fewer than 3 steps, and outside of steps, a number of its own."""
    steps, unit = np.unique(samples.step, return_inverse=True)
    own = len(steps) + np.arange(len(unit))
    stepped = (steps != NONE).sum() >= _STEPS
    return np.where((samples.step != NONE) & stepped, unit, own)


def _place_key(samples: Samples, at: Int64s, row: IntArray) -> Int64s:
    return np.asarray(row * (int(samples.place.max(initial=0)) + 1) + samples.place[at])


def _clean_of(samples: Samples, signature: Int64s, clean_at: Int64s) -> tuple[Int64s, Int64s]:
    """Clean samples of the signature of each row, once a row, and their rows."""
    clean_at = clean_at[np.argsort(samples.signature[clean_at], kind="stable")]
    of = samples.signature[clean_at]
    first, last = np.searchsorted(of, signature, side="left"), np.searchsorted(of, signature, side="right")
    sizes = last - first
    row = np.repeat(np.arange(len(signature)), sizes)
    within = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return clean_at[first[row] + within], row
