"""Which classes of compute slow a collective, by one fit over all of them (docs/metrics.md §3)."""

from typing import NamedTuple

import numpy as np

from c3prof.analysis.segments import FloatArray, ratio
from c3prof.analysis.significance import t_factor, t_p_value

_LEAST_SAMPLES, _LEAST_SHARE, _MOST_CONDITION = 3, 0.05, 30.0


class ClassFit(NamedTuple):
    """Of each class: samples that share time with it, rate r with its 95 % interval, standard error, p value for r = 1."""

    samples: FloatArray
    rate: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray


def class_fit(duration: FloatArray, shared: FloatArray, alone: float, resolution: float = 0.0) -> ClassFit | None:
    """The ClassFit of n samples, or None where the classes are not separable.

    duration: n; shared: n × k, the time that each sample shares with each class; alone: w. Least squares of
    d − w = Σ (1 − r_k)·o_k. Separable means 3 samples a class (5 % of their time or more), a condition number of the
    scaled columns below 30, more samples than classes by 3, and columns that differ from what the others explain by at
    least twice the resolution with which shared times are known.
    """
    n, k = shared.shape
    samples = (shared >= _LEAST_SHARE * duration[:, None]).sum(axis=0).astype(float)
    if k < 2 or n < k + _LEAST_SAMPLES or samples.min() < _LEAST_SAMPLES:
        return None
    scale = np.sqrt((shared**2).sum(axis=0))
    columns = shared / scale
    if np.linalg.cond(columns) >= _MOST_CONDITION:
        return None
    inverse = np.linalg.inv(columns.T @ columns)
    if (scale / np.sqrt(np.diag(inverse) * n) < 2 * resolution).any():
        return None
    loss = inverse @ columns.T @ (duration - alone)
    residual = duration - alone - columns @ loss
    freedom = float(n - k)
    error = np.sqrt(np.diag(inverse) * (residual @ residual) / freedom) / scale
    rate = 1 - loss / scale
    reach = t_factor(freedom) * error
    return ClassFit(samples, rate, error, rate - reach, rate + reach, t_p_value(ratio(rate - 1, error), freedom))
