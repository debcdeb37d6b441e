"""The bootstrap: medians and means under resampled steps (or activities), without a loop per sample.

Every unit (a step, or an activity where there are fewer than 6 steps) gets a Poisson(1) count in each resample, the
same for all rows, so that what one step does to many kernels stays together (Chamandy et al., "Estimating uncertainty
for massive data streams", 2012). One table of counts serves all rows, whatever their sizes.
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
_TINY, _SHORT = 120, 2**15  # samples whose cumulative count surely fits into 8 and 16 bits
_CELLS = 2**19  # of the largest working array: small enough for the processor's cache

Counts = npt.NDArray[np.uint8]


@lru_cache(maxsize=2)
def resample_counts(seed: int) -> Counts:
    """How often each unit is drawn in each resample; shape (units + 1, RESAMPLES), the last row (padding) is 0."""
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(9)])
    of_uniform = np.searchsorted(below, (np.arange(2**16) + 0.5) / 2**16).astype(np.uint8)
    counts = of_uniform[np.random.default_rng(seed).integers(0, 2**16, (_UNITS + 1, RESAMPLES), dtype=np.uint16)]
    counts[-1] = 0
    counts.flags.writeable = False
    return counts


def resampled_medians(segments: Segments, values: FloatArray, unit: IntArray, counts: Counts) -> npt.NDArray[np.float32]:
    """Median of each segment in each resample, shape (segments, RESAMPLES); the plain median where nothing was drawn."""
    order = np.lexsort((values, segments.label))
    plain = segments.medians(values)
    values, unit = np.append(values[order], 0.0), np.append(unit[order] % _UNITS, _UNITS)
    medians = np.empty((segments.count, RESAMPLES), np.float32)
    for rows, places in _blocks(segments):
        padded = values[places]
        drawn = counts[unit[places.T]]
        drawn = drawn.astype(np.uint8 if len(drawn) <= _TINY else np.uint16 if len(drawn) <= _SHORT else np.uint32, copy=False)
        for j in range(1, len(drawn)):
            drawn[j] += drawn[j - 1]
        total = drawn[-1]
        low = _position(drawn, (total + 1) // 2)
        high = low.copy()
        split = (total % 2 == 0) & (np.take_along_axis(drawn, low[None], 0)[0] == total // 2)
        high[split] = _position(drawn[:, split], total[split] // 2 + 1)
        middle = (np.take_along_axis(padded, low, 1) + np.take_along_axis(padded, high, 1)) / 2
        medians[rows] = np.where(total > 0, middle, plain[rows][:, None])
    return medians


def resampled_means(segments: Segments, values: FloatArray, unit: IntArray, counts: Counts) -> npt.NDArray[np.float32]:
    """Mean of each segment in each resample, shape (segments, RESAMPLES); the plain mean where nothing was drawn."""
    means = np.empty((segments.count, RESAMPLES), np.float32)
    plain = segments.means(values)
    values, unit = np.append(values, 0.0).astype(np.float32), np.append(unit % _UNITS, _UNITS)
    for rows, places in _blocks(segments):
        padded = values[places]
        drawn = counts[unit[places]].astype(np.float32)
        total = drawn.sum(axis=1)
        sums = np.matmul(padded[:, None, :], drawn)[:, 0, :]
        means[rows] = np.where(total > 0, sums / np.maximum(total, 1), plain[rows][:, None])
    return means


def _position(cumulative: npt.NDArray[Any], rank: npt.NDArray[Any]) -> IntArray:
    """The first place whose cumulative count reaches the rank (counted from 1)."""
    place = np.zeros(rank.shape, cumulative.dtype)
    for drawn_so_far in cumulative[:-1]:
        place += (drawn_so_far < rank).view(np.uint8)
    return place.astype(np.int64)


def _blocks(segments: Segments) -> Iterator[tuple[IntArray, IntArray]]:
    """Segments of similar size as (segment numbers, their places padded with -1 to one width), in bounded blocks."""
    sizes, starts = segments.sizes, segments.starts
    order = np.argsort(sizes, kind="stable")
    first = 0
    while first < len(order):
        smallest = int(sizes[order[first]])
        last = int(np.searchsorted(sizes[order], smallest * 5 // 4, side="right"))
        width = max(int(sizes[order[last - 1]]), 1)
        last = min(last, first + max(1, _CELLS // (width * RESAMPLES)))
        rows = order[first:last]
        places = starts[rows][:, None] + np.arange(width)
        yield rows, np.where(np.arange(width) < sizes[rows][:, None], places, -1)
        first = last
