"""A piece of valid JSON, an array of events, as columns.

Three ways to the same values, the first that accepts the piece: typed (numbers are numbers; almost every file),
typed with the digits of times (float64 cannot hold them), exact (every value from its text, whatever its type).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from c3prof.readers._columns import KEYS, TABLES, Array, Columns, has_value
from c3prof.readers._conversions import Conversion, Exact, Refused, Strings, Typed
from c3prof.readers._values import MISSING, NONE

MODULE_PREFIX = "nn.Module: "
PYTHON_FUNCTION = "python_function"
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset", "gpu_user_annotation", "cuda_sync"}
CONCRETE_PREFIXES = ("c10d::", "_c10d_functional::", "record_param_comms", "nccl:", "gloo:")
KEPT_PHASES = frozenset({"X", "C", "M", None})

NO_RAW = msgspec.Raw(b"")
_RAW = (msgspec.Raw, NO_RAW)
_NUMBER = (int | str | None, None)
_TYPED = {"text": (str | None, None), "json": _RAW, "id": _NUMBER, "lane": _NUMBER, "float": (int | float | None, None)}


def _args_struct(types: dict[str, Any]) -> Any:
    fields = [(column, *types[kind]) for keys in KEYS.values() for column, (_, kind) in keys.items()]
    rename = {column: key for keys in KEYS.values() for column, (key, _) in keys.items()}
    return msgspec.defstruct("Args", fields, rename=rename, gc=False)


def _event_struct(text: Any, lane: Any, time: Any, args: Any) -> Any:
    kinds = {"ph": text, "cat": text, "name": text, "pid": lane, "tid": lane, "ts": time, "dur": time, "args": args}
    return msgspec.defstruct("Event", [(field, *kind) for field, kind in kinds.items()], gc=False)


_TypedArgs = _args_struct(_TYPED)
_ExactArgs = _args_struct(dict.fromkeys(_TYPED, _RAW))
_TypedEvent = _event_struct(_TYPED["text"], _NUMBER, (int | float, math.nan), (_TypedArgs | None, None))
_DigitsEvent = _event_struct(_TYPED["text"], _NUMBER, _RAW, (_TypedArgs | None, None))
_ExactEvent = _event_struct(_RAW, _RAW, _RAW, _RAW)
_MetaEvent = msgspec.defstruct("MetaEvent", [("args", *_RAW)], gc=False)


def _list_decoder(event: Any) -> Any:
    return msgspec.json.Decoder(list[event])


_TYPED_EVENTS = _list_decoder(_TypedEvent)
_DIGITS_EVENTS = _list_decoder(_DigitsEvent)
_EXACT_EVENTS = _list_decoder(_ExactEvent)
_META_EVENTS = _list_decoder(_MetaEvent)
_EXACT_ARGS = msgspec.json.Decoder(_ExactArgs)
_NO_TYPED_ARGS = _TypedArgs()
_NO_EXACT_ARGS = _ExactArgs()
_COMM = attrgetter(*KEYS["comm"])
_NO_COMM = _COMM(_NO_TYPED_ARGS)


@dataclass
class _Kept:
    """The events of a piece that become rows, their args, their ts_ns and dur_ns, and the raw args of C and M by row."""

    events: list[Any]
    args: list[Any]
    times: list[Array]
    meta: dict[int, Any]


class EventDecoding:
    """Pieces of an event array decoded one after another; keeps the string table and the counts of all of them.

    strings: every text met so far; counts: events seen ("events", "ph:X", …, "python_function").
    """

    def __init__(self) -> None:
        self.strings = Strings()
        self.counts: Counter[str] = Counter(events=0, python_function=0)
        self._typed, self._exact = Typed(self.strings), Exact(self.strings)
        self._ways: list[tuple[Any, Conversion]] = [(_TYPED_EVENTS, self._typed), (_DIGITS_EVENTS, self._exact)]

    def columns(self, piece: bytes) -> tuple[dict[str, Columns], list[int]]:
        """The tables of a piece, a JSON array of events, and which of the events became its rows; `row` counts from the first row.

        Raises msgspec.DecodeError, with nothing changed, when the piece is no such array.
        """
        while self._ways:
            decoder, clock = self._ways[0]
            try:
                return self._typed_tables(decoder.decode(piece), piece, clock)
            except Refused:
                del self._ways[0]  # the times of a file are alike
            except (OverflowError, msgspec.ValidationError):
                break
        return self._exact_tables(piece)

    def _typed_tables(self, events: list[Any], piece: bytes, clock: Conversion) -> tuple[dict[str, Columns], list[int]]:
        at, times = _kept(events, clock)
        kept = [events[i] for i in at]
        args = [event.args or _NO_TYPED_ARGS for event in kept]
        meta = [row for row, event in enumerate(kept) if event.ph in ("C", "M")]
        raw = _META_EVENTS.decode(piece) if meta else []
        return self._tables(events, _Kept(kept, args, times, {row: raw[at[row]].args for row in meta}), self._typed), at

    def _exact_tables(self, piece: bytes) -> tuple[dict[str, Columns], list[int]]:
        events = _EXACT_EVENTS.decode(piece)
        for event in events:
            for field, code in zip(("ph", "cat", "name"), self._exact.text([event.ph, event.cat, event.name]).tolist(), strict=True):
                setattr(event, field, self.strings.texts[code] if code >= 0 else None)
        at, times = _kept(events, self._exact)
        kept = [events[i] for i in at]
        args = [_EXACT_ARGS.decode(event.args) if bytes(event.args)[:1] == b"{" else _NO_EXACT_ARGS for event in kept]
        meta = {row: event.args for row, event in enumerate(kept) if event.ph in ("C", "M")}
        return self._tables(events, _Kept(kept, args, times, meta), self._exact), at

    def _tables(self, events: list[Any], rows: "_Kept", values: Conversion) -> dict[str, Columns]:
        kept, args, meta = rows.events, rows.args, rows.meta
        columns = {"ts_ns": rows.times[0], "dur_ns": rows.times[1]}
        for field in ("ph", "cat", "name"):
            columns[field] = self.strings.code.of(list(map(attrgetter(field), kept)))
        columns["pid"], columns["tid"] = values.pid([event.pid for event in kept]), values.pid([event.tid for event in kept])
        columns |= _args_columns("events", args, values)
        tables = {"events": columns, "ops": self._ops(kept, args, values), "comm": self._comm(args, values)}
        tables["device"] = self._device(kept, args, values)
        tables["meta"] = _filled("meta", {"row": np.fromiter(meta, np.int32, len(meta)), "args": values.json(list(meta.values()))})
        self._count(events)
        return tables

    def _ops(self, kept: list[Any], args: list[Any], values: Conversion) -> Columns:
        rows = [i for i, a in enumerate(args) if a.dims or a.types or a.strides or a.concrete or a.module or a.dims_old]
        chosen = [args[i] for i in rows]
        columns = _args_columns("ops", chosen, values)
        named = np.array([(kept[i].name or "").startswith(CONCRETE_PREFIXES) for i in rows], bool)
        concrete = np.full(len(rows), NONE, np.int32)
        concrete[named] = values.json([chosen[i].concrete for i in np.flatnonzero(named).tolist()])
        columns["concrete"] = concrete
        if "" in self.strings.code:
            columns["module"] = np.where(columns["module"] == self.strings.code[""], np.int32(NONE), columns["module"])
        return _filled("ops", {"row": np.array(rows, np.int32)} | columns)

    def _comm(self, args: list[Any], values: Conversion) -> Columns:
        rows = [i for i, a in enumerate(args) if _COMM(a) != _NO_COMM]
        return _filled("comm", {"row": np.array(rows, np.int32)} | _args_columns("comm", [args[i] for i in rows], values))

    def _device(self, kept: list[Any], args: list[Any], values: Conversion) -> Columns:
        rows = [i for i, event in enumerate(kept) if _is_on_device(event.cat)]
        columns = _args_columns("device", [args[i] for i in rows], values)
        table = _filled("device", {"row": np.array(rows, np.int32)} | columns)
        for lane, field in (("device", "pid"), ("stream", "tid")):
            absent = np.flatnonzero((table[lane] == MISSING) & (table[f"{lane}_text"] == NONE))
            numbers, texts = values.lane([getattr(kept[row], field) for row in table["row"][absent].tolist()])
            table[lane][absent], table[f"{lane}_text"][absent] = numbers, texts
        return table

    def _count(self, events: list[Any]) -> None:
        for phase, count in Counter([event.ph for event in events]).items():
            self.counts[f"ph:{phase or ''}"] += count
        self.counts["events"] += len(events)
        self.counts[PYTHON_FUNCTION] += sum(event.cat == PYTHON_FUNCTION for event in events)


def _kept(events: list[Any], clock: Conversion) -> tuple[list[int], list[Array]]:
    """Positions of the events that become rows, and their ts_ns and dur_ns."""
    at = [
        i
        for i, event in enumerate(events)
        if event.ph in KEPT_PHASES and (event.cat != PYTHON_FUNCTION or (event.name or "").startswith(MODULE_PREFIX))
    ]
    times = [clock.time([events[i].ts for i in at]), clock.time([events[i].dur for i in at])]
    no_phase = np.array([events[i].ph is None for i in at], bool)
    whole = ~no_phase | ((times[0] != MISSING) & (times[1] != MISSING))
    if whole.all():
        return at, times
    return np.array(at)[whole].tolist(), [column[whole] for column in times]


@lru_cache(maxsize=1024)
def _is_on_device(category: str | None) -> bool:
    return category is not None and category.isascii() and category.lower() in DEVICE_CATEGORIES


def _args_columns(table: str, args: Sequence[Any], values: Conversion) -> Columns:
    """The columns of a table that are read from args, one row for each of args."""
    columns: Columns = {}
    for column, (_, kind) in KEYS[table].items():
        read = list(map(attrgetter(column), args))
        if kind == "lane":
            columns[column], columns[f"{column}_text"] = values.lane(read)
        else:
            columns[column] = getattr(values, kind)(read)
    for column in [name for name in columns if name.endswith("_old")]:
        old, new = columns.pop(column), columns[column[:-4]]
        columns[column[:-4]] = np.where(new == NONE, old, new)
    return columns


def _filled(table: str, columns: Columns) -> Columns:
    """The rows that hold a value, columns in the declared order."""
    filled = np.zeros(len(columns["row"]), bool)
    for name, kind in TABLES[table].items():
        if kind != "row":
            filled |= has_value(columns[name], kind)
    return {name: columns[name][filled] for name in TABLES[table]}
