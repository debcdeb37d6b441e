"""Algebra of half-open spans [start, end) in int64 nanoseconds, exact and vectorized.

A `Spans` is a set of instants: sorted, disjoint spans that do not touch. `union` makes one from any spans; the other
functions take and give them. n is the number of spans given, m the number of spans in a Spans.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """A set of instants as sorted, disjoint, non-touching, non-empty spans: starts and ends, int64 ns of equal length."""

    starts: Int64s
    ends: Int64s


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: npt.ArrayLike, ends: npt.ArrayLike) -> Spans:
    """The instants that at least one of n spans holds, in any order; empty and reversed spans hold none. O(n log n)."""
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    if not np.all(starts < ends):
        real = starts < ends
        starts, ends = starts[real], ends[real]
    if not len(starts):
        return EMPTY
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    opens = starts[1:] > reached[:-1]
    return Spans(starts[np.concatenate(([True], opens))], reached[np.concatenate((opens, [True]))])


def union_by(keys: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike) -> tuple[Int64s, Int64s, Int64s]:
    """The union of the spans of each key: (key, start, end) arrays, sorted by key and start. O(n log n).

    The keys' times are laid one behind the other on one axis, as many keys at once as 64 bits hold.
    """
    keys, starts, ends = (np.asarray(values, np.int64) for values in (keys, starts, ends))
    real = starts < ends
    keys, starts, ends = keys[real], starts[real], ends[real]
    if not len(keys):
        return EMPTY.starts, EMPTY.starts, EMPTY.starts
    names = distinct(keys)
    code = np.searchsorted(names, keys)
    origin = int(starts.min())
    stride = int(ends.max()) - origin + 2
    at_once = max((1 << 62) // stride, 1)
    found = []
    for low in range(0, len(names), at_once):
        some = (code >= low) & (code < low + at_once) if at_once < len(names) else slice(None)
        lane = (code[some] - low) * stride
        spans = union(starts[some] - origin + lane, ends[some] - origin + lane)
        lane = spans.starts // stride
        found.append((names[lane + low], spans.starts - lane * stride + origin, spans.ends - lane * stride + origin))
    key, start, end = (np.concatenate(column) for column in zip(*found, strict=True))
    return key, start, end


def total(spans: Spans) -> int:
    """Length of the set in ns."""
    return int((spans.ends - spans.starts).sum())


def intersection(a: Spans, b: Spans) -> Spans:
    """The instants in both. O((m_a + m_b) log m_b)."""
    first = np.searchsorted(b.ends, a.starts, side="right")
    met = np.maximum(np.searchsorted(b.starts, a.ends, side="left") - first, 0)
    of_a = np.repeat(np.arange(len(met)), met)
    of_b = _counted_from(first, met)
    return Spans(np.maximum(a.starts[of_a], b.starts[of_b]), np.minimum(a.ends[of_a], b.ends[of_b]))


def complement(spans: Spans, low: int, high: int) -> Spans:
    """The instants of [low, high) that are not in the set."""
    inside = clip(spans, low, high)
    starts, ends = np.concatenate(([low], inside.ends)), np.concatenate((inside.starts, [high]))
    real = starts < ends
    return Spans(starts[real].astype(np.int64), ends[real].astype(np.int64))


def difference(a: Spans, b: Spans) -> Spans:
    """The instants in a that are not in b."""
    return intersection(a, complement(b, int(a.starts[0]), int(a.ends[-1]))) if len(a.starts) else EMPTY


def clip(spans: Spans, low: int, high: int) -> Spans:
    """The instants of the set in [low, high)."""
    starts, ends = np.clip(spans.starts, low, high), np.clip(spans.ends, low, high)
    real = starts < ends
    return Spans(starts[real], ends[real])


def contains(spans: Spans, instants: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether each instant is in the set. O(n log m)."""
    instants = np.asarray(instants, np.int64)
    before = np.searchsorted(spans.starts, instants, side="right") - 1
    return (before >= 0) & (instants < np.append(spans.ends, 0)[before])


