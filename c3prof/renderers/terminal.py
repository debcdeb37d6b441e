"""Report → a page that a person acts on: the headline, few tables, then coverage and warnings. 100 columns at most.

Which tables the page shows, and what of them, stands in VIEWS as data; every other table is shown by its schema alone.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from c3prof.analysis.headline import headline
from c3prof.errors import DataWarning
from c3prof.renderers.bars import ASCII, bar, legend, stacked
from c3prof.renderers.cells import UNKNOWN, heading, is_number, text_of
from c3prof.renderers.palette import CLASSES
from c3prof.renderers.values import rows
from c3prof.table import Report, Schema, Table

WIDTH = 100
_BAR = 30
_NAME = 44
_WARNINGS = 8


@dataclass(frozen=True)
class View:
    """How the page shows a table.

    columns: in order, () for all of the schema; those that hold nothing are left out. sort: column, largest first.
    bar: column drawn as bars. accounting: draw the parts of span_ns as one stacked bar.
    """

    table: str
    title: str
    columns: tuple[str, ...] = ()
    sort: str = ""
    bar: str = ""
    accounting: bool = False
    limit: int = 0


_OVERLAP = ("span_ns", "compute_ns", "exposed_ns", "idle_ns", "hidden_ratio")
_SUBSET = ("comm_ns", "exposed_ns", "hidden_ratio")
VIEWS: tuple[View, ...] = (
    View("overlap", "Where the time goes", ("rank", "device", *_OVERLAP), accounting=True, limit=16),
    View("c3", "What overlap delivers of the ideal speed-up"),
    View("exposed", "Exposed communication: what the step pays for", ("collective", "group", "cause", "op", "exposed_ns"), "exposed_ns", "exposed_ns", limit=8),
    View("slowdown", "Kernels that a co-runner slows", ("kernel", "co_runner", "n_clean", "n_overlapped", "slowdown", "slowdown_low", "slowdown_high", "lost_ns"), "lost_ns", limit=8),
    View("stragglers", "Ranks that others wait for", sort="caused_wait_ns", bar="caused_wait_ns", limit=8),
    View("kernels", "Kernels", sort="total_ns", bar="total_ns", limit=8),
    View("idle", "Idle time of the device", sort="idle_ns", bar="idle_ns", limit=6),
)
BY: dict[str, View] = {
    "step": View("overlap_by_step", "By step", ("rank", "device", "step", *_OVERLAP), accounting=True),
    "stream": View("overlap_by_stream", "By stream", ("rank", "device", "stream", *_SUBSET)),
    "group": View("overlap_by_group", "By process group", ("rank", "device", "group", *_SUBSET), "exposed_ns", "exposed_ns"),
    "collective": View("overlap_by_collective", "By kind of collective", ("rank", "device", "collective", *_SUBSET), "exposed_ns", "exposed_ns"),
}
"""What `--by` adds to the page."""


def write(report: Report, file: IO[str], *, by: str = "", top: int = 20, colour: bool | None = None, width: int | None = None) -> None:
    """Write the page. Colour only on a terminal without NO_COLOR, unless `colour` says; a pipe gets WIDTH columns."""
    text = StringIO()
    coloured = (file.isatty() and not os.environ.get("NO_COLOR")) if colour is None else colour
    console = Console(
        file=text,
        width=width or (min(WIDTH, _columns(file)) if file.isatty() else WIDTH),
        force_terminal=coloured,
        color_system="auto" if coloured else None,
        highlight=False,
        legacy_windows=False,
    )
    for part in page(report, by=by, top=top):
        console.print(part)
    lines = "\n".join(line.rstrip(" ") for line in text.getvalue().splitlines()) + "\n"
    file.write(lines if _shows(file) else lines.translate(ASCII).encode("ascii", "replace").decode())


def page(report: Report, *, by: str = "", top: int = 20) -> list[RenderableType]:
    """The parts of the page in order."""
    parts: list[RenderableType] = [*_headline(report)]
    for view in _views(report, by, top):
        parts += [*_section(report[view.table], view), Text()]
    parts += [*_coverage(report.coverage), *_warnings(report.warnings)]
    return parts


def _shows(file: IO[str]) -> bool:
    """Whether the file's encoding can show the glyphs."""
    try:
        "█▓╳▪·–…µ▏".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns(file: IO[str]) -> int:
    try:
        return max(40, os.get_terminal_size(file.fileno()).columns)
    except (OSError, ValueError):
        return WIDTH


