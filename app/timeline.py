"""The timeline's data: what lanes there are, what a window shows, where a name is found.

A window is answered with at most RECTANGLES rectangles, however many events it covers (c3prof.app.levels).
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.app.lanes import CLASSES, Lane, lanes
from c3prof.app.levels import Cells, Ints, power_of_two
from c3prof.trace import Trace

RECTANGLES = 6_000
LANES_A_VIEW = 400
WIDEST = 8_192
_SHARES = 16
_NAME_LENGTH = 160
_HITS = 100_000
_STEPS = 5_000

Json = dict[str, Any]


@dataclass(frozen=True)
class Timeline:
    """All lanes of a trace by key, and the time that they cover."""

    trace: Trace
    lanes: dict[str, Lane]
    begin: int
    end: int
    names: dict[str, npt.NDArray[np.int32]] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, progress: Callable[[int], None] = lambda _: None) -> "Timeline":
        """The timeline of a trace; progress is told the number of spans done so far."""
        found: dict[str, Lane] = {}
        done = 0
        for lane in lanes(trace):
            found[lane.key] = lane
            done += len(lane)
            progress(done)
        begin = min((int(lane.pyramid.spans.start[0]) for lane in found.values()), default=0)
        end = max((int(lane.pyramid.reach[-1]) for lane in found.values()), default=1)
        return cls(trace, found, begin, max(end, begin + 1))

    def structure(self) -> Json:
        """What the client must know before it asks for a window: lanes, the first rank's steps, extent, class names."""
        steps = self.trace.steps[self.trace.steps["rank"] == self.trace.steps["rank"].min()]
        return {
            "begin": 0,
            "end": self.end - self.begin,
            "classes": CLASSES,
            "lanes": [
                {"key": x.key, "rank": x.rank, "section": x.section, "label": x.label, "spans": len(x), "shown": x.shown}
                for x in self.lanes.values()
            ],
            "steps": [
                {"rank": int(r), "step": int(n), "begin": int(s - self.begin), "end": int(e - self.begin)}
                for r, n, s, e in zip(steps["rank"], steps["step"], steps["start_ns"], steps["end_ns"], strict=True)
            ][:_STEPS],
        }

    def view(self, keys: Sequence[str], begin: float, end: float, width: int) -> Json:
        """The rectangles of the lanes in [begin, end) ns after the start, for a canvas of width pixels.

        Arrays are base64 of little-endian values, one element a rectangle, lane after lane (`counts` per lane): start and end
        float32 ns from `begin`; cls uint8; share uint8 (255 = busy all the time); count int32; row int32 (-1 for merged); name int32
        into `names` (-1 for none).
        """
        wanted = [self.lanes[key] for key in keys[:LANES_A_VIEW] if key in self.lanes]
        low = self.begin + int(min(max(begin, -1e15), 1e15))
        high = max(low + 1, self.begin + int(min(max(end, -1e15), 1e15)))
        unit = power_of_two((high - low) / min(max(width, 1), WIDEST))
        while True:
            parts = [_Rectangles.of(lane, low, high, unit) for lane in wanted]
            if sum(len(part.start) for part in parts) <= RECTANGLES or unit > high - low:
                return self._encoded(wanted, parts, low, high, unit)
            unit *= 2

    def _encoded(self, wanted: list[Lane], parts: list["_Rectangles"], low: int, high: int, unit: int) -> Json:
        names = _Names()
        named = [names.codes(self.trace, lane, part.row) for lane, part in zip(wanted, parts, strict=True)]
        length = high - low

        def times(field_name: str) -> Any:
            values = np.concatenate([getattr(part, field_name) for part in parts] or [np.empty(0)])
            return np.clip(values - low, -length * 0.05, length * 1.05).astype("<f4")

        def joined(arrays: list[Any], dtype: str) -> str:
            return b64encode(np.concatenate(arrays or [np.empty(0)]).astype(dtype).tobytes()).decode()

        return {
            "begin": low - self.begin,
            "end": high - self.begin,
            "unit": unit,
            "lanes": [lane.key for lane in wanted],
            "counts": [len(part.start) for part in parts],
            "start": b64encode(times("start").tobytes()).decode(),
            "stop": b64encode(times("end").tobytes()).decode(),
            "cls": joined([part.cls for part in parts], "u1"),
            "share": joined([part.share for part in parts], "u1"),
            "count": joined([part.count for part in parts], "<i4"),
            "row": joined([part.row for part in parts], "<i4"),
            "name": joined(named, "<i4"),
            "names": names.texts,
        }

    def hits(self, text: str, keys: Sequence[str], at: float = 0, *, backwards: bool = False) -> Json:
        """How many spans of the lanes have text in their name, and the next one after `at` (ns after the start); wraps around."""
        starts: list[Ints] = []
        owners: list[tuple[Lane, Ints]] = []
        for lane in (self.lanes[key] for key in keys if key in self.lanes):
            found = _matching(self.trace, lane, text)
            if len(found):
                owners.append((lane, found))
                starts.append(lane.pyramid.spans.start[found])
        if not starts or not text:
            return {"count": 0, "hit": None, "position": 0}
        merged = np.concatenate(starts)
        order = np.argsort(merged, kind="stable")
        place = _next_place(merged[order], self.begin + int(at), backwards=backwards)
        which = int(order[place])
        for lane, found in owners:
            if which < len(found):
                return {"count": len(merged), "position": place + 1, "hit": self._hit(lane, int(found[which]))}
            which -= len(found)
        raise AssertionError("a hit lies in one of the lanes")

    def _hit(self, lane: Lane, position: int) -> Json:
        spans = lane.pyramid.spans
        return {
            "lane": lane.key,
            "row": int(lane.rows[position]),
            "begin": int(spans.start[position]) - self.begin,
            "end": int(spans.end[position]) - self.begin,
        }