def covered_before(spans: Spans, instants: npt.ArrayLike) -> Int64s:
    """How much of the set lies before each instant, ns. O(n log m).

    covered_before(s, b) - covered_before(s, a) is what [a, b) shares with s, which makes any number of windows cheap.
    """
    instants = np.asarray(instants, np.int64)
    if not len(spans.starts):
        return np.zeros(instants.shape, np.int64)
    lengths = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    begun = np.searchsorted(spans.starts, instants, side="right")
    last = np.maximum(begun - 1, 0)
    unfinished = np.where(begun > 0, np.maximum(spans.ends[last] - instants, 0), 0)
    return np.asarray(lengths[begun] - unfinished, np.int64)


def covered_before_by(
    keys: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike, key: npt.ArrayLike, instants: npt.ArrayLike
) -> Int64s:
    """covered_before of the spans with an instant's key, but for a constant a key. O((n + m) log n) for n spans, m instants.

    The spans as union_by gives them: sorted by key and start, those of a key apart. key and instants are broadcast.
    """
    keys, starts, ends, key, instants = (np.asarray(values, np.int64) for values in (keys, starts, ends, key, instants))
    if not len(starts):
        return np.zeros(np.broadcast(key, instants).shape, np.int64)
    # Places in the order of starts instead of the starts: keys times places fit into 64 bits, keys times ns may not.
    times = distinct(starts)
    most = len(times) + 1
    begun = np.searchsorted(
        keys * most + np.searchsorted(times, starts), key * most + np.searchsorted(times, instants, side="right") - 1, side="right"
    )
    last = np.maximum(begun - 1, 0)
    unfinished = np.where((begun > 0) & (keys[last] == key), np.maximum(ends[last] - instants, 0), 0)
    return np.asarray(np.concatenate(([0], np.cumsum(ends - starts)))[begun] - unfinished, np.int64)


def shared_ns(starts: npt.ArrayLike, ends: npt.ArrayLike, spans: Spans) -> Int64s:
    """How much of each of n spans lies in the set, ns; n spans in any order, overlapping or not. O(n log m)."""
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    return covered_before(spans, np.maximum(starts, ends)) - covered_before(spans, starts)


def at_least(depth: int, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Spans:
    """The instants that at least `depth` of n spans hold. O(n log n)."""
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    real = starts < ends
    times = np.concatenate((starts[real], ends[real]))
    steps = np.repeat(np.array([1, -1], np.int64), int(real.sum()))
    order = np.argsort(times, kind="stable")
    times, running = times[order], np.cumsum(steps[order])
    deep = np.flatnonzero(running[:-1] >= depth)
    return union(times[deep], times[deep + 1])


def pieces(starts: npt.ArrayLike, ends: npt.ArrayLike, cuts: npt.ArrayLike) -> tuple[Int64s, Int64s, Int64s]:
    """Each of n spans cut at every instant of `cuts` inside it: (row of the span, start, end), by row and start.

    Empty spans give nothing. O(n log k + pieces) for k cuts.
    """
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    cuts = distinct(cuts)
    first = np.searchsorted(cuts, starts, side="right")
    inside = np.maximum(np.searchsorted(cuts, ends, side="left") - first, 0)
    counts = np.where(starts < ends, inside + 1, 0)
    row = np.repeat(np.arange(len(starts)), counts)
    if not len(row):
        return EMPTY.starts, EMPTY.starts, EMPTY.starts
    place = _counted_from(np.zeros(len(starts), np.int64), counts)
    padded = np.concatenate((cuts, [0]))
    at = first[row] + place
    low = np.where(place == 0, starts[row], padded[at - 1])
    high = np.where(place == inside[row], ends[row], padded[np.minimum(at, len(cuts))])
    return row, low, high


def distinct(values: npt.ArrayLike) -> Int64s:
    """The values once each, ascending: what np.unique gives, by sorting, which is several times faster than its hashing."""
    ordered = np.sort(np.asarray(values, np.int64))
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def _counted_from(first: Int64s, counts: Int64s) -> Int64s:
    """first[0], first[0]+1, … (counts[0] of them), first[1], …"""
    before = np.cumsum(counts) - counts
    offset: Int64s = np.repeat(np.asarray(first, np.int64) - before, counts)
    return offset + np.arange(len(offset), dtype=np.int64)