def _views(report: Report, by: str, top: int) -> list[View]:
    """The sections of this page: with --only the tables asked for, in full; else VIEWS and what --by adds."""
    only = report.settings.get("only") or ()
    if only:
        known = {view.table: view for view in (*VIEWS, *BY.values())}
        wanted = [replace(known.get(name, View(name, "")), columns=(), limit=top) for name in report]
        return [replace(view, title=view.title or report[view.table].schema.title) for view in wanted]
    added = [replace(BY[by], limit=top)] if by in BY else []
    views = [VIEWS[0], *added, *VIEWS[1:]]
    return [view for view in views if view.table in report and len(report[view.table])]


def _headline(report: Report) -> list[RenderableType]:
    head = headline(report)
    if not head.sentence:
        return []
    details = [Padding(Text(detail), (0, 0, 0, 2)) for detail in head.details]
    return [Text(head.sentence, style="bold"), *details, Text()]


def _section(table: Table, view: View) -> list[RenderableType]:
    cells = rows(table)
    if view.sort and cells and view.sort in cells[0]:
        cells.sort(key=lambda row: -(row[view.sort] or 0))
    shown = cells[: view.limit or len(cells)]
    title = Text(view.title, style="bold")
    if table.source != "c3prof":
        title.append(f"  (by {table.source})", style="dim")
    if not shown:
        return [title, Text("  no rows", style="dim")]
    names = _columns_shown(table.schema, view, shown)
    accounting = view.accounting and all(name in shown[0] for name in _PARTS.values())
    key = [Padding(legend(list(_PARTS)), (0, 0, 0, 2))] if accounting else []
    grid, left_out = _grid(table.schema, names, shown, view, accounting)
    return [title, *key, Padding(grid, (0, 0, 0, 2)), *_rest(table, len(cells) - len(shown), left_out)]


def _rest(table: Table, more: int, left_out: Sequence[str]) -> list[RenderableType]:
    """What the section did not show, and how to see it."""
    said = []
    if more > 0:
        said.append(f"{more:,} more rows: --only {table.schema.name} --top N")
    if left_out:
        said.append(f"more columns: {', '.join(left_out)} (--format csv)")
    return [Padding(Text(line, style="dim"), (0, 0, 0, 2)) for line in said]


_PARTS = {"compute": "compute_ns", "hidden": "hidden_ns", "exposed": "exposed_ns", "exposed_copy": "exposed_copy_ns", "idle": "idle_ns"}


def _accounting(row: Mapping[str, Any]) -> dict[str, float]:
    """The parts of a row's span, each instant once: compute alone, both, exposed, copies alone, nothing."""
    parts = {name: float(row[column] or 0) for name, column in _PARTS.items()}
    parts["compute"] -= parts["hidden"]
    return parts


def _columns_shown(schema: Schema, view: View, shown: Sequence[Mapping[str, Any]]) -> list[str]:
    """The view's columns that hold something, and are not the same unnamed rank or device on every row."""
    names = [name for name in (view.columns or schema.names) if name in schema.names]
    told = [name for name in names if any(row[name] not in (None, "") for row in shown)]
    if len(told) > 1 and "rank" in told and {row["rank"] for row in shown} <= {-1}:
        told.remove("rank")
    return told or names[:1]


