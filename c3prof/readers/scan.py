"""scan: the bytes of a Kineto file as columns, strings, header and damage.

Both ways share _document (documents, header, damage between events) and _tolerant (repair inside one event), so they
report the same damage. Events become columns in Python (_pieces, _events, _conversions; _values says what a value means:
the reference) or in C (_native, _scan.c), which reads the plain events and leaves the others to Python.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from c3prof.readers._columns import Columns, canonical
from c3prof.readers._document import Damage, Document, Events
from c3prof.readers._pieces import PythonEvents
from c3prof.readers._values import MISSING

__all__ = ["MISSING", "Damage", "Scan", "scan"]

try:
    from c3prof.readers._native import NativeEvents
except ImportError:  # built without a compiler
    NativeEvents = None  # type: ignore[assignment,misc] # says that there is none


def scanner() -> Events:
    """What turns events into columns: the native way where it was built, unless C3PROF_SCAN=python."""
    return PythonEvents() if NativeEvents is None or os.environ.get("C3PROF_SCAN") == "python" else NativeEvents()


def scanner_name() -> str:
    """The way that `scan` uses: native or python."""
    return scanner().name


@dataclass(frozen=True)
class Scan:
    """One file as columns; every array of a table has the same length.

    events: a row a kept event, in file order: ts_ns, dur_ns (int64, MISSING -2**63 when absent or no number), ph, cat, name,
        pid, tid (int32 codes into strings, -1 absent), external_id, correlation (int64, -1 absent).
    ops, device, comm, meta: the events whose args hold one of the table's values, with `row` (int32, position in events):
        ops: dims, types, strides, concrete (codes of compact JSON), module (code of the text);
        device: device, stream (int64, MISSING absent, -1000 - code for text), grid, block (compact JSON), shared_memory,
            registers, bytes, graph, graph_node (int64, -1 absent), occupancy (float64, NaN absent), copy_kind (text);
        comm: collective, dtype, group, group_desc, group_ranks, in_split, out_split (codes of the text), in_elements,
            out_elements, group_size, seq, rank, src_rank, dst_rank (int64, -1 absent);
        meta: args (compact JSON) of counters (C) and metadata (M).
    strings: sorted; header: top-level values, decoded; damage: at most 1,000 entries in order of reading.
    counts: events seen, "ph:X", … by phase, python_function, dropped, repaired, and "damage:KIND".
    """

    events: Columns
    ops: Columns
    device: Columns
    comm: Columns
    meta: Columns
    strings: list[str]
    header: dict[str, Any]
    damage: tuple[Damage, ...]
    counts: dict[str, int]


def scan(blocks: Iterable[bytes]) -> Scan:
    """The Scan of a file given as blocks of decompressed bytes of any sizes. Never raises on any bytes."""
    events = scanner()
    document = Document(events)
    document.read(blocks)
    return scan_of(document, events)


def scan_of(document: Document, events: Events) -> Scan:
    """The Scan of a document that was read into events."""
    tables, texts, counts = events.result()
    tables, strings = canonical(tables, texts)
    damage = document.damage
    if not len(tables["events"]["ts_ns"]):
        damage = [*damage, Damage("empty", 0, 0, "no events were found")]
    return Scan(**tables, strings=strings, header=document.header, damage=tuple(damage), counts={**counts, **document.counts})
