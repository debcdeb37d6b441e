"""Report → a folder of CSV files, one a table."""

import csv
import io
from pathlib import Path
from typing import IO

from c3prof.renderers.values import columns, pieces
from c3prof.table import Report, Table


def text(table: Table) -> str:
    """The table as CSV: a header of column names, then the rows; unknown values are empty, booleans true or false.

    A text that begins like a formula (=, +, -, @, a tab) has an apostrophe before it, so that no spreadsheet runs it.
    """
    buffer = io.StringIO()
    _write(table, buffer)
    return buffer.getvalue()


def write(report: Report, folder: Path) -> list[Path]:
    """The files written: NAME.csv for every table of the report, in `folder`, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in report.items():
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            _write(table, file)
        written.append(path)
    return written


def _write(table: Table, file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.schema.names)
    for piece in pieces(table):
        writer.writerows([_cell(value) for value in row] for row in zip(*columns(piece).values(), strict=True))


def _cell(value: object) -> object:
    """A value as it is written. A name that a spreadsheet would run as a formula is told apart as text by an apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return str(value).lower() if isinstance(value, bool) else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