def _grid(schema: Schema, names: Sequence[str], shown: Sequence[Mapping[str, Any]], view: View, accounting: bool) -> tuple[Grid, list[str]]:
    """The rows as a grid that fits, and the columns that did not."""
    drawn = view.bar if view.bar in names else ""
    texts = {name: [_shortened(_cell(row, name, schema)) for row in shown] for name in names}
    heads = {name: heading(schema[name]) for name in names}
    room = WIDTH - 4 - (_BAR + 2 if accounting else 0) - (18 if drawn else 0)
    kept: list[str] = []
    for name in names:
        need = max(len(heads[name]), *map(len, texts[name])) + 2
        if need <= room or not kept:
            kept.append(name)
            room -= need
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in kept:
        grid.add_column(heads[name], justify="right" if is_number(schema[name]) and name not in _LABELS else "left", no_wrap=True, style=_STYLES.get(name, ""))
        if accounting and name == kept[_labels(kept) - 1]:
            grid.add_column("", no_wrap=True, width=_BAR)
    if drawn:
        grid.add_column("", no_wrap=True, width=16)
    largest = max((row[drawn] or 0 for row in shown), default=0) if drawn else 0
    for i, row in enumerate(shown):
        cells: list[RenderableType] = []
        for name in kept:
            cells.append(texts[name][i])
            if accounting and name == kept[_labels(kept) - 1]:
                cells.append(stacked(_accounting(row), _BAR))
        if drawn:
            cells.append(bar(row[drawn] or 0, largest, 16, _STYLES.get(drawn, "") or CLASSES["compute"]))
        grid.add_row(*cells)
    return grid, [name for name in names if name not in kept]


_LABELS = frozenset({"rank", "device", "step", "stream", "group", "collective", "seq", "region"})
_STYLES = {"exposed_ns": CLASSES["exposed"], "hidden_ns": CLASSES["hidden"], "caused_wait_ns": CLASSES["wait"], "idle_ns": CLASSES["idle"]}


def _labels(names: Sequence[str]) -> int:
    """How many of the first columns say what a row is; the bar stands behind them."""
    return max(1, next((i for i, name in enumerate(names) if name not in _LABELS), len(names)))


def _cell(row: Mapping[str, Any], name: str, schema: Schema) -> str:
    value = row[name]
    if name == "rank" and isinstance(value, int) and value < 0:
        return "?"
    return text_of(value, schema[name])


def _shortened(text: str) -> str:
    """A long name with its middle left out: both ends of a kernel's name tell."""
    text = " ".join(text.split())
    return text if len(text) <= _NAME else f"{text[: _NAME - 16]}…{text[-15:]}"


def _coverage(coverage: Mapping[str, Any]) -> list[RenderableType]:
    """What the numbers rest on; counts of zero are left out."""
    told = [f"{name.replace('_', ' ')} {_count(value)}" for name, value in coverage.items() if isinstance(value, int | float) and value]
    if not told:
        return []
    return [Text("Coverage", style="bold"), Padding(Text(" · ".join(told), style="dim"), (0, 0, 0, 2)), Text()]


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _warnings(warnings: Sequence[DataWarning]) -> list[RenderableType]:
    if not warnings:
        return []
    ordered = sorted(warnings, key=lambda w: not w.bears_on_numbers)
    lines = [_warning(w) for w in ordered[:_WARNINGS]]
    if len(ordered) > _WARNINGS:
        lines.append(Text(f"{len(ordered) - _WARNINGS} more: --format json", style="dim"))
    return [Text(f"Warnings ({len(ordered)})", style="bold"), Padding(Group(*lines), (0, 0, 0, 2))]


def _warning(warning: DataWarning) -> Text:
    line = Text("! " if warning.bears_on_numbers else "· ", style=f"bold {CLASSES['exposed']}" if warning.bears_on_numbers else "dim")
    where = f"{warning.path}: " if warning.path and not warning.message.startswith(warning.path) else ""
    line.append(f"{where}{warning.message}", style="not bold")
    return line.append(f" [{warning.code}]", style="dim not bold")


__all__ = ["BY", "UNKNOWN", "VIEWS", "WIDTH", "page", "write"]
