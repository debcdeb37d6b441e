"""Cells of a Table as plain Python values: what is unknown is None, whatever the column's dtype."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from c3prof.table import Table


def columns(table: Table) -> dict[str, list[Any]]:
    """The cells of each column as int, float, bool, str or None. NaN, infinity, <NA> and missing categories are None."""
    return {column.name: _plain(table.frame[column.name], column.dtype) for column in table.schema.columns}


def pieces(table: Table, size: int = 20_000) -> Iterator[Table]:
    """The table in pieces of at most `size` rows, at least one: a long table is never in memory as Python objects at once."""
    for start in range(0, max(len(table), 1), size):
        yield replace(table, frame=table.frame.iloc[start : start + size])


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows as dicts in the order of the schema's columns."""
    cells = columns(table)
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def _plain(series: Any, dtype: str) -> list[Any]:
    if dtype.startswith("float"):
        values = series.to_numpy(dtype=np.float64)
        return [value if known else None for value, known in zip(values.tolist(), np.isfinite(values).tolist(), strict=True)]
    if dtype in ("category", "object"):
        return [_scalar(value) for value in series.astype(object).tolist()]
    values = series.to_numpy()
    return list(values.tolist())


def _scalar(value: Any) -> Any:
    """One cell of an object column: numpy scalars become Python's, the several ways of saying missing become None."""
    if isinstance(value, np.generic):  # before all else: numpy's str is a str, and no encoder knows it
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return str(value)
