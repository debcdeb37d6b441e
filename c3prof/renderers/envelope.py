"""Report → the object that programs read (c3prof.report/1), and the JSON Schema that promises its shape.

Within /1 tables and columns may be added; none is renamed, removed or given another unit. tests/golden holds the promise.
Nothing in it depends on when, where or by whom it was made: no times, no hosts, no absolute paths.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from c3prof import __version__
from c3prof.table import Column, Report, Schema, Table

SCHEMA = "c3prof.report/1"
DEFINITIONS = 1
"""Version of docs/metrics.md that the numbers follow."""

_JSON_TYPES = {"int64": "integer", "int32": "integer", "float64": "number", "float32": "number", "bool": "boolean", "category": "string"}


def envelope(report: Report) -> dict[str, Any]:
    """The report as one object of plain values, its tables without their rows."""
    return {
        "schema": SCHEMA,
        "producer": {"c3prof": __version__, "definitions": DEFINITIONS},
        "inputs": [relative(path) for path in report.inputs],
        "settings": {name: _plain(value) for name, value in sorted(report.settings.items())},
        "tables": {name: _table(table) for name, table in report.items()},
        "warnings": [{"code": w.code, "message": w.message, "count": w.count, "path": relative(w.path)} for w in report.warnings],
        "coverage": _plain(report.coverage),
    }


def relative(path: str) -> str:
    """A path without what only says where somebody keeps things: the name alone when it is absolute."""
    path = path.encode("utf-8", "backslashreplace").decode()
    if "://" in path:
        return path
    return PurePath(path).name if PurePath(path).is_absolute() else path


def json_schema(schemas: Iterable[Schema]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the envelope with these tables. Tables and columns that it does not name are allowed."""
    text, count = {"type": "string"}, {"type": "integer"}
    warning = {"code": text, "message": text, "count": count, "path": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "What c3prof analyze --format json prints",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "producer": _object({"c3prof": text, "definitions": count}),
                "inputs": {"type": "array", "items": text},
                "settings": {"type": "object"},
                "tables": {"type": "object", "properties": {schema.name: _table_schema(schema) for schema in schemas}},
                "warnings": {"type": "array", "items": _object(warning)},
                "coverage": {"type": "object"},
            }
        ),
    }


def _table(table: Table) -> dict[str, Any]:
    declared = [{"name": c.name, "dtype": c.dtype, "unit": c.unit, "doc": c.doc} for c in table.schema.columns]
    return {"title": table.schema.title, "source": table.source, "columns": declared}


def _table_schema(schema: Schema) -> dict[str, Any]:
    text = {"type": "string"}
    column = _object({"name": text, "dtype": text, "unit": text, "doc": text})
    row = _object({c.name: _cell(c) for c in schema.columns})
    shape = _object({"title": text, "source": text, "columns": {"type": "array", "items": column}, "rows": {"type": "array", "items": row}})
    return {"description": schema.title, **shape}


def _cell(column: Column) -> dict[str, Any]:
    known = _JSON_TYPES.get(column.dtype)
    kind: dict[str, Any] = {} if known is None else {"type": [known, "null"] if known in ("number", "string") else known}
    return {"description": column.doc, **kind, "unit": column.unit, "dtype": column.dtype}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": dict(properties)}


def _plain(value: Any) -> Any:
    """Mappings with text keys, tuples as lists: what JSON can say."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return relative(value) if isinstance(value, str) else value
