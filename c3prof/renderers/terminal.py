"""Report → a page that a person acts on: the headline, few tables, then coverage and warnings. 100 columns at most.

Which tables the pages show, and what of them, stands in views.py as data; every other table is shown by its schema alone.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from c3prof.analysis.headline import Headline, headline
from c3prof.analysis.rank_headline import rank_headline
from c3prof.errors import DataWarning
from c3prof.renderers.bars import ASCII, legend
from c3prof.renderers.cells import counts
from c3prof.renderers.grid import grid
from c3prof.renderers.palette import CLASSES
from c3prof.renderers.values import rows
from c3prof.renderers.views import BY, PAGES, VIEWS, View
from c3prof.table import Report, Schema, Table
from c3prof.units import printable

WIDTH = 100
_WARNINGS = 8


def write(
    report: Report,
    file: IO[str],
    *,
    by: str = "",
    top: int = 20,
    views: Sequence[View] = (),
    colour: bool | None = None,
    width: int | None = None,
) -> None:
    """Write the page. Colour only on a terminal without NO_COLOR, unless `colour` says; a pipe gets WIDTH columns.

    views: the sections of another page than the usual one, whose headline is about ranks.
    """
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
    for part in page(report, by=by, top=top, views=views, width=console.width):
        console.print(part)
    lines = "\n".join(line.rstrip(" ") for line in text.getvalue().splitlines()) + "\n"
    file.write(lines if _shows(file) else lines.translate(ASCII).encode("ascii", "replace").decode())


def page(report: Report, *, by: str = "", top: int = 20, views: Sequence[View] = (), width: int = WIDTH) -> list[RenderableType]:
    """The parts of the page in order, for a terminal of `width` columns."""
    parts: list[RenderableType] = _headline(rank_headline(report) if views else headline(report))
    for view in [v for v in views if len(report[v.table])] or _views(report, by, top):
        parts += [*_section(report[view.table], view, width), Text()]
    parts += [*_coverage(report.coverage), *_warnings(report.warnings)]
    return parts


def _shows(file: IO[str]) -> bool:
    """Whether the file's encoding can show the glyphs."""
    try:
        "█▓▚▪·–…µ▏".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns(file: IO[str]) -> int:
    try:
        return max(40, os.get_terminal_size(file.fileno()).columns)
    except (OSError, ValueError):
        return WIDTH


def _views(report: Report, by: str, top: int) -> list[View]:
    """The sections of this page: VIEWS and what --by adds; all in full with --only, or when the page knows none of the tables."""
    if sections := PAGES.get(report.settings.get("page", "")):
        return [view for view in (replace(sections[0], limit=top), *sections[1:]) if view.table in report]
    known = {view.table: view for view in (*VIEWS, *BY.values())}
    if report.settings.get("only") or not known.keys() & set(report):
        return [_whole(report[name].schema, known.get(name), top) for name in report]
    added = [replace(BY[by], limit=top)] if by in BY else []
    views = [VIEWS[0], *added, *VIEWS[1:]]
    return [view for view in views if view.table in report and len(report[view.table])]


def _whole(schema: Schema, view: View | None, top: int) -> View:
    """A table with all its rows and columns; those that its view shows come first."""
    view = view or View(schema.name, schema.title)
    part = (view.where[0],) if view.where else ()
    columns = tuple(dict.fromkeys(name for name in ("rank", "device", *part, *view.columns, *schema.names) if name in schema.names))
    bar = "" if part else view.bar  # rows that add up the same time in several ways have no shares
    return replace(view, title=schema.title, columns=columns, where=None, known="", fold=(), bar=bar, intervals=True, limit=top)


def _headline(head: Headline) -> list[RenderableType]:
    if not head.sentence:
        return []
    details = [Padding(Text(printable(detail)), (0, 0, 0, 2)) for detail in head.details]
    return [Text(printable(head.sentence), style="bold"), *details, Text()]


def _section(table: Table, view: View, width: int) -> list[RenderableType]:
    cells = _chosen(rows(table), view)
    shown = cells[: view.limit or len(cells)]
    if not shown and view.known and len(table):
        return [Text(f"{view.title}: none here; why: --only {view.table}", style="dim")]
    title = Text(view.title, style="bold")
    if table.source != "c3prof":
        title.append(f"  (by {table.source})", style="dim")
    if not shown:
        return [title, Text("  no rows", style="dim")]
    total = sum(row[view.bar] or 0 for row in cells) if view.bar in table.schema.names else 0
    options: dict[str, Any] = {
        "columns": view.columns,
        "first": view.sort,
        "bar": view.bar,
        "accounting": view.accounting,
        "intervals": view.intervals,
    }
    made = grid(table.schema, shown, total=total, width=width - 2, **options)
    key = [Padding(legend(), (0, 0, 0, 2), expand=False)] if view.accounting else []
    return [
        title,
        *key,
        *_reading(shown),
        Padding(made.grid, (0, 0, 0, 2), expand=False),
        *_rest(table, len(cells), len(shown), made.left_out),
    ]


def _reading(shown: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """What the first row says in a sentence; the others are much like it."""
    row = next((row for row in shown if row.get("reading")), None)
    whose = f"Rank {row['rank']}: " if row and len(shown) > 1 else ""
    return [Padding(Text(printable(f"{whose}{row['reading']}")), (0, 0, 0, 2))] if row else []


def _chosen(cells: list[dict[str, Any]], view: View) -> list[dict[str, Any]]:
    """The rows of the view, folded and sorted."""
    if view.where:
        column, value = view.where
        cells = [row for row in cells if row[column] == value]
    if view.known:
        cells = [row for row in cells if row[view.known] is not None]
    if view.fold:
        folded: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in cells:
            into = folded.setdefault(
                tuple(row[name] for name in view.fold), dict.fromkeys(row, 0) | {name: row[name] for name in view.fold}
            )
            for name in set(view.columns) - set(view.fold):
                into[name] += row[name] or 0
        cells = list(folded.values())
    if view.sort and cells and view.sort in cells[0]:
        cells.sort(key=lambda row: -(row[view.sort] or 0))
    return cells


def _rest(table: Table, rows_there: int, rows_shown: int, left_out: Sequence[str]) -> list[RenderableType]:
    """What the section did not show, and how to see it."""
    said = []
    if (more := rows_there - rows_shown) > 0:
        said.append(f"{more:,} more {'row' if more == 1 else 'rows'}: --only {table.schema.name} --top {len(table)}")
    if left_out:
        said.append(f"more columns: {', '.join(left_out)} (--format csv)")
    return [Padding(Text(line, style="dim"), (0, 0, 0, 2)) for line in said]


def _coverage(coverage: Mapping[str, Any]) -> list[RenderableType]:
    """What the numbers rest on; counts of zero are left out."""
    told = [f"{words} {text}" for words, text in counts({name: value for name, value in coverage.items() if value})]
    if not told:
        return []
    return [Text("Coverage", style="bold"), Padding(Text(" · ".join(told), style="dim"), (0, 0, 0, 2)), Text()]


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
    line.append(printable(f"{where}{warning.message}"), style="not bold")
    return line.append(f" [{warning.code}]", style="dim not bold")
