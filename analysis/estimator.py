"""Rate model of a slowed activity: its factor, interval and p value, for all rows at once (docs/metrics.md §3).

Alone an activity needs w. While it shares the device it progresses at the rate r = 1/s, so that a span of length d of
which o is shared satisfies w = (d − o) + r·o.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c3prof.analysis.place import with_place
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
_CHUNK = 4096
_MOST_PRIOR = 20.0
_SCATTER = 0.1, 5.0  # of ln(variance), for which the prior lies between 20 and 1


@dataclass(frozen=True)
class Rates:
    """What the rate model gives for each row; NaN where a side is too short.

    rate ± error with `freedom` degrees (of Student's t); low, high: its 95 % interval; few: the t interval on log
    scale with pooled spread was used; n_steps: steps on the side that has fewer; outliers: overlapped samples left out; residual: w − (d − o) − r·o of each
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
    n_steps: IntArray
    residual: FloatArray
    kept: BoolArray


def rates(sides: Sides, tick_ns: float, counts: Counts | None) -> Rates:
    """The Rates of all rows: r = Σ(w − (d − o)) / Σ o with w the median of the clean samples.

    counts: of resampling.resample_counts; None for the pooled spread everywhere, which is faster. The error of a row comes from the bootstrap where both sides have 6
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
    units_clean, units_over = used.clean.distinct(used.clean_step), over.distinct(used.over_step)
    few = (np.minimum(n_clean, n_over) < ENOUGH) | (np.minimum(units_clean, units_over) < MINIMUM)
    measured = (n_clean >= MINIMUM) & (n_over >= MINIMUM) & ~np.isnan(rate)

    progress = apart + rate[used.over_row] * used.shared_ns
    variance, freedom = _pooled_variance(used, alone, progress)
    if counts is not None:
        variance, freedom = _bootstrap_variance(used, progress, counts, measured & ~few, variance, freedom)
    variance, freedom = with_place(used, alone, variance, freedom)
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
        _p_value(rate, error, _freedom_of_flag(freedom, np.maximum(units_clean, units_over), few), few),
        few & measured,
        np.minimum(units_clean, units_over),
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
    """Variance of w − mean progress from spreads pooled over the group, and its degrees of freedom.

    The moderated variance of Smyth (2004, "Linear models and empirical Bayes methods"): a row's own relative variance is
    drawn to that of its group, the more the more alike the rows of the group are. What a step does to several samples
    does not average out over them, so a side counts as many values as it has steps.
    """
    clean, over = sides.clean, sides.over
    first = np.zeros(sides.rows, bool)
    first[np.unique(sides.signature, return_index=True)[1]] = True
    n_clean, n_over = clean.distinct(sides.clean_step), over.distinct(sides.over_step)
    own_freedom = np.maximum(n_clean + n_over - 2.0, 0.0)
    values = np.maximum(clean.sizes + over.sizes - 2.0, 1.0)
    with np.errstate(invalid="ignore"):
        own = ratio(_squares(clean, sides.clean_ns) + _squares(over, progress), values * alone**2)
    typical, prior = _prior(own, own_freedom, sides.group, (over.sizes >= MINIMUM) & (clean.sizes >= MINIMUM))
    freedom = np.maximum(prior + own_freedom, 1.0)
    square = ratio(prior * typical + own_freedom * np.nan_to_num(own), freedom)
    return square * alone**2 * (ratio(_median_excess(n_clean), n_clean) + ratio(1, n_over)), freedom


def _prior(own: FloatArray, freedom: FloatArray, group: IntArray, used: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Typical relative variance of the group of each row, and how many degrees of freedom it is worth.

    From mean and variance of ln(own) over the rows of the group: ln of a variance with n degrees has the mean
    ln(true) + ψ(n/2) − ln(n/2) and the variance ψ'(n/2); what varies beyond that is ψ'(prior/2).
    """
    used = used & (own > 0) & (freedom > 0)
    order = np.flatnonzero(used)[np.argsort(group[used], kind="stable")]
    rows = Segments(group[order], int(group.max(initial=0)) + 1)
    half = freedom[order] / 2
    level = np.log(own[order]) + np.log(half) - _digamma(half)
    centre = rows.means(level)
    scatter = ratio(rows.sums((level - centre[rows.label]) ** 2), rows.sizes - 1)
    beyond = scatter - rows.means(_trigamma(half))
    with np.errstate(invalid="ignore", divide="ignore"):
        prior = np.where(beyond > 0, np.clip(2 * _inverse_trigamma(np.clip(beyond, *_SCATTER)), 1.0, _MOST_PRIOR), _MOST_PRIOR)
    known = rows.sizes >= MINIMUM
    prior = np.where(known, prior, 0.0)
    with np.errstate(invalid="ignore"):
        typical = np.where(known, np.exp(centre + _digamma(np.maximum(prior, 1) / 2) - np.log(np.maximum(prior, 1) / 2)), 0.0)
    return typical[group], prior[group]


def _digamma(x: FloatArray) -> FloatArray:
    """ψ(x) by recurrence and asymptotic series."""
    y = x + 6
    series = np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4)
    return np.asarray(series - sum(1 / (x + k) for k in range(6)))


