"""One value → the few characters that a person reads, by the unit of its column."""

import math
import re
from collections.abc import Mapping
from typing import Any

from c3prof.table import Column
from c3prof.units import printable, text_of_ratio, text_of_size, text_of_time

UNKNOWN = "–"
_FACTORS = ("slowdown", "ideal_speedup", "real_speedup")
_WRITTEN = {"ns": text_of_time, "B": text_of_size}
LABELS = frozenset(
    {"rank", "device", "step", "stream", "group", "collective", "seq", "region", "first_step", "last_rank", "peer", "source", "table"}
)
"""Columns that say what a row is: their numbers are names and are not counted."""


def text_of(value: Any, column: Column) -> str:
    """The value with its unit: 12.3 ms, 25.6 MB, 38.2 %, 1,024; – when it is not known."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if column.unit in ("", "ratio") and column.name.startswith(_FACTORS):
        return f"{value:.2f}×"
    written = text_of_ratio if is_ratio(column) else _WRITTEN.get(column.unit)
    return written(value) if written else _number(value, column)


def is_ratio(column: Column) -> bool:
    """Whether a column is a share 0 to 1, which people read as percent."""
    return (
        column.dtype.startswith("float")
        and (column.unit == "ratio" or column.name.endswith(("_ratio", "_share")))
        and column.unit in ("", "ratio")
    )


def is_number(column: Column) -> bool:
    """Whether a column is set flush right."""
    return column.dtype.startswith(("int", "float")) or column.unit in ("ns", "B", "GB/s", "%")


def heading(column: Column) -> str:
    """The name of a column without the unit that its cells carry: exposed_ns → exposed, algbw_gb_s → algbw [GB/s]."""
    name = column.name
    for suffix, unit in (("_ns", "ns"), ("_bytes", "B"), ("_gb_s", "GB/s"), ("_ratio", ""), ("_share", "")):
        if name.endswith(suffix) and column.unit in (unit, "ratio"):
            name = name.removesuffix(suffix) + (" share" if suffix == "_share" else "")
            break
    if column.unit in ("", "ns", "B", "ratio"):
        return name.replace("_", " ")
    return f"{name.replace('_', ' ')} [{column.unit}]"


def heading_in_ms(column: Column) -> str:
    """The same where cells carry no unit and times are in ms: exposed_ns → exposed [ms]."""
    unit = {"ns": "ms"}.get(column.unit, column.unit)
    name = re.sub(r"_(ns|gb_s|bytes|ppm)$", "", column.name).replace("_", " ")
    return f"{name} [{unit}]" if unit else name


def counts(coverage: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words and the text of each number of a report's coverage: events 1,234; clock bound 5.27 µs; share 0.93."""
    numbers = {name: value for name, value in coverage.items() if isinstance(value, int | float)}
    return [(name.removesuffix("_ns").replace("_", " "), _count(name, value)) for name, value in numbers.items()]


def _count(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return text_of_time(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _number(value: float, column: Column) -> str:
    if isinstance(value, int):
        return str(value) if column.name in LABELS else f"{value:,}"
    size = abs(value)
    if not size:
        return "0"
    if size < 0.001 or size >= 1e6:
        return f"{value:.2e}"
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3}f}"
