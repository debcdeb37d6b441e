"""The columns of a Scan: their names, dtypes and keys, and how pieces of them become one canonical whole."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from c3prof.readers._values import MISSING, NONE

Array = npt.NDArray[Any]
Columns = dict[str, Array]

KEYS: dict[str, dict[str, tuple[str, str]]] = {
    "events": {"external_id": ("External id", "id"), "external_id_old": ("external id", "id"), "correlation": ("correlation", "id")},
    "ops": {
        "dims": ("Input Dims", "json"), "dims_old": ("Input dims", "json"), "types": ("Input type", "json"),
        "strides": ("Input Strides", "json"), "concrete": ("Concrete Inputs", "json"), "module": ("Module Hierarchy", "text"),
    },
    "device": {
        "device": ("device", "lane"), "stream": ("stream", "lane"), "grid": ("grid", "json"), "block": ("block", "json"),
        "shared_memory": ("shared memory", "id"), "registers": ("registers per thread", "id"),
        "occupancy": ("est. achieved occupancy %", "float"), "bytes": ("bytes", "id"), "graph": ("graph id", "id"),
        "graph_node": ("graph node id", "id"), "copy_kind": ("kind", "text"),
    },
    "comm": {
        "collective": ("Collective name", "text"), "dtype": ("dtype", "text"), "group": ("Process Group Name", "text"),
        "group_desc": ("Process Group Description", "text"), "group_ranks": ("Process Group Ranks", "text"),
        "in_split": ("In split size", "text"), "out_split": ("Out split size", "text"), "in_elements": ("In msg nelems", "id"),
        "out_elements": ("Out msg nelems", "id"), "group_size": ("Group size", "id"), "seq": ("Seq", "id"), "rank": ("Rank", "id"),
        "src_rank": ("Src Rank", "id"), "dst_rank": ("Dst Rank", "id"),
    },
}  # fmt: skip
"""What is read from args: by table, the column, its key and what kind of value it is.

text: code of the characters (of the compact JSON when it is no string); json: code of the compact JSON;
id: int64, -1 absent; lane: int64, MISSING absent; float: float64, NaN absent.
"""

DTYPES = {"text": "int32", "json": "int32", "id": "int64", "lane": "int64", "float": "float64", "row": "int32"}
CODE_KINDS = ("text", "json")

TABLES: dict[str, dict[str, str]] = {
    "events": {"ts_ns": "lane", "dur_ns": "lane", "ph": "text", "cat": "text", "name": "text", "pid": "text", "tid": "text"},
    "ops": {"row": "row"},
    "device": {"row": "row", "device_text": "text", "stream_text": "text"},
    "comm": {"row": "row"},
    "meta": {"row": "row", "args": "json"},
}
"""The kind of every column by table; device_text and stream_text only live until the table of strings is final."""
for _table, _keys in KEYS.items():
    TABLES[_table] |= {column: kind for column, (_, kind) in _keys.items() if not column.endswith("_old")}

TEXT_LANE = -1000
"""A device or stream that is other text is TEXT_LANE - code of the text."""


def has_value(column: Array, kind: str) -> Array:
    """Where a column holds something."""
    if kind == "float":
        return ~np.isnan(column)
    return np.asarray(column != (MISSING if kind == "lane" else NONE))


def joined(pieces: Iterable[Mapping[str, Columns]]) -> dict[str, Columns]:
    """One table of columns of each kind from pieces in order, with the declared dtypes; rows count through."""
    pieces = list(pieces)
    rows = 0
    for piece in pieces:
        for table in TABLES.keys() - {"events"}:
            piece[table]["row"] += np.int32(rows)
        rows += len(piece["events"]["ts_ns"])
    tables: dict[str, Columns] = {}
    for table, columns in TABLES.items():
        parts = [piece[table] for piece in pieces]
        tables[table] = {
            name: np.concatenate([part[name] for part in parts], dtype=DTYPES[kind]) if parts else np.empty(0, DTYPES[kind])
            for name, kind in columns.items()
        }
    return tables


def canonical(tables: dict[str, Columns], strings: list[str]) -> tuple[dict[str, Columns], list[str]]:
    """The tables with codes into a sorted table of the strings that occur, so that nothing depends on how they were found."""
    codes = [(columns, name) for table, columns in tables.items() for name, kind in TABLES[table].items() if kind in CODE_KINDS]
    used = np.zeros(len(strings) + 1, bool)
    for columns, name in codes:
        used[columns[name].astype(np.intp)] = True  # as in strings.py
    used[-1] = False  # where code -1 (none) points
    kept = np.flatnonzero(used).tolist()
    texts = sorted({strings[code] for code in kept})
    places = {text: place for place, text in enumerate(texts)}
    moved = np.full(len(strings) + 1, NONE, np.int32)
    moved[kept] = [places[strings[code]] for code in kept]
    for columns, name in codes:
        columns[name] = moved.take(columns[name])
    for lane in ("device", "stream"):
        text = tables["device"].pop(f"{lane}_text").astype(np.int64)
        tables["device"][lane] = np.where(text >= 0, TEXT_LANE - text, tables["device"][lane])
    return tables, texts
