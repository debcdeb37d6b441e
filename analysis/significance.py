"""p values, interval factors and q values: Student's t (expansion in 1/n: Abramowitz and Stegun 26.7.5) and Benjamini-Hochberg, in numpy alone."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_TERMS = 200
_LEVEL = 0.95
_NORMAL = 1.959963984540054
"""The factor of a normal distribution at that level."""


def t_p_value(statistic: Any, freedom: Any) -> FloatArray:
    """The two-sided p value of Student's t: I_x(n/2, 1/2) with x = n / (n + t²), n degrees of freedom. NaN stays NaN, and no freedom gives NaN."""
    t, nu = np.broadcast_arrays(np.asarray(statistic, float), np.asarray(freedom, float))
    nu = np.where(nu > 0, nu, np.nan)
    return _incomplete_beta(nu / 2, 0.5, nu / (nu + t**2))


def t_factor(freedom: Any) -> FloatArray:
    """The t for which a two-sided 95 % interval holds, at least 1 degree of freedom; good to 6 digits."""
    inverse, factor = _factors()
    nu = np.asarray(freedom, float)
    return np.where(np.isnan(nu), np.nan, np.interp(1 / np.maximum(nu, 1.0), inverse, factor))


@lru_cache(maxsize=1)
def _factors() -> tuple[FloatArray, FloatArray]:
    """1 / degrees of freedom ascending and the factor there: four terms of its expansion in 1/n, then three Newton steps.

    The steps are on log p against log t, which is nearly a line for few degrees of freedom.
    """
    inverse = np.linspace(1e-5, 1.0, 2000)
    nu, z = 1 / inverse, _NORMAL
    series = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    t = np.polynomial.polynomial.polyval(inverse, series)
    log_scale = -_log_beta_half(nu / 2) - np.log(nu) / 2
    for _ in range(3):
        p = t_p_value(t, nu)
        density = np.exp(log_scale - (nu + 1) / 2 * np.log1p(t**2 * inverse))
        t = t * np.exp(np.log(p / (1 - _LEVEL)) * p / (2 * t * density))
    return inverse, np.asarray(t, np.float64)


def q_values(p: FloatArray) -> FloatArray:
    """Benjamini-Hochberg: q_(i) = min over j ≥ i of p_(j)·m/j, over the m rows that have a p value."""
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.full(len(p), np.nan)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q


def _incomplete_beta(a: FloatArray, b: float, x: FloatArray) -> FloatArray:
    """The regularized incomplete beta function I_x(a, b) for b = 1/2 (Lentz's continued fraction, Numerical Recipes §6.4)."""
    swap = x > (a + 1) / (a + b + 2)
    p, q = np.where(swap, b, a), np.where(swap, a, b)
    z = np.clip(np.where(swap, 1 - x, x), 1e-300, 1.0)
    rest = np.clip(1 - z, 1e-300, 1.0)
    front = np.exp(p * np.log(z) + q * np.log(rest) - _log_beta_half(a)) / p
    part = front * _fraction(p, q, z)
    value = np.where(swap, 1 - part, part)
    return np.where(np.isnan(x + a), np.nan, np.clip(value, 0.0, 1.0))


def _fraction(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    tiny = 1e-300
    c = np.ones_like(x)
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    h = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _away_from_zero(1 + even * d, tiny), _away_from_zero(1 + even / c, tiny)
        h = h * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _away_from_zero(1 + odd * d, tiny), _away_from_zero(1 + odd / c, tiny)
        h = h * d * c
        if np.all(np.isnan(d * c) | (np.abs(d * c - 1) < 1e-12)):
            break
    return h


def _away_from_zero(value: FloatArray, tiny: float) -> FloatArray:
    return np.where(np.abs(value) < tiny, tiny, value)


def _log_beta_half(a: FloatArray) -> FloatArray:
    """ln B(a, 1/2) = ln Γ(a) + ln Γ(1/2) − ln Γ(a + 1/2), by Stirling's series after shifting a up by 8."""
    shift = np.zeros_like(a)
    for k in range(8):
        shift = shift + np.log((a + 0.5 + k) / (a + k))
    return _log_gamma(a + 8) - _log_gamma(a + 8.5) + shift + 0.5 * np.log(np.pi)


def _log_gamma(a: FloatArray) -> FloatArray:
    return (a - 0.5) * np.log(a) - a + 0.5 * np.log(2 * np.pi) + 1 / (12 * a) - 1 / (360 * a**3) + 1 / (1260 * a**5)
