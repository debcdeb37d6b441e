"""Schemas → docs/columns.md: every table and column, its dtype, unit and a sentence."""

from collections.abc import Iterable

from c3prof.table import Schema

_HEAD = """# Tables and columns

Generated from the schemas in the code by `c3prof schema --format markdown`; do not edit.

The tables of `c3prof analyze`, as they appear in text, JSON, CSV and `c3prof.analyze(trace)[NAME].frame`. Times are
nanoseconds, ratios 0 to 1, bandwidth decimal GB/s. What cannot be known is null (NaN), with the reason in `note`.
The definitions are in [metrics.md](metrics.md). A dtype `object` is an integer or text that may be unknown.
"""


def columns_page(schemas: Iterable[Schema]) -> str:
    """The page as Markdown, one section a table, in the given order."""
    return "\n".join([_HEAD, *(_section(schema) for schema in schemas)])


def _section(schema: Schema) -> str:
    lines = [f"## {schema.name}", "", f"{schema.title}.", "", "| column | dtype | unit | what |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.dtype} | {c.unit} | {_escaped(c.doc)} |" for c in schema.columns]
    return "\n".join([*lines, ""])


def _escaped(doc: str) -> str:
    return doc.replace("|", "\\|")
