"""The line of each rank's clock: a robust fit of ends that should coincide."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SIGNIFICANT = 5.0
"""Standard errors that a drift must exceed to be believed."""

PLAUSIBLE_DRIFT = 50e-6
"""What a clock of a computer may drift, where the common ends do not show it."""

STANDARD_ERRORS = 4.0
"""How many of them a bound spans: 64 ranks are within theirs together in more than 99 of 100 runs."""

FEW = 6
"""Fewer ends than this show no drift."""

_MAD = 1.4826


@dataclass(frozen=True)
class Ends:
    """Ends of synchronizing collectives, one element a record: group, operation, rank (codes), end in ns from the middle."""

    group: Codes
    operation: Codes
    rank: Codes
    end: Floats

    def where(self, kept: Mask) -> "Ends":
        return Ends(self.group[kept], self.operation[kept], self.rank[kept], self.end[kept])


@dataclass
class Lines:
    """The clock of each rank code: shown time = true + offset + drift · true. NaN while unknown.

    error, drift_error: standard errors; scatter: robust standard deviation of the ends; n: ends that were compared;
    reference: the rank code that the line is against (the lowest of those tied together), -1 while unknown.
    """

    offset: Floats
    drift: Floats
    error: Floats
    drift_error: Floats
    scatter: Floats
    n: Codes
    reference: Codes

    @classmethod
    def unknown(cls, ranks: int) -> "Lines":
        offset, drift, error, drift_error, scatter = (np.full(ranks, np.nan) for _ in range(5))
        return cls(offset, drift, error, drift_error, scatter, np.zeros(ranks, np.int64), np.full(ranks, -1))

    def true_time(self, rank: Codes, end: Floats) -> Floats:
        """NaN for ranks that are unknown."""
        return np.asarray((end - self.offset[rank]) / (1 + self.drift[rank]))

    def take(self, other: "Lines", ranks: Codes, reference: Codes) -> None:
        for name in ("offset", "drift", "error", "drift_error", "scatter", "n"):
            getattr(self, name)[ranks] = getattr(other, name)[ranks]
        self.reference[ranks] = reference

    def anchor(self, rank: int) -> None:
        """Makes a rank the reference of those that will be tied to it."""
        for name in ("offset", "drift", "error", "drift_error"):
            getattr(self, name)[rank] = 0.0
        self.reference[rank] = rank


def common_clock(ends: Ends, host: Codes) -> Lines:
    """The Lines of all ranks against the lowest of those that they are tied to, which is exactly 0.

    First group by group from the known ranks to the unknown ones, the group with most ends first; a rank that no
    group ties takes the line of its host, else it starts over as a reference. Then twice all together, each operation
    at the median of all its ends.
    """
    lines = Lines.unknown(len(host))
    for rank in range(len(host)):
        if lines.reference[rank] < 0:
            lines.anchor(rank)
            while _one_group(lines, ends) or _one_host(lines, host):
                pass
    for _ in range(2 if len(ends.rank) else 0):
        time = operation_median(ends.operation, lines.true_time(ends.rank, ends.end))
        fitted = fitted_lines(ends.rank, time, ends.end, len(host))
        tied = np.flatnonzero(fitted.n > 0)
        lines.take(_against_reference(fitted, lines.reference), tied, lines.reference[tied])
    return lines


def _one_group(lines: Lines, ends: Ends) -> bool:
    """Ties the unknown ranks of one group to its known ones; False when there is no such group."""
    known = lines.reference >= 0
    n_groups = int(ends.group.max(initial=-1)) + 1
    held = np.bincount(ends.group[known[ends.rank]], minlength=n_groups)
    new = np.bincount(ends.group[~known[ends.rank]], minlength=n_groups)
    gain = np.where(held > 0, new, 0)
    for group in np.argsort(-gain, kind="stable")[: int((gain > 0).sum())]:
        inside = ends.where(ends.group == group)
        anchored = known[inside.rank]
        seen = np.isin(inside.operation, inside.operation[anchored])
        if not (seen & ~anchored).any():
            continue
        held_by = inside.where(anchored)
        time = np.full(int(inside.operation.max()) + 1, np.nan)
        time[held_by.operation] = operation_median(held_by.operation, lines.true_time(held_by.rank, held_by.end))
        free = inside.where(seen & ~anchored)
        fitted = fitted_lines(free.rank, time[free.operation], free.end, len(lines.offset))
        lines.take(fitted, np.unique(free.rank), lines.reference[held_by.rank[0]])
        return True
    return False


def _one_host(lines: Lines, host: Codes) -> bool:
    """Gives unknown ranks the line of a known rank of their host; False when there are none."""
    known = np.flatnonzero((lines.reference >= 0) & (host >= 0))
    lost = np.flatnonzero((lines.reference < 0) & np.isin(host, host[known]))
    for rank in lost:
        mate = known[host[known] == host[rank]][0]
        for name in ("offset", "drift", "error", "drift_error", "reference"):
            getattr(lines, name)[rank] = getattr(lines, name)[mate]
    return bool(len(lost))


def operation_median(operation: Codes, time: Floats) -> Floats:
    """For each record the median of the times of its operation."""
    return medians(operation, time, int(operation.max(initial=-1)) + 1)[operation]


def fitted_lines(rank: Codes, true: Floats, shown: Floats, ranks: int) -> Lines:
    """The Lines of shown − true = offset + drift · true for each rank code; NaN for ranks without records.

    Start: medians of the first and the last third. Then least squares without residuals beyond 6 MAD.
    The variance is doubled: the median that an end is compared with contains the end.
    """
    distance = shown - true
    offset, drift = _start(rank, true, distance, ranks)
    residual = distance - offset[rank] - drift[rank] * true
    spread = medians(rank, np.abs(residual), ranks)
    kept = np.abs(residual) <= 6 * _MAD * spread[rank] + 1.0
    return _least_squares(rank[kept], true[kept], distance[kept], ranks, _MAD * spread)


def _start(rank: Codes, true: Floats, distance: Floats, ranks: int) -> tuple[Floats, Floats]:
    by = np.lexsort((true, rank))
    count = np.bincount(rank, minlength=ranks)
    place = np.empty(len(rank), np.int64)
    place[by] = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
    third = count[rank] // 3
    early, late = place < third, place >= count[rank] - third
    level = [medians(rank[part], distance[part], ranks) for part in (early, late)]
    at = [medians(rank[part], true[part], ranks) for part in (early, late)]
    with np.errstate(invalid="ignore", divide="ignore"):
        drift = (level[1] - level[0]) / (at[1] - at[0])
    drift = np.where(np.isfinite(drift) & (count >= FEW), drift, 0.0)
    return medians(rank, distance - drift[rank] * true, ranks), drift


def _least_squares(rank: Codes, true: Floats, distance: Floats, ranks: int, scatter: Floats) -> Lines:
    n = np.bincount(rank, minlength=ranks)

    def mean(values: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.bincount(rank, values, ranks) / n)

    center, level = mean(true), mean(distance)
    x, y = true - center[rank], distance - level[rank]
    with np.errstate(invalid="ignore", divide="ignore"):
        square = np.bincount(rank, x * x, ranks)
        slope = np.bincount(rank, x * y, ranks) / square
        left = np.bincount(rank, (y - np.nan_to_num(slope)[rank] * x) ** 2, ranks)
        variance = 2 * left / np.maximum(n - 2, 1)
        slope_error = np.sqrt(variance / square)
    fitted = (n >= FEW) & np.isfinite(slope_error)
    believed = fitted & (np.abs(slope) > SIGNIFICANT * slope_error)
    drift = np.where(n > 0, np.where(believed, slope, 0.0), np.nan)
    unseen = np.fmin(SIGNIFICANT * slope_error, PLAUSIBLE_DRIFT) / STANDARD_ERRORS
    drift_error = np.where(believed, slope_error, np.where(fitted, unseen, PLAUSIBLE_DRIFT / STANDARD_ERRORS))
    reach = np.zeros(ranks)
    np.maximum.at(reach, rank, np.abs(x))
    alone = np.where(n >= 3, 0.0, np.abs(y).max(initial=0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(variance / n + (drift_error * reach) ** 2) + alone
    unknown = np.full(ranks, -1)
    return Lines(level - drift * center, drift, np.where(n > 0, error, np.nan), drift_error, scatter, n, unknown)


def _against_reference(lines: Lines, reference: Codes) -> Lines:
    """The same Lines with each reference at exactly 0; its errors are added to the others'."""
    zero = np.where(np.isfinite(lines.offset[reference]), reference, -1)
    shift, rate, error, drift_error = (
        np.where(zero >= 0, v[zero], 0.0) for v in (lines.offset, lines.drift, lines.error, lines.drift_error)
    )
    drift = (1 + lines.drift) / (1 + rate) - 1
    offset = lines.offset - (1 + drift) * shift
    own = np.arange(len(reference)) == reference
    error, drift_error = (np.where(own, 0.0, np.hypot(a, b)) for a, b in ((lines.error, error), (lines.drift_error, drift_error)))
    return Lines(np.where(own, 0.0, offset), np.where(own, 0.0, drift), error, drift_error, lines.scatter, lines.n, reference)


def medians(code: Codes, values: Floats, n: int) -> Floats:
    """The median of the values of each code, NaN without values."""
    by = np.lexsort((values, code))
    count = np.bincount(code, minlength=n)
    start = np.cumsum(count) - count
    result = np.full(n, np.nan)
    some = count > 0
    low, high = start[some] + (count[some] - 1) // 2, start[some] + count[some] // 2
    result[some] = (values[by[low]] + values[by[high]]) / 2
    return result
