"""Sums, medians and spreads of the runs of equal labels in sorted arrays; a loop only over runs long enough to be worth it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MANY = 16  # values of a label from which on a sort of their own is faster than one by two keys


@dataclass(frozen=True)
class Segments:
    """Values grouped by a label 0..count-1; `label` is sorted ascending, a label without values is allowed."""

    label: IntArray
    count: int

    @cached_property
    def sizes(self) -> IntArray:
        return np.bincount(self.label, minlength=self.count).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        sizes = self.sizes
        return np.asarray(np.cumsum(sizes) - sizes, np.int64)

    def sums(self, values: Any) -> FloatArray:
        """Sum per label, 0 without values."""
        return np.asarray(np.bincount(self.label, weights=np.asarray(values, float), minlength=self.count), np.float64)

    def means(self, values: Any) -> FloatArray:
        """Mean per label, NaN without values."""
        return ratio(self.sums(values), self.sizes)

    def ascending(self, values: Any) -> npt.NDArray[Any]:
        """The values sorted within each label."""
        ordered, many = np.array(values), self.sizes >= _MANY
        for first, size in zip(self.starts[many].tolist(), self.sizes[many].tolist(), strict=True):
            ordered[first : first + size].sort()
        few = np.flatnonzero(~many[self.label])
        left = ordered[few]
        ordered[few] = left[np.lexsort((left, self.label[few]))]
        return ordered

    def medians(self, values: Any) -> FloatArray:
        """Median per label, NaN without values."""
        ordered = np.append(self.ascending(np.asarray(values, float)), np.nan)
        sizes, starts = self.sizes, self.starts
        low, high = starts + (sizes - 1) // 2, starts + sizes // 2
        middle = (ordered[np.where(sizes > 0, low, -1)] + ordered[np.where(sizes > 0, high, -1)]) / 2
        return np.where(sizes > 0, middle, np.nan)

    def extremes(self, values: Any) -> tuple[FloatArray, FloatArray]:
        """Minimum and maximum per label, NaN without values."""
        values = np.asarray(values, float)
        low, high = np.full(self.count, np.inf), np.full(self.count, -np.inf)
        np.minimum.at(low, self.label, values)
        np.maximum.at(high, self.label, values)
        some = self.sizes > 0
        return np.where(some, low, np.nan), np.where(some, high, np.nan)

    def distinct(self, values: IntArray) -> IntArray:
        """How many different values each label has."""
        if not len(values):
            return np.zeros(self.count, np.int64)
        value = self.ascending(values)
        first = np.ones(len(value), bool)
        first[1:] = (self.label[1:] != self.label[:-1]) | (value[1:] != value[:-1])
        return np.bincount(self.label[first], minlength=self.count).astype(np.int64)

    def ordinals(self) -> IntArray:
        """0, 1, 2, … within each label."""
        return np.arange(len(self.label)) - self.starts[self.label]


def ratio(numerator: Any, denominator: Any) -> FloatArray:
    """numerator / denominator, NaN where the denominator is 0 or unknown."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=(bottom != 0) & ~np.isnan(bottom))
