"""Column, Schema, Table and Report: rows that carry their meaning.

Everything that analysis gives is a Table; every renderer, the generated docs and the app read its schema.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from c3prof.errors import DataWarning

_PANDAS_DTYPES = {"int64": "int64", "int32": "int32", "float64": "float64", "float32": "float32", "bool": "bool"}


@dataclass(frozen=True)
class Column:
    """One column: its dtype (int64, int32, float64, float32, bool, category or object), unit and a sentence.

    An unknown value is NaN (float64), <NA>/None (object) or a missing category; the row's `note` says why.
    A column of integers that may be unknown is declared object and holds int or None.
    default: what every row gets where the data does not name the column; ... means that it must.
    """

    name: str
    dtype: str
    unit: str
    doc: str
    default: Any = ...


@dataclass(frozen=True)
class Schema:
    """The columns that a frame has, in order, and what a row is."""

    name: str
    title: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def frame(self, data: Mapping[str, Any] | pd.DataFrame | None = None) -> pd.DataFrame:
        """A frame with exactly these columns, in this order, in the declared dtypes; empty without data.

        KeyError names a column that is missing or not declared.
        """
        if data is None or not len(data):
            return self._empty.copy()
        missing = {column.name for column in self.columns if column.name not in data and column.default is ...}
        extra = set(data) - set(self.names)
        if missing or extra:
            raise KeyError(f"table {self.name}: missing {sorted(missing)}, not declared {sorted(map(str, extra))}")
        rows = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)
        values = (data[column.name] if column.name in data else [column.default] * rows for column in self.columns)
        return self._framed([_as_dtype(value, column.dtype) for value, column in zip(values, self.columns, strict=True)])

    def _framed(self, arrays: Sequence[Any]) -> pd.DataFrame:
        """The frame of one array a column. The arrays are not copied; all frames of a schema share one index of names."""
        frame = pd.DataFrame(dict(enumerate(arrays)), copy=False)
        frame.columns = self._index
        return frame

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.names, dtype=object)  # pandas' str would be looked up through Arrow, far slower

    @cached_property
    def _empty(self) -> pd.DataFrame:
        return self._framed([_no_values(column.dtype) for column in self.columns])


@cache
def _no_values(dtype: str) -> Any:
    """A column without rows, for all frames; whoever asks for a frame gets a copy."""
    return _as_dtype((), dtype)


def _as_dtype(values: Any, dtype: str) -> Any:
    if isinstance(values, pd.Series):
        values = values.array
    if dtype == "category":
        values = values if isinstance(values, pd.Categorical) else pd.Categorical(values)
        # One dtype of categories whatever the pandas version, so that categoricals of many ranks can be joined.
        return values if values.categories.dtype == object else values.rename_categories(values.categories.astype(object))
    if dtype == "object":
        objects = _objects(values)
        objects[pd.isna(objects)] = None
        return pd.Series(objects, dtype=object)  # a bare array of texts would become pandas' str, with NaN for None
    return np.asarray(values, dtype=_PANDAS_DTYPES[dtype])


def _objects(values: Any) -> Any:
    if isinstance(values, pd.api.extensions.ExtensionArray):
        values = values.to_numpy(dtype=object)
    out = np.empty(len(values), dtype=object)
    if isinstance(values, np.ndarray):
        out[:] = values if values.dtype == object and values.ndim == 1 else values.tolist()
    else:
        out[:] = list(values)
    return out


@dataclass(frozen=True)
class Table:
    """Rows with meaning: a schema and a frame that obeys it.

    source: "c3prof", or the tool that computed the rows (`hta`).
    """

    schema: Schema
    frame: pd.DataFrame
    source: str = "c3prof"

    @classmethod
    def of(cls, schema: Schema, data: Mapping[str, Any] | pd.DataFrame | None = None, source: str = "c3prof") -> "Table":
        """The table of data in the schema's dtypes."""
        return cls(schema, schema.frame(data), source)

    def __len__(self) -> int:
        return len(self.frame)

    def _repr_html_(self) -> str:
        units = {c.name: f"{c.name} [{c.unit}]" if c.unit else c.name for c in self.schema.columns}
        body = self.frame.head(50).rename(columns=units).to_html(index=False, na_rep="–", escape=True)
        more = f"<p>{len(self.frame) - 50:,} more rows</p>" if len(self.frame) > 50 else ""
        return f"<h4>{html.escape(self.schema.title)}</h4>{body}{more}"


@dataclass(frozen=True)
class Report(Mapping[str, Table]):
    """Tables by name, with what the reader of the numbers must know.

    inputs: the files as the user named them; coverage: what the numbers rest on (see docs/metrics.md, Coverage);
    settings: what was asked for, so that the same report can be made again.
    """

    tables: Mapping[str, Table]
    warnings: Sequence[DataWarning] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)
