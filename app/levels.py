"""Level of detail of one lane: what a window shows when a pixel is wider than the spans in it.

Spans of at least one unit stay themselves. Shorter ones are added up in cells of the grid of units: how many they were, how long
they ran, and the class that ran longest. Units are powers of two of a nanosecond, so that cells nest: each level is made from the
one below it, a view is two binary searches and a slice, and what is drawn does not shimmer when the window is moved.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_NONE = np.empty(0, np.int64)
_SPANS_A_CELL = 4
_ENOUGH = 512
"""Levels end where a lane has fewer entries than this."""


@dataclass(frozen=True)
class Spans:
    """Spans of one lane, sorted by start: int64 ns starts and ends, one class code each."""

    start: Ints
    end: Ints
    cls: Bytes

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Cells:
    """Occupied cells of the grid, ascending: number of the cell, ns busy, spans that start in it, class that ran longest."""

    cell: Ints
    busy: Ints
    count: Ints
    cls: Bytes


@dataclass(frozen=True)
class Level:
    """A lane at one unit: positions of the spans that are at least a unit long, and the cells of all others.

    reach: for each long span the latest end so far, by which a window finds the first one that it touches.
    """

    unit: int
    long: Ints
    reach: Ints
    cells: Cells


@dataclass(frozen=True)
class Pyramid:
    """A lane at every level of detail; levels ascend by powers of two.

    by_class: the cells of the last level for each class, from which still larger units are made.
    """

    spans: Spans
    reach: Ints
    levels: tuple[Level, ...]
    by_class: Mapping[int, Cells]

    def window(self, begin: int, end: int, unit: int) -> tuple[Ints, Cells]:
        """Positions of the spans of at least a unit that touch [begin, end), and the cells of the shorter ones.

        unit: a power of two in ns, the least that the eye can tell apart.
        """
        begin, end = begin // unit * unit, -(-end // unit) * unit
        fitting = [level for level in self.levels if level.unit <= unit]
        if fitting and fitting[-1].unit == unit:
            return _cut(fitting[-1], self.spans, begin, end)
        if fitting and fitting[-1] is self.levels[-1]:
            return self._coarser(begin, end, unit)
        touched = _touched(self.spans, self.reach, begin, end)
        length = self.spans.end[touched] - self.spans.start[touched]
        return touched[length >= unit], _combined(_by_class(self.spans, touched[length < unit], unit))

    def _coarser(self, begin: int, end: int, unit: int) -> tuple[Ints, Cells]:
        """A window at a unit above the last level."""
        last = self.levels[-1]
        long, _ = _cut(last, self.spans, begin, end)
        shorter = self.spans.end[long] - self.spans.start[long] < unit
        merged = _by_class(self.spans, long[shorter], unit)
        for cls, cells in self.by_class.items():
            kept, has = _between(cells, begin, end, last.unit), last.unit
            while has < unit:
                kept, has = _doubled(kept), has * 2
            merged[cls] = _added(kept, merged.get(cls))
        return long[~shorter], _combined(merged)


def power_of_two(ns: float) -> int:
    """The largest power of two that is at most ns, at least 1."""
    return 1 << max(int(ns).bit_length() - 1, 0)


def pyramid(spans: Spans) -> Pyramid:
    """All levels of a lane, in time linear in its spans."""
    reach = _reach(spans.end)
    if len(spans) < _ENOUGH:
        return Pyramid(spans, reach, (), {})
    extent = int(reach[-1] - spans.start[0])
    unit = power_of_two(_SPANS_A_CELL * extent / len(spans))
    length = spans.end - spans.start
    long = np.flatnonzero(length >= unit)
    by_class = _by_class(spans, np.flatnonzero(length < unit), unit)
    levels = []
    while True:
        cells = _combined(by_class)
        levels.append(Level(unit, long, _reach(spans.end[long]), cells))
        if len(long) + len(cells.cell) < _ENOUGH or unit > extent:
            return Pyramid(spans, reach, tuple(levels), by_class)
        unit *= 2
        shorter = length[long] < unit
        fallen = _by_class(spans, long[shorter], unit)
        by_class = {c: _added(_doubled(by_class[c]) if c in by_class else None, fallen.get(c)) for c in by_class.keys() | fallen.keys()}
        long = long[~shorter]


def _reach(ends: Ints) -> Ints:
    return np.maximum.accumulate(ends) if len(ends) else ends


def _touched(spans: Spans, reach: Ints, begin: int, end: int) -> Ints:
    low, high = np.searchsorted(reach, begin, "right"), np.searchsorted(spans.start, end)
    positions = np.arange(low, max(high, low))
    return positions[spans.end[positions] > begin]


def _cut(level: Level, spans: Spans, begin: int, end: int) -> tuple[Ints, Cells]:
    low = np.searchsorted(level.reach, begin, "right")
    high = np.searchsorted(spans.start[level.long], end)
    long = level.long[low : max(high, low)]
    return long[spans.end[long] > begin], _between(level.cells, begin, end, level.unit)


def _between(cells: Cells, begin: int, end: int, unit: int) -> Cells:
    part = slice(*np.searchsorted(cells.cell, [begin // unit, -(-end // unit)]))
    return Cells(cells.cell[part], cells.busy[part], cells.count[part], cells.cls[part])


def _by_class(spans: Spans, positions: Ints, unit: int) -> dict[int, Cells]:
    """Cells of one class each. Spans are shorter than a unit, so they lie in one cell or in two neighbours."""
    classes = spans.cls[positions]
    present = np.flatnonzero(np.bincount(classes, minlength=1)) if len(classes) else ()
    return {int(c): _cells(spans.start, spans.end, positions[classes == c], unit, int(c)) for c in present}


def _cells(start: Ints, end: Ints, positions: Ints, unit: int, cls: int) -> Cells:
    begin, stop = start[positions], end[positions]
    first, last = begin // unit, np.maximum(stop - 1, begin) // unit
    split = np.flatnonzero(last > first)
    edge = last[split] * unit
    busy = stop - begin
    busy[split] = edge - begin[split]
    cell = np.concatenate([first, last[split]])
    busy = np.concatenate([busy, stop[split] - edge])
    count = np.concatenate([np.ones(len(first), np.int64), np.zeros(len(split), np.int64)])
    return _summed(cell, busy, count, cls)


def _summed(cell: Ints, busy: Ints, count: Ints, cls: int) -> Cells:
    """One entry a cell. The stable sort runs over what is almost sorted, in nearly linear time."""
    order = np.argsort(cell, kind="stable")
    cell, busy, count = cell[order], busy[order], count[order]
    heads = _heads(cell)
    return Cells(cell[heads], np.add.reduceat(busy, heads), np.add.reduceat(count, heads), np.full(len(heads), cls, np.uint8))


def _heads(sorted_values: Ints) -> Ints:
    """Positions where a new value begins."""
    return np.flatnonzero(np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]]))


def _doubled(cells: Cells) -> Cells:
    """The cells of twice the unit."""
    cell = cells.cell >> 1
    if not len(cell):
        return cells
    heads = _heads(cell)
    return Cells(cell[heads], np.add.reduceat(cells.busy, heads), np.add.reduceat(cells.count, heads), cells.cls[heads])


def _added(one: Cells | None, other: Cells | None) -> Cells:
    """Cells of one class from two places, of which one may be missing."""
    parts = [part for part in (one, other) if part is not None]
    if len(parts) == 1 or not all(len(part.cell) for part in parts):
        return max(parts, key=lambda part: len(part.cell))
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in ("cell", "busy", "count")]
    return _summed(joined[0], joined[1], joined[2], int(parts[0].cls[0]))


def _combined(by_class: dict[int, Cells]) -> Cells:
    """Cells of all classes together, each with the class that ran longest in it."""
    parts = _filled(by_class.values())
    if len(parts) <= 1:
        return parts[0] if parts else Cells(_NONE, _NONE, _NONE, np.empty(0, np.uint8))
    cell, busy, count, cls = (np.concatenate([getattr(p, n) for p in parts]) for n in ("cell", "busy", "count", "cls"))
    order = np.argsort(cell, kind="stable")
    cell, busy, count, cls = cell[order], busy[order], count[order], cls[order]
    heads = _heads(cell)
    most = np.maximum.reduceat(busy, heads)
    group = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(cell))))
    winners = np.flatnonzero(busy == most[group])
    first = winners[_heads(group[winners])]
    return Cells(cell[heads], np.add.reduceat(busy, heads), np.add.reduceat(count, heads), cls[first])


def _filled(parts: Iterable[Cells]) -> list[Cells]:
    return [part for part in parts if len(part.cell)]
