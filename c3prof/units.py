"""Unit factors and how numbers are written; the only place with 1e3, 1e9 and "GB/s"."""

import math
import re

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"), (1, "ns"))
_SIZE_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


def text_of_time(time_ns: float) -> str:
    """A time with three significant digits and its unit: 12.3 ms."""
    return _text_in_steps(time_ns, _TIME_STEPS)


def text_of_size(size_bytes: float) -> str:
    """A size with three significant digits and its decimal unit: 25.6 MB."""
    return _text_in_steps(size_bytes, _SIZE_STEPS)


def text_of_ratio(ratio: float) -> str:
    """A ratio 0-1 as percent: 38.2 %."""
    return "–" if _unknown(ratio) else f"{ratio * 100:.1f} %"


def printable(text: str) -> str:
    r"""The text with what a terminal would obey or hide written out: control characters, line ends, changes of direction.

    >>> print(printable("gemm\x1b[31m"))
    gemm\x1b[31m
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""C0 and C1 controls, marks and overrides of direction, line and paragraph separators, half surrogates."""


def _text_in_steps(value: float, steps: tuple[tuple[int, str], ...]) -> str:
    if _unknown(value):
        return "–"
    if value == 0:
        return f"0 {steps[-1][1]}"
    factor, unit = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    scaled = value / factor
    digits = 0 if factor == 1 or abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:,.{digits}f} {unit}"


def _unknown(value: float | None) -> bool:
    return value is None or math.isnan(value)
