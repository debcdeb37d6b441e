"""Span algebra: drawn cases, and against sets of unit cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c3prof.analysis import intervals
from c3prof.analysis.intervals import Spans

SPANS = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1])), max_size=12)
INSTANTS = st.lists(st.integers(-40, 50), max_size=12)


def spans(*pairs: tuple[int, int]) -> Spans:
    return intervals.union([low for low, _ in pairs], [high for _, high in pairs])


def pairs_of(found: Spans) -> list[tuple[int, int]]:
    return list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


def cells(pairs: list[tuple[int, int]]) -> set[int]:
    return {cell for low, high in pairs for cell in range(low, high)}


def test_two_streams_busy_at_once_count_once() -> None:
    #  0------100
    #      50------150
    assert intervals.total(spans((0, 100), (50, 150))) == 150


def test_touching_spans_are_one() -> None:
    assert pairs_of(spans((5, 9), (0, 5), (20, 20), (9, 8))) == [(0, 9)]


def test_set_operations() -> None:
    a, b = spans((0, 10), (12, 20)), spans((8, 14), (30, 40))
    assert pairs_of(intervals.intersection(a, b)) == [(8, 10), (12, 14)]
    assert pairs_of(intervals.difference(a, b)) == [(0, 8), (14, 20)]
    assert pairs_of(intervals.difference(b, a)) == [(10, 12), (30, 40)]
    assert pairs_of(intervals.complement(a, -5, 15)) == [(-5, 0), (10, 12)]
    assert pairs_of(intervals.clip(a, 5, 13)) == [(5, 10), (12, 13)]
    assert intervals.contains(a, [-1, 0, 9, 10, 11, 12, 20]).tolist() == [False, True, True, False, False, True, False]
    assert intervals.shared_ns([0, 9, 13], [9, 13, 13], b).tolist() == [1, 4, 0]


def test_spans_of_today_in_nanoseconds_are_exact() -> None:
    now = 1_764_500_000_000_000_000
    assert pairs_of(spans((now, now + 1), (now + 1, now + 3), (now + 4, now + 5))) == [(now, now + 3), (now + 4, now + 5)]


def test_pieces() -> None:
    row, low, high = intervals.pieces([0, 5, 7], [10, 6, 7], [3, 3, 6, 10, 99])
    assert list(zip(row.tolist(), low.tolist(), high.tolist(), strict=True)) == [(0, 0, 3), (0, 3, 6), (0, 6, 10), (1, 5, 6)]


@given(SPANS, SPANS)
def test_sets_agree_with_unit_cells(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    x, y = spans(*a), spans(*b)
    for found, meant in [
        (x, cells(a)),
        (intervals.intersection(x, y), cells(a) & cells(b)),
        (intervals.difference(x, y), cells(a) - cells(b)),
        (intervals.complement(x, -10, 15), set(range(-10, 15)) - cells(a)),
        (intervals.clip(x, -10, 15), cells(a) & set(range(-10, 15))),
    ]:
        assert cells(pairs_of(found)) == meant
        assert intervals.total(found) == len(meant)
        assert (found.starts < found.ends).all()
        assert (found.starts[1:] > found.ends[:-1]).all()


@given(SPANS, INSTANTS)
def test_measures_agree_with_unit_cells(a: list[tuple[int, int]], instants: list[int]) -> None:
    x, meant = spans(*a), cells(a)
    assert intervals.contains(x, instants).tolist() == [t in meant for t in instants]
    assert intervals.covered_before(x, instants).tolist() == [len([c for c in meant if c < t]) for t in instants]
    starts, ends = [t - 3 for t in instants], [t + 2 for t in instants]
    assert intervals.shared_ns(starts, ends, x).tolist() == [len(meant & set(range(t - 3, t + 2))) for t in instants]


@given(SPANS, st.integers(1, 4))
def test_depth_agrees_with_unit_cells(a: list[tuple[int, int]], depth: int) -> None:
    found = intervals.at_least(depth, [low for low, _ in a], [high for _, high in a])
    every = [cell for low, high in a for cell in range(low, high)]
    assert cells(pairs_of(found)) == {cell for cell in every if every.count(cell) >= depth}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-30, 30), st.integers(0, 12)), max_size=14))
def test_union_by_key_is_the_union_of_each_key(rows: list[tuple[int, int, int]]) -> None:
    keys, starts, ends = intervals.union_by([k for k, _, _ in rows], [s for _, s, _ in rows], [s + d for _, s, d in rows])
    for key in range(3):
        alone = spans(*[(s, s + d) for k, s, d in rows if k == key])
        assert pairs_of(Spans(starts[keys == key], ends[keys == key])) == pairs_of(alone)
    assert (np.diff(keys) >= 0).all()


def test_union_by_key_when_64_bits_hold_one_key_only() -> None:
    wide = 2**61
    keys, starts, ends = intervals.union_by([1, 0, 1, 0], [0, -wide, 5, 3], [6, 2, 9, wide])
    assert list(zip(keys.tolist(), starts.tolist(), ends.tolist(), strict=True)) == [(0, -wide, 2), (0, 3, wide), (1, 0, 9)]


@given(SPANS, INSTANTS)
def test_pieces_cover_their_spans_and_hold_no_cut(a: list[tuple[int, int]], cuts: list[int]) -> None:
    row, low, high = intervals.pieces([s for s, _ in a], [e for _, e in a], cuts)
    for i, (start, end) in enumerate(a):
        own = list(zip(low[row == i].tolist(), high[row == i].tolist(), strict=True))
        assert cells(own) == set(range(start, end))
        assert all(lo < hi and not any(lo < cut < hi for cut in cuts) for lo, hi in own)


@pytest.mark.parametrize("starts", [[], np.empty(0, np.int64)])
def test_nothing_is_fine(starts: list[int]) -> None:
    nothing = intervals.union(starts, starts)
    assert intervals.total(intervals.difference(nothing, spans((0, 5)))) == 0
    assert intervals.shared_ns([0], [5], nothing).tolist() == [0]
    assert pairs_of(intervals.at_least(1, starts, starts)) == []
