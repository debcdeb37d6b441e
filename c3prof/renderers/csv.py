"""Report → a folder of CSV files, one a table."""

import csv
import io
from pathlib import Path

from c3prof.renderers.values import columns
from c3prof.table import Report, Table


def text(table: Table) -> str:
    """The table as CSV: a header of column names, then the rows; unknown values are empty, booleans true or false."""
    cells = columns(table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(cells)
    writer.writerows([_cell(value) for value in row] for row in zip(*cells.values(), strict=True))
    return buffer.getvalue()


def write(report: Report, folder: Path) -> list[Path]:
    """The files written: NAME.csv for every table of the report, in `folder`, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in report.items():
        path = folder / f"{name}.csv"
        path.write_text(text(table), encoding="utf-8", newline="")
        written.append(path)
    return written


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return value
