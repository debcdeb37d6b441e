"""Who encloses whom on CPU threads, by time: parents of spans and the innermost span around an instant. Vectorized."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from c3prof.trace import NONE

Int = npt.NDArray[np.int64]


class Nesting(NamedTuple):
    """Spans of all threads on one axis, sorted by (thread, start, longest first), and the parent of each.

    order: positions of the given spans in sorted order; start, end: on the common axis; parent: position in sorted
    order of the innermost span that is open when a span starts, -1 for none; axis: how a thread's times get there.
    """

    order: Int
    start: Int
    end: Int
    parent: Int
    axis: "_Axis"


class _Axis(NamedTuple):
    """Threads laid one behind the other, so that one sorted array serves all.

    key = thread * stride + 1 + (t - origin); instants before or behind all spans get a key of their own at the edge.
    """

    origin: int
    stride: int

    def keys(self, thread: Int, at: Int) -> Int:
        return thread.astype(np.int64) * self.stride + np.clip(at - self.origin + 1, 0, self.stride - 1)


def nesting(thread: Int, start: Int, end: Int) -> Nesting:
    """The nesting of spans given as thread codes (0, 1, …) and times in ns.

    Spans that cross instead of nesting are legal: the parent is then the last span still open at the start.
    """
    if not len(start):
        empty = np.zeros(0, np.int64)
        return Nesting(empty, empty, empty, empty, _Axis(0, 1))
    origin, last = int(start.min()), int(max(start.max(), end.max()))
    axis = _axis(origin, last, int(thread.max()) + 1)
    begin = axis.keys(thread, start)
    close = np.maximum(axis.keys(thread, end), begin + 1)  # an empty span is open for one ns, so that it nests somewhere
    order = _longest_first(begin, close)
    begin, close = begin[order], close[order]
    return Nesting(order, begin, close, _parents(begin, close, thread[order]), axis)


def _axis(origin: int, last: int, threads: int) -> _Axis:
    stride = last - origin + 3
    if stride * threads >= 2**62:  # damaged times: squeeze what lies beyond into the edge rather than overflow
        stride = 2**62 // threads
    return _Axis(origin, stride)


def _longest_first(begin: Int, close: Int) -> Int:
    """Positions by (begin, longest first). Recorders write nearly in order of time, which a stable sort uses; few begins are equal."""
    order = np.argsort(begin, kind="stable")
    same = np.diff(begin[order]) == 0
    tied = np.append(same, False) | np.append(False, same)
    few = order[tied]
    order[tied] = few[np.lexsort((-close[few], begin[few]))]
    return order


def _parents(begin: Int, close: Int, thread: Int) -> Int:
    """Parent of each span sorted by (begin, longest first): where spans nest, the last one before it one level up."""
    depth = np.arange(len(begin)) - np.searchsorted(np.sort(close, kind="stable"), begin, side="right")
    parent = np.full(len(begin), NONE, np.int64)
    by_depth = np.argsort(depth.astype(np.int16) if depth.max() < 1 << 15 else depth, kind="stable")  # 16 bits: by radix
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    for above, here in pairwise(levels):
        at = np.searchsorted(above, here) - 1
        parent[here] = np.where(at >= 0, above[at], NONE)
    crossing = (close > close[parent]) & (parent >= 0)
    for code in np.unique(thread[crossing]).tolist():  # hardly ever: then one by one
        low, high = np.searchsorted(thread, [code, code + 1])
        parent[low:high] = _parents_of_crossing(begin[low:high].tolist(), close[low:high].tolist(), int(low))
    return parent


def _parents_of_crossing(begin: list[int], close: list[int], first: int) -> list[int]:
    """Parents of the spans of one thread, positions from `first` on: the last one still open at each start."""
    parents, still_open = [], list[int]()
    for position, start in enumerate(begin):
        while still_open and close[still_open[-1]] <= start:
            still_open.pop()
        parents.append(still_open[-1] + first if still_open else NONE)
        still_open.append(position)
    return parents


def innermost(spans: Nesting, thread: Int, at: Int, span_thread: Int) -> Int:
    """Position (in sorted order) of the innermost span open at each instant on its thread, -1 for none.

    span_thread: thread code of each span in sorted order.
    """
    if not len(spans.start):
        return np.full(len(at), NONE, np.int64)
    keys = spans.axis.keys(thread, at)
    last = np.searchsorted(spans.start, keys, side="right") - 1
    return _climbed(last, spans.parent, spans.end, keys, span_thread, thread)


def _climbed(candidate: Int, parent: Int, close: Int, at: Int, span_thread: Int, thread: Int) -> Int:
    """Each candidate, or the nearest of its ancestors that is still open at `at` and on the same thread."""
    candidate = candidate.copy()
    todo = np.flatnonzero(candidate >= 0)
    while len(todo):
        found = candidate[todo]
        closed = (close[found] <= at[todo]) & (span_thread[found] == thread[todo])
        candidate[todo[span_thread[found] != thread[todo]]] = NONE
        todo = todo[closed]
        candidate[todo] = parent[candidate[todo]]
        todo = todo[candidate[todo] >= 0]
    return candidate
