"""What the place in the step adds to the uncertainty: kernels run at different speeds in different parts of a step.

Clean samples of one part of the step compared with overlapped ones of another show what sets these parts apart (caches,
clocks, a co-runner nobody recorded) as much as the co-runner. Where the same parts stand on both sides, that cancels.
"""

import numpy as np

from c3prof.analysis.segments import FloatArray, IntArray, Segments, ratio
from c3prof.analysis.sides import Sides

_PARTS = 32  # more than there are
_BORROWED = 2.0  # degrees of freedom that the group's spread is worth


def with_place(sides: Sides, alone: FloatArray, variance: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """variance and freedom of w − mean progress with the variance of the place added: τ²·Σ (clean share − overlapped share)².

    The sum goes over the sixteenths of the step, or over the places of the name in it, whichever gives more; τ² is the
    variance between them in the row's clean samples, beyond what the scatter within explains, together with that of its
    group (weighing 2 degrees of freedom).
    """
    added, worth = np.zeros(sides.rows), np.ones(sides.rows)
    for clean_part, over_part in ((sides.clean_part, sides.over_part), (sides.clean_place % _PARTS, sides.over_place % _PARTS)):
        unlike = ((_shares(sides.clean, clean_part) - _shares(sides.over, over_part)) ** 2).sum(axis=1)
        own, own_freedom = _between(sides, clean_part)
        of_group = _of_group(own, own_freedom, sides)
        square = ratio(own_freedom * own + _BORROWED * of_group, own_freedom + _BORROWED)
        here = np.nan_to_num(square * alone**2 * unlike)
        worth = np.where(here > added, own_freedom + _BORROWED, worth)
        added = np.maximum(here, added)
    total = variance + added
    joint = ratio(total**2, variance**2 / freedom + added**2 / worth)
    return total, np.where(added > 0, joint, freedom)


def _shares(samples: Segments, part: IntArray) -> FloatArray:
    counts = np.bincount(samples.label * _PARTS + part, minlength=samples.count * _PARTS).reshape(samples.count, _PARTS)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _between(sides: Sides, part: IntArray) -> tuple[FloatArray, FloatArray]:
    """Relative variance between the parts of the step in the clean samples of each row (analysis of variance), and its freedom."""
    clean = sides.clean
    values = sides.clean_ns / clean.means(sides.clean_ns)[clean.label]
    cell = clean.label * _PARTS + part
    size = np.bincount(cell, minlength=clean.count * _PARTS).astype(float)
    mean = ratio(np.bincount(cell, weights=values, minlength=len(size)), size)
    within = clean.sums((values - mean[cell]) ** 2)
    between = np.nansum((size * (mean - 1) ** 2).reshape(-1, _PARTS), axis=1)
    table = size.reshape(-1, _PARTS)
    n, parts = table.sum(axis=1), (table > 0).sum(axis=1)
    mean_size = ratio(n - ratio((table**2).sum(axis=1), n), parts - 1)
    beyond = ratio(between, parts - 1) - np.nan_to_num(ratio(within, n - parts))
    return np.nan_to_num(np.maximum(ratio(beyond, mean_size), 0.0)), np.maximum(parts - 1.0, 0.0)


def _of_group(own: FloatArray, freedom: FloatArray, sides: Sides) -> FloatArray:
    """The mean variance between parts over the signatures of each row's group; over all where the group shows none."""
    first = np.zeros(sides.rows, bool)
    first[np.unique(sides.signature, return_index=True)[1]] = True
    weight = freedom * first
    groups = int(sides.group.max(initial=0)) + 1
    summed, weights = (np.bincount(sides.group, weights=values, minlength=groups) for values in (own * weight, weight))
    overall = ratio(summed.sum(), weights.sum())
    return np.nan_to_num(np.where(weights >= _BORROWED, ratio(summed, weights), overall)[sides.group])