def _next_place(starts: Ints, at: int, *, backwards: bool) -> int:
    if backwards:
        return (int(np.searchsorted(starts, at, "left")) - 1) % len(starts)
    return int(np.searchsorted(starts, at, "right")) % len(starts)


def _matching(trace: Trace, lane: Lane, text: str) -> Ints:
    """Positions of the lane's spans whose name holds text, whatever its case."""
    if not lane.frame or lane.frame not in _NAMED:
        return np.empty(0, np.int64)
    column = getattr(trace, lane.frame)[_NAMED[lane.frame]].cat
    wanted = np.array([text.lower() in str(name).lower() for name in column.categories] + [False])
    if not wanted.any():
        return np.empty(0, np.int64)
    codes = column.codes.to_numpy()[lane.rows]
    return np.flatnonzero(wanted[codes])[:_HITS]


_NAMED = {
    "activities": "name",
    "device_annotations": "name",
    "collectives": "collective",
    "launches": "name",
    "annotations": "name",
    "ops": "name",
}


@dataclass(frozen=True)
class _Rectangles:
    start: Ints
    end: Ints
    cls: npt.NDArray[np.uint8]
    share: npt.NDArray[np.uint8]
    count: Ints
    row: npt.NDArray[np.int32]

    @classmethod
    def of(cls, lane: Lane, low: int, high: int, unit: int) -> "_Rectangles":
        """The long spans and the runs of equal cells of a lane in a window, cells first: what is long is drawn over them."""
        spans = lane.pyramid.spans
        long, cells = lane.pyramid.window(low, high, unit)
        runs = _runs(cells, unit)
        return cls(
            np.concatenate([runs.start, spans.start[long]]),
            np.concatenate([runs.end, spans.end[long]]),
            np.concatenate([runs.cls, spans.cls[long]]),
            np.concatenate([runs.share, np.full(len(long), 255, np.uint8)]),
            np.concatenate([runs.count, np.ones(len(long), np.int64)]),
            np.concatenate([runs.row, lane.rows[long]]),
        )


def _runs(cells: Cells, unit: int) -> _Rectangles:
    """Neighbouring cells of one class that are about equally busy, as one rectangle each."""
    if not len(cells.cell):
        return _Rectangles(cells.cell, cells.cell, cells.cls, cells.cls, cells.count, np.empty(0, np.int32))
    bucket = np.ceil(np.minimum(cells.busy / unit, 1) * _SHARES).astype(np.int16)
    same = (np.diff(cells.cell) == 1) & (bucket[1:] == bucket[:-1]) & (cells.cls[1:] == cells.cls[:-1])
    heads = np.flatnonzero(np.concatenate([[True], ~same]))
    tails = np.append(heads[1:], len(cells.cell)) - 1
    length = (cells.cell[tails] + 1 - cells.cell[heads]) * unit
    share = np.minimum(np.add.reduceat(cells.busy, heads) / length, 1)
    return _Rectangles(
        cells.cell[heads] * unit,
        cells.cell[heads] * unit + length,
        cells.cls[heads],
        np.maximum(np.rint(share * 255), 1).astype(np.uint8),
        np.add.reduceat(cells.count, heads),
        np.full(len(heads), -1, np.int32),
    )


class _Names:
    """The names that a view needs, each once, cut to what fits on a screen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[str, int] = {}

    def codes(self, trace: Trace, lane: Lane, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Positions in `texts` of the names of rows, -1 for none."""
        result = np.full(len(rows), -1, np.int32)
        real = np.flatnonzero(rows >= 0)
        if not len(real) or not lane.frame:
            return result
        frame = getattr(trace, lane.frame)
        if lane.frame == "steps":
            texts = [f"step {step}" for step in frame["step"].to_numpy()[rows[real]]]
            result[real] = [self._code(text) for text in texts]
            return result
        column = frame[_NAMED[lane.frame]].cat
        codes, inverse = np.unique(column.codes.to_numpy()[rows[real]], return_inverse=True)
        names = ["" if code < 0 else str(column.categories[code]) for code in codes]
        result[real] = np.array([self._code(name) for name in names], np.int32)[inverse]
        return result

    def _code(self, name: str) -> int:
        text = name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"
        if text not in self._known:
            self._known[text] = len(self.texts)
            self.texts.append(text)
        return self._known[text]


def readable(value: Any) -> Any:
    """A value of a frame as JSON holds it: numbers and text; None for what is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
