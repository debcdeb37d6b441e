"""Reports in a few lines: the columns that renderers and the headline read, as analysis declares them."""

from collections.abc import Mapping, Sequence
from typing import Any

from c3prof.errors import DataWarning
from c3prof.table import Column, Report, Schema, Table

_WHERE = (Column("rank", "int32", "", "rank"), Column("device", "object", "", "device"))
_TIMES = tuple(Column(f"{name}_ns", "object" if name in ("comm", "hidden") else "int64", "ns", name) for name in
               ("span", "compute", "comm", "copy", "hidden", "exposed", "exposed_copy", "idle", "fused"))  # fmt: skip
_RATIO = Column("hidden_ratio", "float64", "ratio", "hidden_ns / comm_ns")
_NOTE = Column("note", "object", "", "why a value is unknown")

OVERLAP = Schema("overlap", "Overlap", (*_WHERE, *_TIMES, _RATIO, _NOTE))
BY_STEP = Schema("overlap_by_step", "Overlap by step", (*_WHERE, Column("step", "object", "", "step"), *_TIMES, _RATIO, _NOTE))
EXPOSED = Schema(
    "exposed",
    "Exposed communication",
    (
        *_WHERE,
        *(Column(name, "object", "", name) for name in ("by", "collective", "group", "step", "op", "cause")),
        Column("exposed_ns", "int64", "ns", "exposed"),
    ),
)


def run_row(rank: int = 0, *, compute: int, comm: int | None, hidden: int | None, exposed: int, idle: int = 0, copy: int = 0, fused: int = 0,
            device: object = 0, note: str | None = None) -> dict[str, Any]:  # fmt: skip
    """A row of overlap whose parts add up to its span."""
    times = {"compute_ns": compute, "comm_ns": comm, "copy_ns": copy, "hidden_ns": hidden, "exposed_ns": exposed, "exposed_copy_ns": copy}
    ratio = hidden / comm if comm and hidden is not None else float("nan")
    span = compute + exposed + copy + idle
    return {
        "rank": rank,
        "device": device,
        "span_ns": span,
        **times,
        "idle_ns": idle,
        "fused_ns": fused,
        "hidden_ratio": ratio,
        "note": note,
    }


def table(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The table of rows given as dicts."""
    return Table.of(schema, {name: [row[name] for row in rows] for name in schema.names} if rows else None)


def exposed_rows(*rows: tuple[str, str | None, str, int]) -> Table:
    """The exposed table of (collective, group, cause, exposed_ns)."""
    blank = {"rank": 0, "device": 0, "by": "combination", "step": None, "op": None}
    return table(EXPOSED, [{**blank, "collective": c, "group": g, "cause": why, "exposed_ns": ns} for c, g, why, ns in rows])


def report(*tables: Table, warnings: Sequence[DataWarning] = (), **more: Any) -> Report:
    """A report of the tables."""
    return Report(tables={one.schema.name: one for one in tables}, warnings=tuple(warnings), **more)
