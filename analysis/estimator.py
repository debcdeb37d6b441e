"""Rate model of a slowed activity: its factor, interval and p value, for all rows at once (docs/metrics.md §3).

Alone an activity needs w. While it shares the device it progresses at the rate r = 1/s, so that a span of length d of
which o is shared satisfies w = (d − o) + r·o.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c3prof.analysis.resampling import Counts, resampled_means, resampled_medians
from c3prof.analysis.segments import FloatArray, IntArray, Segments, ratio
from c3prof.analysis.sides import Sides
from c3prof.analysis.significance import t_factor, t_p_value

BoolArray = npt.NDArray[np.bool_]

MINIMUM = 3
"""Samples that a number needs on both sides."""
ENOUGH = 6
"""Samples (or steps) from which on the bootstrap speaks; below, the spread is pooled over the kernel class."""

_OUTLIER_MADS = 6
_POOL_MADS = 15
_CHUNK = 4096
_MOST_FREEDOM = 10  # of a pooled spread: signatures of one class do not have one spread


@dataclass(frozen=True)
class Rates:
    """What the rate model gives for each row; NaN where a side is too short.

    rate ± error with `freedom` degrees (of Student's t); low, high: its 95 % interval; few: the t interval on log
    scale with pooled spread was used; outliers: overlapped samples left out; residual: w − (d − o) − r·o of each
    overlapped sample that was used, in ns; kept: which of the overlapped samples those are.
    """

    n_clean: IntArray
    n_over: IntArray
    outliers: IntArray
    clean_ns: FloatArray
    over_ns: FloatArray
    lost_ns: FloatArray
    shared_ns: FloatArray
    rate: FloatArray
    error: FloatArray
    freedom: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    few: BoolArray
    residual: FloatArray
    kept: BoolArray


def rates(sides: Sides, tick_ns: float, counts: Counts) -> Rates:
    """The Rates of all rows: r = Σ(w − (d − o)) / Σ o with w the median of the clean samples.

    counts: of resampling.resample_counts. The error of a row comes from the bootstrap where both sides have 6
    samples, else from the spread pooled over its group; a timer of resolution q adds the variance of ±q per duration.
    """
    alone = sides.clean.medians(sides.clean_ns)
    kept = _kept(sides, alone, tick_ns)
    used = sides.keeping(kept)
    over = used.over
    apart = used.over_ns - used.shared_ns
    shared = over.sums(used.shared_ns)
    rate = ratio(over.sums(alone[used.over_row] - apart), shared)
    n_clean, n_over = used.clean.sizes, over.sizes
    few = (n_clean < ENOUGH) | (n_over < ENOUGH)
    measured = (n_clean >= MINIMUM) & (n_over >= MINIMUM) & ~np.isnan(rate)

    progress = apart + rate[used.over_row] * used.shared_ns
    variance, freedom = _pooled_variance(used, alone, progress)
    variance, freedom = _bootstrap_variance(used, alone, progress, counts, measured & ~few, variance, freedom)
    variance = np.maximum(variance, tick_ns**2 / 3 * (ratio(_median_excess(n_clean), n_clean) + ratio(1, n_over)))
    error = np.where(measured, np.sqrt(variance) * ratio(n_over, shared), np.nan)
    rate = np.where(measured, rate, np.nan)
    low, high = _interval(rate, error, t_factor(freedom), few)
    return Rates(
        n_clean,
        n_over,
        sides.over.sizes - n_over,
        alone,
        over.medians(used.over_ns),
        np.where(n_clean > 0, over.sums(used.over_ns - alone[used.over_row]), np.nan),
        shared,
        rate,
        error,
        freedom,
        low,
        high,
        _p_value(rate, error, freedom, few),
        few & measured,
        alone[used.over_row] - progress,
        kept,
    )


def _kept(sides: Sides, alone: FloatArray, tick_ns: float) -> BoolArray:
    """Which overlapped samples lie within 6 MAD of the row's median rate; with fewer than 6 samples all do."""
    over = sides.over
    progress = alone[sides.over_row] - (sides.over_ns - sides.shared_ns)
    residual = progress - over.medians(ratio(progress, sides.shared_ns))[sides.over_row] * sides.shared_ns
    residual = np.abs(residual - over.medians(residual)[sides.over_row])
    mad = np.maximum(over.medians(residual), tick_ns)
    few = over.sizes < ENOUGH
    return ~(residual > _OUTLIER_MADS * mad[sides.over_row]) | few[sides.over_row]


def _pooled_variance(sides: Sides, alone: FloatArray, progress: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of w − mean progress from the coefficient of variation pooled over the group, and its freedom.

    Pooled are the clean samples of each signature (once) and the overlapped samples of each row; single relative
    deviations beyond 15 MAD of the group are left out.
    """
    first = np.zeros(sides.rows, bool)
    first[np.unique(sides.signature, return_index=True)[1]] = True
    clean, over = sides.clean, sides.over
    deviation = np.concatenate(
        [
            (sides.clean_ns - clean.means(sides.clean_ns)[sides.clean_row]) / alone[sides.clean_row],
            (progress - over.means(progress)[sides.over_row]) / alone[sides.over_row],
        ]
    )
    row = np.concatenate([sides.clean_row, sides.over_row])
    used = ~np.isnan(deviation) & np.concatenate([first[sides.clean_row], np.ones(len(sides.over_row), bool)])
    group, deviation, row = sides.group[row[used]], deviation[used], row[used]
    groups = Segments(np.sort(group), int(sides.group.max(initial=0)) + 1)
    order = np.argsort(group, kind="stable")
    size = np.abs(deviation[order])
    inside = size <= _POOL_MADS * np.maximum(groups.medians(size), 1e-12)[groups.label]
    kept = Segments(groups.label[inside], groups.count)
    rows_in = np.bincount(sides.group, weights=(first & (clean.sizes > 0)).astype(float) + (over.sizes > 0), minlength=groups.count)
    freedom = np.maximum(kept.sizes - rows_in, 1)
    square = (kept.sums(size[inside] ** 2) / freedom)[sides.group]
    own = ratio(_squares(clean, sides.clean_ns) + _squares(over, progress), np.maximum(clean.sizes + over.sizes - 2, 1) * alone**2)
    spread = np.fmax(square, own) * alone**2 * (ratio(_median_excess(clean.sizes), clean.sizes) + ratio(1, over.sizes))
    return spread, np.minimum(freedom[sides.group], _MOST_FREEDOM)


def _squares(segments: Segments, values: FloatArray) -> FloatArray:
    return segments.sums((values - segments.means(values)[segments.label]) ** 2)


def _bootstrap_variance(
    sides: Sides, alone: FloatArray, progress: FloatArray, counts: Counts, wanted: BoolArray, variance: FloatArray, freedom: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """variance and freedom with the wanted rows replaced by those of 1,000 resamples of steps, or of activities."""
    clean, over = sides.clean, sides.over
    steps_clean, steps_over = clean.distinct(sides.clean_step), over.distinct(sides.over_step)
    by_step = (steps_clean >= ENOUGH) & (steps_over >= ENOUGH)
    clean_unit = np.where(by_step[sides.clean_row], sides.clean_step, np.arange(len(sides.clean_row)))
    over_unit = np.where(by_step[sides.over_row], sides.over_step, len(sides.clean_row) + np.arange(len(sides.over_row)))
    variance, freedom = variance.copy(), freedom.astype(float)
    for rows in np.array_split(np.flatnonzero(wanted), max(1, int(wanted.sum()) // _CHUNK)):
        here_clean, label_clean = _members(sides.clean_row, rows, sides.rows)
        here_over, label_over = _members(sides.over_row, rows, sides.rows)
        medians = resampled_medians(Segments(label_clean, len(rows)), sides.clean_ns[here_clean], clean_unit[here_clean], counts)
        means = resampled_means(Segments(label_over, len(rows)), progress[here_over], over_unit[here_over], counts)
        v_clean, v_over = medians.var(axis=1, dtype=float), means.var(axis=1, dtype=float)
        joint = (medians - means).var(axis=1, dtype=float)
        clean_scale, clean_freedom = _median_calibration(np.where(by_step, steps_clean, clean.sizes)[rows], (clean.sizes == steps_clean)[rows] | ~by_step[rows])
        n_over = np.where(by_step, steps_over, over.sizes)[rows]
        v_clean_fair, v_over_fair = v_clean * clean_scale, v_over * n_over / (n_over - 1)
        both = v_clean_fair + v_over_fair
        variance[rows] = joint * np.where(v_clean + v_over > 0, ratio(both, v_clean + v_over), 1.0)
        welch = ratio(both**2, v_clean_fair**2 / clean_freedom + v_over_fair**2 / (n_over - 1))
        freedom[rows] = np.where(np.isnan(welch), n_over - 1, welch)
    return variance, freedom


def _members(row: IntArray, rows: IntArray, count: int) -> tuple[BoolArray, IntArray]:
    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))
    here = place[row] >= 0
    return here, place[row][here]


def _median_calibration(n: IntArray, single: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Factor on the bootstrap variance of a median of n units, and its degrees of freedom.

    With one sample a unit the bootstrap overstates that variance (by 1.4 for n = 6, 1.2 for n = 30) and scatters like
    one with √n, at least 4, degrees; the factor is such that 2.1 errors hold 95 %, as measured for normal and for
    t(4) samples of n = 6 … 120 (benchmarks/coverage.py). With several samples a unit it behaves as a mean's.
    """
    freedom = np.where(single, np.maximum(4.0, np.sqrt(n)), n - 1.0)
    return np.where(single, (2.1 / t_factor(freedom)) ** 2, n / (n - 1.0)), freedom


def _median_excess(n: IntArray) -> FloatArray:
    """n · variance of the median of n normal samples (in units of one sample's), π/2 for many; exact for small n."""
    exact = np.array([np.nan, 1.0, 1.0, 1.3460, 1.1931, 1.4341, 1.2882])
    return np.where(n < len(exact), exact[np.minimum(n, len(exact) - 1)], np.pi / 2)


def _interval(rate: FloatArray, error: FloatArray, factor: FloatArray, few: BoolArray) -> tuple[FloatArray, FloatArray]:
    reach = factor * error
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.exp(ratio(reach, rate))
        return np.where(few, rate / spread, rate - reach), np.where(few, rate * spread, rate + reach)


def _p_value(rate: FloatArray, error: FloatArray, freedom: FloatArray, few: BoolArray) -> FloatArray:
    """Two-sided p for r = 1 from the studentized statistic, on the scale of the interval."""
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(few, np.log(np.where(rate > 0, rate, np.nan)) * rate, rate - 1) / error
    return t_p_value(np.where(rate == 1, 0.0, np.clip(statistic, -1e8, 1e8)), freedom)
