"""The bootstrap: medians and means under resampled steps (or samples, without steps), without a loop per sample.

Every unit (a step) gets a Poisson(1) count in each resample, the same for all rows, so that what one step does to many
kernels stays together (Chamandy et al., "Estimating uncertainty for massive data streams", 2012). One table of counts
serves all rows, whatever their sizes.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from c3prof.analysis.segments import FloatArray, IntArray, Segments

RESAMPLES = 1000
_UNITS = 4096
_CELLS = 2**19  # of the largest working array: small enough for the processor's cache
_TINY = 120  # samples whose cumulative count surely fits into 8 bits
_BAND = 4.5  # standard deviations of a resampled median's place that are looked at
_WHOLE = 20  # places that are looked at in any case

Counts = npt.NDArray[np.uint8]
Floats32 = npt.NDArray[np.float32]


@lru_cache(maxsize=2)
def resample_counts(seed: int) -> Counts:
    """How often each unit is drawn in each resample; shape (units + 1, RESAMPLES), the last row (padding) is 0."""
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(9)])
    of_uniform = np.searchsorted(below, (np.arange(2**16) + 0.5) / 2**16).astype(np.uint8)
    counts = of_uniform[np.random.default_rng(seed).integers(0, 2**16, (_UNITS + 1, RESAMPLES), dtype=np.uint16)]
    counts[-1] = 0
    counts.flags.writeable = False
    return counts


def resampled_medians(segments: Segments, values: FloatArray, unit: IntArray, counts: Counts) -> Floats32:
    """Median of each segment in each resample, shape (segments, RESAMPLES); the plain median where nothing was drawn.

    Only the middle of the sorted values is looked at one by one: what lies more than 4.5 standard deviations (of the
    median's place, given the units) below it is counted by unit at once.
    """
    order = np.lexsort((values, segments.label))
    plain = segments.medians(values)
    unit = unit[order] % _UNITS
    low, width = _bands(segments, unit)
    values, padded_unit = np.append(values[order], 0.0), np.append(unit, _UNITS)
    medians = np.empty((segments.count, RESAMPLES), np.float32)
    for rows in _blocks(width):
        below, total = _drawn_below(segments, rows, unit, low, counts)
        places = _padded(segments.starts[rows] + low[rows], width[rows])
        drawn = counts[padded_unit[places.T]]
        drawn = drawn.astype(np.uint8 if len(drawn) <= _TINY else np.uint32, copy=False)
        for j in range(1, len(drawn)):
            drawn[j] += drawn[j - 1]
        first, second = (np.clip(rank - below, 0, drawn[-1]).astype(drawn.dtype) for rank in ((total + 1) // 2, total // 2 + 1))
        at = _position(drawn, first)
        then = at.copy()
        split = (second > first) & (np.take_along_axis(drawn, at[None], 0)[0] == first)
        then[split] = _position(drawn[:, split], second[split])
        here = values[places]
        middle = (np.take_along_axis(here, at, 1) + np.take_along_axis(here, then, 1)) / 2
        medians[rows] = np.where(total > 0, middle, plain[rows][:, None])
    return medians


def resampled_means(segments: Segments, values: FloatArray, unit: IntArray, counts: Counts) -> Floats32:
    """Mean of each segment in each resample, shape (segments, RESAMPLES); the plain mean where nothing was drawn."""
    means = np.empty((segments.count, RESAMPLES), np.float32)
    plain = segments.means(values)
    values, unit = np.append(values, 0.0).astype(np.float32), np.append(unit % _UNITS, _UNITS)
    for rows in _blocks(segments.sizes):
        places = _padded(segments.starts[rows], segments.sizes[rows])
        drawn = counts[unit[places]].astype(np.float32)
        total = drawn.sum(axis=1)
        sums = np.matmul(values[places][:, None, :], drawn)[:, 0, :]
        means[rows] = np.where(total > 0, sums / np.maximum(total, 1), plain[rows][:, None])
    return means


def _bands(segments: Segments, unit: IntArray) -> tuple[IntArray, IntArray]:
    """First place and width of the band of sorted values in which each segment's resampled median lies."""
    sizes, label = segments.sizes, segments.label
    half = np.where(2 * segments.ordinals() < sizes[label], -0.5, 0.5)
    cells, cell = np.unique(label * _UNITS + unit, return_inverse=True)
    of_unit = np.bincount(cell, weights=half)
    reach = _BAND * np.sqrt(np.bincount(cells // _UNITS, weights=of_unit**2, minlength=segments.count)) + _WHOLE / 2
    low = np.clip(np.floor(sizes / 2 - reach), 0, None).astype(np.int64)
    return low, np.minimum(np.ceil(sizes / 2 + reach).astype(np.int64), sizes) - low


def _drawn_below(segments: Segments, rows: IntArray, unit: IntArray, low: IntArray, counts: Counts) -> tuple[Any, Any]:
    """How many samples each resample draws below the band, and in all; shape (rows, RESAMPLES), int64."""
    sizes = segments.sizes[rows]
    places = np.repeat(segments.starts[rows] - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    row = np.repeat(np.arange(len(rows)), sizes)
    units, column = np.unique(unit[places], return_inverse=True)
    cell, shape = row * len(units) + column, (len(rows), len(units))
    under = places - segments.starts[rows][row] < low[rows][row]
    table = counts[units].astype(np.float32)
    sums = (np.bincount(cell, weights=weights, minlength=shape[0] * shape[1]).reshape(shape) for weights in (under, np.ones(len(cell))))
    below, total = (np.rint(one.astype(np.float32) @ table).astype(np.int64) for one in sums)
    return below, total


def _position(cumulative: npt.NDArray[Any], rank: npt.NDArray[Any]) -> IntArray:
    """The first place whose cumulative count reaches the rank (counted from 1)."""
    place = np.zeros(rank.shape, cumulative.dtype)
    for drawn_so_far in cumulative[:-1]:
        place += (drawn_so_far < rank).view(np.uint8)
    return place.astype(np.int64)


def _blocks(sizes: IntArray) -> Iterator[IntArray]:
    """Segments of similar size, in blocks of bounded work."""
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    first = 0
    while first < len(order):
        last = int(np.searchsorted(ordered, ordered[first] * 5 // 4, side="right"))
        last = min(last, first + max(1, _CELLS // (max(int(ordered[last - 1]), 1) * RESAMPLES)))
        yield order[first:last]
        first = last


def _padded(first: IntArray, sizes: IntArray) -> IntArray:
    """Places first, first + 1, … of each segment, padded with -1 to the largest size."""
    ahead = np.arange(max(int(sizes.max(initial=0)), 1))
    return np.where(ahead < sizes[:, None], first[:, None] + ahead, -1)
