"""Events of a buffer as columns, in C: the native way. Raises ImportError where it was not built.

It reads the events that are strict JSON and plain, one after another, and stops at the first that is not: that one is
repaired and read by the Python way, which is the reference for both. So damage is the same by construction, and
columns are where tests compare the two.
"""

import secrets
from collections.abc import Mapping

import numpy as np

from c3prof.readers import _scan
from c3prof.readers._columns import CODE_KINDS, DTYPES, TABLES, Array, Columns, joined
from c3prof.readers._events import EventDecoding
from c3prof.readers._values import NONE

_BATCH = 4096


class NativeEvents:
    """The events of a file as columns, fed from a buffer (consume, without the GIL) and one by one (add)."""

    name = "native"

    def __init__(self) -> None:
        self._scanner = _scan.scanner(secrets.randbits(64))
        self._python = EventDecoding()
        self._repaired: list[tuple[bytes, int]] = []
        self._pieces: list[dict[str, Columns]] = []
        self._before: list[int] = []

    def consume(self, buffer: bytes, start: int) -> int:
        """Where the events that could be read from buffer[start], the start of one, end; start when not even one could."""
        return _scan.consume(self._scanner, buffer, start)

    def add(self, event: bytes) -> None:
        """One more event, an object in valid JSON; it comes behind what was consumed so far."""
        self._repaired.append((event, _scan.rows(self._scanner)))
        if len(self._repaired) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        tables, kept = self._python.columns(b"[" + b",".join(event for event, _ in self._repaired) + b"]")
        self._pieces.append(tables)
        self._before += [self._repaired[i][1] for i in kept]
        self._repaired = []

    def result(self) -> tuple[dict[str, Columns], list[str], dict[str, int]]:
        """The tables, the texts that their codes point to, and the counts."""
        self._flush()
        native = {table: _arrays(table, columns) for table, columns in _scan.take(self._scanner).items()}
        texts = _scan.strings(self._scanner)
        counts = self._counts(texts)
        if not self._before:
            return native, texts, counts
        python = joined(self._pieces)
        for table, columns in python.items():
            for name, kind in TABLES[table].items():
                if kind in CODE_KINDS:
                    columns[name] = np.where(columns[name] == NONE, columns[name], columns[name] + np.int32(len(texts)))
        return _interleaved(native, python, np.array(self._before, np.int64)), texts + self._python.strings.texts, counts

    def _counts(self, texts: list[str]) -> dict[str, int]:
        phases, events, without_phase, python_functions = _scan.counts(self._scanner)
        counts = self._python.counts
        for code, count in phases.items():
            counts[f"ph:{texts[code]}"] += count
        if without_phase:
            counts["ph:"] += without_phase
        counts["events"] += events
        counts["python_function"] += python_functions
        return dict(counts)


class _Memory:
    """Memory that C gave away, for np.asarray, to be read only; the array keeps this, and this the owner."""

    def __init__(self, address: int, rows: int, owner: object, kind: str) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "typestr": np.dtype(DTYPES[kind]).str, "shape": (rows,), "data": (address, True)}


def _arrays(table: str, columns: Mapping[str, tuple[int, int, object]]) -> Columns:
    return {
        name: np.asarray(_Memory(*columns[name], kind)) if columns[name][1] else np.empty(0, DTYPES[kind])
        for name, kind in TABLES[table].items()
    }


def _interleaved(native: dict[str, Columns], python: dict[str, Columns], before: Array) -> dict[str, Columns]:
    """Both as one, in file order; before: how many native rows come before each python row."""
    rows = np.arange(len(native["events"]["ts_ns"]))
    places = (rows + np.searchsorted(before, rows, side="right"), before + np.arange(len(before)))
    tables: dict[str, Columns] = {}
    for table in TABLES:
        if table == "events":
            order = np.argsort(np.concatenate(places), kind="stable")
        else:
            row = np.concatenate([place[side[table]["row"]] for place, side in zip(places, (native, python), strict=True)])
            order = np.argsort(row, kind="stable")
        tables[table] = {name: np.concatenate([native[table][name], python[table][name]])[order] for name in TABLES[table]}
        if table != "events":
            tables[table]["row"] = row[order].astype(np.int32)
    return tables
