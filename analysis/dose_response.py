"""What can be said of a kernel that never runs alone: d − o = w − r·o over samples of different overlap (§3, Evidence)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from c3prof.analysis.resampling import Counts, resampled_means
from c3prof.analysis.segments import FloatArray, IntArray, Segments, ratio
from c3prof.analysis.sides import Sides
from c3prof.analysis.significance import t_factor, t_p_value

LEAST_SAMPLES, LEAST_RANGE = 8, 0.3
_OUTLIER_MADS = 6
_STEPS = 6


class DoseResponse(NamedTuple):
    """Of each row: whether the overlap varies enough, samples used, w, r = 1/s with its 95 % interval, p value, time lost."""

    varies: npt.NDArray[np.bool_]
    n_over: IntArray
    clean_ns: FloatArray
    rate: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    lost_ns: FloatArray


def dose_response(sides: Sides, tick_ns: float, counts: Counts) -> DoseResponse:
    """The DoseResponse of all rows: least squares of d − o on o, without residuals beyond 6 MAD.

    The error comes from 1,000 resamples of steps where there are 6, else of samples, with n − 2 degrees of freedom.
    A row with fewer than 8 samples, or whose o/d ranges over less than 0.3, has no number.
    """
    apart = sides.over_ns - sides.shared_ns
    rate, alone = _line(sides.over, sides.shared_ns, apart)
    residual = np.abs(apart - alone[sides.over_row] + rate[sides.over_row] * sides.shared_ns)
    mad = np.maximum(sides.over.medians(residual), tick_ns)
    used = sides.keeping(~(residual > _OUTLIER_MADS * mad[sides.over_row]))
    low, high = used.over.extremes(used.shared_ns / used.over_ns)
    with np.errstate(invalid="ignore"):
        varies = (used.over.sizes >= LEAST_SAMPLES) & (high - low >= LEAST_RANGE)
    numbers = np.full((7, sides.rows), np.nan)
    if varies.any():
        numbers[:, varies] = _numbers(used.only(varies), tick_ns, counts)
    return DoseResponse(varies, used.over.sizes, *numbers)


def _numbers(sides: Sides, tick_ns: float, counts: Counts) -> FloatArray:
    """The columns clean_ns to lost_ns of DoseResponse, for rows whose overlap varies."""
    over, apart = sides.over, sides.over_ns - sides.shared_ns
    rate, alone = _line(over, sides.shared_ns, apart)
    error, freedom = _error(sides, apart, rate, tick_ns, counts)
    reach = t_factor(freedom) * error
    p_value = t_p_value(ratio(rate - 1, error), freedom)
    lost = over.sums(sides.over_ns) - alone * over.sizes
    return np.stack([alone, rate, error, rate - reach, rate + reach, p_value, lost])


def _line(over: Segments, shared: FloatArray, apart: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rate and time alone of each row by least squares: apart = alone − rate · shared."""
    mean_shared, mean_apart = over.means(shared), over.means(apart)
    centred = shared - mean_shared[over.label]
    rate = -ratio(over.sums(centred * apart), over.sums(centred**2))
    return rate, mean_apart + rate * mean_shared


def _error(sides: Sides, apart: FloatArray, rate: FloatArray, tick_ns: float, counts: Counts) -> tuple[FloatArray, FloatArray]:
    over = sides.over
    steps = over.distinct(sides.over_step)
    by_step = steps >= _STEPS
    unit = np.where(by_step[sides.over_row], sides.over_step, np.arange(len(sides.over_row)))
    x, y = (values - over.means(values)[sides.over_row] for values in (sides.shared_ns, apart))
    mean_x, mean_y, mean_xx, mean_xy = (resampled_means(over, values, unit, counts).astype(float) for values in (x, y, x * x, x * y))
    slopes = -ratio(mean_xy - mean_x * mean_y, mean_xx - mean_x**2)
    n = np.where(by_step, steps, over.sizes)
    resampled = np.where(np.isnan(slopes), np.nan_to_num(rate)[:, None], slopes).var(axis=1) * ratio(n, n - 2)
    timer = ratio(tick_ns**2 / 3, over.sums(x**2))
    return np.sqrt(np.maximum(resampled, timer)), np.maximum(n - 2.0, 1.0)
