"""Rows → a grid of the terminal that fits its width: few columns, numbers flush right with their units, bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from c3prof.renderers.bars import PARTS, accounted, bar, stacked
from c3prof.renderers.cells import LABELS, heading, is_number, text_of
from c3prof.renderers.palette import CLASSES
from c3prof.table import Column, Schema
from c3prof.units import text_of_ratio

_GAP = 2
_STACKED = 30
_BAR = 16
_LONGEST = 44
_LEAST = 16
_LEAST_PROSE = 30
_PROSE = frozenset({"note", "why", "reading", "message"})
_STYLES = {"exposed_ns": CLASSES["exposed"], "hidden_ns": CLASSES["hidden"], "caused_wait_ns": CLASSES["wait"]}

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
    bar: str = "",
    total: float = 0,
    accounting: bool = False,
    width: int = 98,
) -> Made:
    """The rows as a grid of at most `width` characters.

    columns: in order of importance, () for all of the schema; those that hold nothing are left out, then from the end
    those that do not fit. bar: a column that is drawn too, with its share of `total`. accounting: draw the parts of span_ns as one stacked bar.
    """
    names = _told([name for name in (columns or schema.names) if name in schema.names], shown)
    drawn = {name: _column(schema[name], shown) for name in names}
    bars = _bars(shown, bar if bar in names else "", total, accounting=accounting and all(name in schema.names for name in PARTS.values()))
    kept = _fitting(drawn, width - sum(column.width + _GAP for column in bars.values()), bar)
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


def _column(column: Column, shown: Sequence[Row]) -> _Drawn:
    cells = [_text(row[column.name], column) for row in shown]
    prose = column.name in _PROSE
    if not prose:
        cells = [_shortened(cell) for cell in cells]
    head = heading(column)
    width = max(len(head), *map(len, cells))
    right = is_number(column) and column.name not in LABELS
    return _Drawn(head, cells, min(width, _LEAST_PROSE) if prose else width, right, prose, _STYLES.get(column.name, ""))


def _bars(shown: Sequence[Row], name: str, total: float, *, accounting: bool) -> dict[str, _Drawn]:
    made = {}
    if accounting:
        made["accounting"] = _Drawn("", [stacked(accounted(row), _STACKED) for row in shown], _STACKED)
    if name:
        largest = max((row[name] or 0 for row in shown), default=0)
        style = _STYLES.get(name, CLASSES["compute"])
        made["bar"] = _Drawn("", [bar(row[name] or 0, largest, _BAR, style) for row in shown], _BAR)
    if name and total > 0:
        shares = [text_of_ratio((row[name] or 0) / total) for row in shown]
        made["share"] = _Drawn("share", shares, max(map(len, [*shares, "share"])), right=True)
    return made


def _fitting(columns: dict[str, _Drawn], room: int, first: str) -> list[str]:
    """The names of the columns that fit, the column `first` before all others; the last text among them may be cut to fit."""
    kept: set[str] = set()
    for name in sorted(columns, key=lambda name: name != first):  # stable: else in their order
        column, left = columns[name], room - _GAP
        if column.width > left >= _LEAST and not column.right and not column.wraps:
            column = columns[name] = replace(column, cells=[_shortened(str(cell), left) for cell in column.cells], width=left)
        if column.width <= left or not kept:
            kept.add(name)
            room = left - column.width
    return [name for name in columns if name in kept]


def _text(value: Any, column: Column) -> str:
    return "?" if column.name == "rank" and isinstance(value, int) and value < 0 else text_of(value, column)


def _shortened(text: str, most: int = _LONGEST) -> str:
    """A long name with its middle left out: both ends of a kernel's name tell."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"
