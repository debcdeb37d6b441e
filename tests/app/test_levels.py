"""Level of detail against a count by hand: nothing is lost, cells nest, every level says what the spans say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.app.levels import Spans, power_of_two, pyramid


def spans(*rows):
    start, end, cls = zip(*rows, strict=True) if rows else ((), (), ())
    return Spans(np.array(start, np.int64), np.array(end, np.int64), np.array(cls, np.uint8))


def many(n, seed=0, longest=60):
    rng = np.random.default_rng(seed)
    duration = rng.integers(0, longest, n)
    start = np.cumsum(rng.integers(0, 30, n) + np.concatenate([[0], duration[:-1]]))
    return Spans(start, start + duration, rng.integers(0, 3, n).astype(np.uint8))


def by_hand(given_spans, unit):
    """Cells of the spans shorter than a unit, one ns after another."""
    busy, count = {}, {}
    for s, e, c in zip(given_spans.start.tolist(), given_spans.end.tolist(), given_spans.cls.tolist(), strict=True):
        if e - s >= unit:
            continue
        count[s // unit] = count.get(s // unit, 0) + 1
        busy.setdefault(s // unit, {})
        for ns in range(s, e):
            of = busy.setdefault(ns // unit, {})
            of[c] = of.get(c, 0) + 1
    return {cell: (sum(of.values()), count.get(cell, 0), of) for cell, of in busy.items()}


def test_short_spans_are_added_up_and_long_ones_stay():
    #  unit 8:  |0 . . . . . . 7|8 . . . . . . 15|16 …
    #            AAA   BB     CC CCC              DDDDDDDDDDDD
    given_spans = spans((0, 3, 0), (5, 7, 1), (6, 11, 1), (16, 28, 2))
    long, cells = pyramid(given_spans).window(0, 32, 8)
    assert long.tolist() == [3]
    assert cells.cell.tolist() == [0, 1]
    assert cells.busy.tolist() == [3 + 2 + 2, 3]
    assert cells.count.tolist() == [3, 0]
    assert cells.cls.tolist() == [1, 1]


def test_a_window_has_what_touches_it():
    given_spans = spans((0, 100, 0), (10, 12, 0), (200, 300, 0), (300, 301, 0))
    long, _ = pyramid(given_spans).window(50, 201, 1)
    assert long.tolist() == [0, 2]


def test_nothing_is_nothing():
    long, cells = pyramid(spans()).window(0, 10, 4)
    assert not len(long)
    assert not len(cells.cell)


@pytest.mark.parametrize("n", [5, 700, 3_000])
def test_every_unit_gives_all_of_the_time_and_all_of_the_spans(n):
    given_spans = many(n)
    made = pyramid(given_spans)
    duration = given_spans.end - given_spans.start
    for power in range(22):
        long, cells = made.window(0, int(given_spans.end.max()) + 1, 1 << power)
        assert duration[long].sum() + cells.busy.sum() == duration.sum()
        assert len(long) + cells.count.sum() == n
        assert (np.diff(cells.cell) > 0).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 50), st.integers(0, 10), st.sampled_from([20, 600, 1_500]))
def test_every_unit_equals_the_count_by_hand(seed, power, n):
    given_spans, unit = many(n, seed), 1 << power
    _, cells = pyramid(given_spans).window(0, int(given_spans.end.max()) + 1, unit)
    expected = by_hand(given_spans, unit)
    assert cells.cell.tolist() == sorted(expected)
    for cell, busy, count, cls in zip(cells.cell.tolist(), cells.busy.tolist(), cells.count.tolist(), cells.cls.tolist(), strict=True):
        total, starts, of = expected[cell]
        assert (busy, count) == (total, starts)
        assert not of or of.get(cls, 0) == max(of.values())


@given(st.floats(1, 1e18))
def test_the_power_of_two_is_the_largest_that_fits(ns):
    power = power_of_two(ns)
    assert power <= ns < 2 * power or int(ns) == power
    assert power & (power - 1) == 0
