"""Rows → a grid of the terminal that fits its width: few columns, numbers flush right with their units, bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from c3prof.renderers.bars import PARTS, accounted, bar, stacked
from c3prof.renderers.cells import LABELS, UNKNOWN, heading, is_number, text_of
from c3prof.renderers.palette import CLASSES
from c3prof.table import Column, Schema
from c3prof.units import text_of_ratio

_GAP = 2
_STACKED = 30
_BAR = 16
_LONGEST = 44
_LEAST = 24
_LEAST_PROSE = 30
_PROSE = frozenset({"note", "why", "reading", "message", "advice"})
_INSTANTS = ("start_ns", "arrival_ns", "end_ns")
_STYLES = {"exposed_ns": CLASSES["exposed"], "hidden_ns": CLASSES["hidden"], "caused_wait_ns": CLASSES["wait"]}
_BAR_STYLES = {**_STYLES, "idle_ns": CLASSES["idle"]}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """A grid, and the columns that it had no room for."""

    grid: Grid
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Drawn:
    """One column of the grid: its cells, and the width it needs."""

    head: str
    cells: Sequence[str | Text]
    width: int
    right: bool = False
    wraps: bool = False
    style: str = ""


def grid(
    schema: Schema,
    shown: Sequence[Row],
    *,
    columns: Sequence[str] = (),
    first: str = "",
    bar: str = "",
    total: float = 0,
    accounting: bool = False,
    intervals: bool = True,
    width: int = 98,
) -> Made:
    """The rows as a grid of at most `width` characters.

    columns: in order of importance, () for all of the schema; those that hold nothing are left out, then from the end
    those that do not fit, `first` last of all. bar: a column that is drawn too, with its share of `total`. accounting: draw
    the parts of span_ns as one stacked bar. intervals: write X_low and X_high behind X.
    """
    names = _told([name for name in (columns or schema.names) if name in schema.names], shown)
    names = [name for name in names if _interval_of(name, schema) is None]
    drawn = {name: _column(schema[name], shown, schema if intervals else None) for name in names}
    bars = _bars(shown, bar if bar in names else "", total, accounting=accounting and all(name in schema.names for name in PARTS.values()))
    kept = _fitting(drawn, width - sum(column.width + _GAP for column in bars.values()), first)
    ordered = [drawn[name] for name in kept]
    if "accounting" in bars:  # behind the columns that say what the row is
        ordered.insert(next((i for i, name in enumerate(kept) if name not in LABELS), len(kept)), bars["accounting"])
    ordered += [bars[name] for name in ("bar", "share") if name in bars]
    return Made(_assembled(ordered), tuple(name for name in names if name not in kept))


def _assembled(columns: Sequence[_Drawn]) -> Grid:
    made = Grid(box=None, padding=(0, _GAP, 0, 0), header_style="dim", pad_edge=False)
    for column in columns:
        made.add_column(Text(column.head), justify="right" if column.right else "left", no_wrap=not column.wraps, style=column.style)
    for cells in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))  # Text: brackets in a name are no markup
    return made


def _told(names: Sequence[str], shown: Sequence[Row]) -> list[str]:
    """The columns that hold something; a rank that no file names is nothing."""
    told = [name for name in names if any(row[name] not in (None, "") for row in shown)]
    if len(told) > 1 and "rank" in told and all(row["rank"] == -1 for row in shown):
        told.remove("rank")
    return told or list(names[:1])


def _interval_of(name: str, schema: Schema) -> str | None:
    """The column whose interval ends in this one (slowdown of slowdown_low), None for any other column."""
    if not name.endswith(("_low", "_high")):
        return None
    stem = name.rsplit("_", 1)[0]
    return next((column for column in schema.names if column in (stem, f"{stem}_ns", f"{stem}_gb_s")), None)


def _column(column: Column, shown: Sequence[Row], schema: Schema | None) -> _Drawn:
    shown = _since_first(column.name, shown)
    ends = [schema[name] for name in sorted(schema.names, reverse=True) if _interval_of(name, schema) == column.name] if schema else []
    cells = [_with_interval(_text(row[column.name], column), [text_of(row[end.name], end) for end in ends]) for row in shown]
    prose = column.name in _PROSE
    if not prose:
        cells = [_shortened(readable(cell) if "kernel" in column.name else cell) for cell in cells]
    head = heading(column)
    width = max(len(head), *map(len, cells))
    right = is_number(column) and column.name not in LABELS
    return _Drawn(head, cells, min(width, _LEAST_PROSE) if prose else width, right, prose, _STYLES.get(column.name, ""))


def _since_first(name: str, shown: Sequence[Row]) -> Sequence[Row]:
    """The rows with an instant counted from the earliest one shown: nobody reads nanoseconds since 1970."""
    if name not in _INSTANTS:
        return shown
    first = min((row[other] for row in shown for other in _INSTANTS if row.get(other) is not None), default=0)
    return [row if row[name] is None else {**row, name: row[name] - first} for row in shown]


def _with_interval(text: str, ends: Sequence[str]) -> str:
    """1.58× (1.46× – 1.72×); the value alone where there is no interval."""
    return text if len(ends) != 2 or UNKNOWN in ends else f"{text} ({ends[0]} – {ends[1]})"


def readable(kernel: str) -> str:
    """A kernel's name without what every name has: return type, parameters, the library's namespaces."""
    name = kernel.removeprefix("void ").replace("(anonymous namespace)::", "").replace("at::native::", "")
    head, bracket, _ = name.rpartition(">(")
    return f"{head}>" if bracket else name


def _bars(shown: Sequence[Row], name: str, total: float, *, accounting: bool) -> dict[str, _Drawn]:
    made = {}
    if accounting:
        made["accounting"] = _Drawn("", [stacked(accounted(row), _STACKED) for row in shown], _STACKED)
    if name:
        largest = max((row[name] or 0 for row in shown), default=0)
        made["bar"] = _Drawn("", [bar(row[name] or 0, largest, _BAR, _bar_style(name, row)) for row in shown], _BAR)
    if name and total > 0:
        shares = [text_of_ratio((row[name] or 0) / total) for row in shown]
        made["share"] = _Drawn("share", shares, max(map(len, [*shares, "share"])), right=True)
    return made


def _bar_style(name: str, row: Row) -> str:
    """A bar has the colour of what it measures, else of the row's class."""
    return _BAR_STYLES.get(name) or CLASSES.get(str(row.get("class")), CLASSES["compute"])


def _fitting(columns: dict[str, _Drawn], room: int, first: str) -> list[str]:
    """The names of the columns that fit, `first` before all others, after the widest text was cut as far as it helps."""
    over = sum(column.width + _GAP for column in columns.values()) - room
    texts = [name for name, column in columns.items() if not column.right and not column.wraps]
    if over > 0 and texts:
        widest = max(texts, key=lambda name: columns[name].width)
        width = max(columns[widest].width - over, min(columns[widest].width, _LEAST))
        columns[widest] = replace(columns[widest], cells=[_shortened(str(cell), width) for cell in columns[widest].cells], width=width)
    kept: set[str] = set()
    for name in sorted(columns, key=lambda name: name != first):  # stable: else in their order
        if columns[name].width + _GAP <= room or not kept:
            kept.add(name)
            room -= columns[name].width + _GAP
    return [name for name in columns if name in kept]


def _text(value: Any, column: Column) -> str:
    return "?" if column.name == "rank" and isinstance(value, int) and value < 0 else text_of(value, column)


def _shortened(text: str, most: int = _LONGEST) -> str:
    """A long name with its middle left out: both ends of a kernel's name tell."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"