def _trigamma(x: FloatArray) -> FloatArray:
    """ψ'(x) by recurrence and asymptotic series."""
    y = x + 6
    series = 1 / y + 1 / (2 * y**2) + 1 / (6 * y**3) - 1 / (30 * y**5)
    return np.asarray(series + sum(1 / (x + k) ** 2 for k in range(6)))


def _inverse_trigamma(value: FloatArray) -> FloatArray:
    """x with ψ'(x) = value, by Newton steps from 0.5 + 1/value."""
    x = 0.5 + 1 / value
    for _ in range(8):
        slope = (_trigamma(x * 1.001) - _trigamma(x)) / (0.001 * x)
        x = np.maximum(x - (_trigamma(x) - value) / slope, 1e-3)
    return np.asarray(x)


def _squares(segments: Segments, values: FloatArray) -> FloatArray:
    return segments.sums((values - segments.means(values)[segments.label]) ** 2)


def _bootstrap_variance(
    sides: Sides, progress: FloatArray, counts: Counts, wanted: BoolArray, variance: FloatArray, freedom: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """variance and freedom with the wanted rows replaced by those of 1,000 resamples of steps (of samples without steps)."""
    clean, over = sides.clean, sides.over
    steps_clean, steps_over = clean.distinct(sides.clean_step), over.distinct(sides.over_step)
    variance, freedom = variance.copy(), freedom.astype(float)
    for rows in np.array_split(np.flatnonzero(wanted), max(1, int(wanted.sum()) // _CHUNK)):
        here_clean, label_clean = _members(sides.clean_row, rows, sides.rows)
        here_over, label_over = _members(sides.over_row, rows, sides.rows)
        medians = resampled_medians(Segments(label_clean, len(rows)), sides.clean_ns[here_clean], sides.clean_step[here_clean], counts)
        means = resampled_means(Segments(label_over, len(rows)), progress[here_over], sides.over_step[here_over], counts)
        v_clean, v_over = medians.var(axis=1, dtype=float), means.var(axis=1, dtype=float)
        joint = (medians - means).var(axis=1, dtype=float)
        clean_scale, clean_freedom = _median_calibration(steps_clean[rows], (clean.sizes == steps_clean)[rows])
        n_over = steps_over[rows]
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
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        spread = np.exp(ratio(reach, rate))
        return np.where(few, rate / spread, rate - reach), np.where(few, rate * spread, rate + reach)


def _freedom_of_flag(freedom: FloatArray, steps: IntArray, few: BoolArray) -> FloatArray:
    """Degrees of freedom for the p value: no more than the steps allow, less one.

    Both sides are of the same steps, so their errors are not independent, as the interval's degrees take them to be; a
    few wild steps would otherwise flag rows more often than they should (benchmarks/placebo.py).
    """
    return np.where(few, freedom, np.minimum(freedom, np.maximum(steps - 1.0, 1.0)))


def _p_value(rate: FloatArray, error: FloatArray, freedom: FloatArray, few: BoolArray) -> FloatArray:
    """Two-sided p for r = 1 from the studentized statistic, on the scale of the interval."""
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(few, np.log(np.where(rate > 0, rate, np.nan)) * rate, rate - 1) / error
    return t_p_value(np.where(rate == 1, 0.0, np.clip(statistic, -1e8, 1e8)), freedom)
