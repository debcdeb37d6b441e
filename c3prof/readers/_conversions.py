"""Lists of decoded values as columns: typed (Python numbers and text) and exact (raw JSON); both give the same."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from c3prof.readers._columns import Array
from c3prof.readers._values import MISSING, NONE, compact_json, float_of, id_text, int64_of, lane_of, ns_of, number_text, plain_text

_SAFE_US = 2.0**42
"""Below, float64 µs tell times with at most three decimals from all others.

Half a unit in the last place is at most 2**-12 µs = 0.244 ns there: a time with three decimals is found within 0.244 ns
of a whole ns, and a time found within 0.244 ns is within 0.488 ns of that whole ns: it rounds to it.
"""

_POINT = ord(".") - ord("0")


class Refused(ValueError):
    """The typed way cannot tell the exact value; the exact way can."""


class Codes(dict[Any, int]):
    """Code of each value, given by a function of the value when it is new."""

    def __init__(self, code: Callable[[Any], int]) -> None:
        super().__init__({None: NONE, b"": NONE, b"null": NONE})
        self._code = code

    def __missing__(self, value: Any) -> int:
        self[value] = code = self._code(value)
        return code

    def of(self, values: Sequence[Any]) -> Array:
        """int32 codes of values."""
        return np.array([self[value] for value in values], np.int32)


class Conversion(Protocol):
    """Decoded values of one kind as a column; lane gives numbers and codes of what is other text."""

    def text(self, values: Sequence[Any]) -> Array: ...
    def json(self, values: Sequence[Any]) -> Array: ...
    def id(self, values: Sequence[Any]) -> Array: ...
    def float(self, values: Sequence[Any]) -> Array: ...
    def lane(self, values: Sequence[Any]) -> tuple[Array, Array]: ...
    def pid(self, values: Sequence[Any]) -> Array: ...
    def time(self, values: Sequence[Any]) -> Array: ...


class Strings:
    """The string table that both conversions fill: texts[code] is the text of a code."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.code = Codes(self._new)
        self.json = Codes(lambda raw: self.code[compact_json(raw)])

    def _new(self, text: str) -> int:
        self.texts.append(text)
        return len(self.texts) - 1


class Typed:
    """Values that msgspec decoded to int, float and str. Raises Refused when the exact value cannot be told."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._pid = Codes(lambda pid: strings.code[str(pid)])

    def text(self, values: Sequence[Any]) -> Array:
        return self._strings.code.of(values)

    def json(self, values: Sequence[Any]) -> Array:
        return self._strings.json.of([bytes(value) for value in values])

    def id(self, values: Sequence[Any]) -> Array:
        return np.array([NONE if value is None else value if type(value) is int else _typed_id(value) for value in values], np.int64)

    def float(self, values: Sequence[Any]) -> Array:
        column = np.array([math.nan if value is None else value for value in values], np.float64)
        return np.where(np.isfinite(column), column, math.nan)

    def lane(self, values: Sequence[Any]) -> tuple[Array, Array]:
        if all(type(value) is int for value in values):
            return np.array(values, np.int64), np.full(len(values), NONE, np.int32)
        return _lanes([str(value) if type(value) is int else value for value in values], self._strings)

    def pid(self, values: Sequence[Any]) -> Array:
        return self._pid.of(values)

    def time(self, values: Sequence[Any]) -> Array:
        column = np.array(values)
        if column.dtype == np.int64:
            if len(column) and max(-int(column.min()), int(column.max())) >= 2**63 // 1000:
                raise Refused
            return np.asarray(column * 1000)
        if column.dtype != np.float64 or np.any(np.abs(column) >= _SAFE_US):
            raise Refused
        missing = np.isnan(column)
        column = np.where(missing, 0.0, column)
        whole = np.floor(column)
        ns = (column - whole) * 1000
        nearest = np.rint(ns)
        if np.any(np.abs(ns - nearest) > np.spacing(np.abs(column)) * 501 + 1e-9):
            raise Refused
        return np.where(missing, MISSING, whole.astype(np.int64) * 1000 + nearest.astype(np.int64))


class Exact:
    """Values as raw JSON; the reference."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._text = Codes(lambda raw: strings.code[plain_text(raw)])
        self._pid = Codes(lambda raw: strings.code[id_text(raw)])

    def text(self, values: Sequence[Any]) -> Array:
        return self._text.of([bytes(value) for value in values])

    def json(self, values: Sequence[Any]) -> Array:
        return self._strings.json.of([bytes(value) for value in values])

    def id(self, values: Sequence[Any]) -> Array:
        numbers = [int64_of(number_text(bytes(value))) for value in values]
        return np.array([NONE if number is None else number for number in numbers], np.int64)

    def float(self, values: Sequence[Any]) -> Array:
        return np.array([float_of(number_text(bytes(value))) for value in values], np.float64)

    def lane(self, values: Sequence[Any]) -> tuple[Array, Array]:
        raws = [bytes(value) for value in values]
        return _lanes([None if raw in (b"", b"null") else plain_text(raw) for raw in raws], self._strings)

    def pid(self, values: Sequence[Any]) -> Array:
        return self._pid.of([bytes(value) for value in values])

    def time(self, values: Sequence[Any]) -> Array:
        raws = [bytes(value) for value in values]
        sizes = np.array([len(raw) for raw in raws], np.int64)
        ns = np.empty(len(raws), np.int64)
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            ns[rows] = _ns_of_size([raws[row] for row in rows.tolist()], size)
        return ns


def _ns_of_size(raws: Sequence[bytes], size: int) -> Array:
    """ns of times given as raw JSON of one size: all at once for those that are digits with three decimals, as recorders write."""
    digits = np.frombuffer(b"".join(raws), np.uint8).reshape(len(raws), size).astype(np.int64) - ord("0")
    others = np.delete(digits, size - 4, axis=1) if 5 <= size <= 19 else digits[:0]
    if others.size and np.all(digits[:, size - 4] == _POINT) and others.min() >= 0 and others.max() <= 9:
        return np.asarray(others @ 10 ** np.arange(size - 2, -1, -1, dtype=np.int64))
    return np.array([ns_of(number_text(raw)) for raw in raws], np.int64)


def _typed_id(value: str) -> int:
    number = int64_of(number_text(value.encode()))
    return NONE if number is None else number


def _lanes(texts: Sequence[str | None], strings: Strings) -> tuple[Array, Array]:
    """Numbers of lanes (MISSING where there is none) and codes of those that are other text (-1 elsewhere)."""
    numbers = [None if text is None else lane_of(text) for text in texts]
    others = [text if number is None else None for text, number in zip(texts, numbers, strict=True)]
    return np.array([MISSING if number is None else number for number in numbers], np.int64), strings.code.of(others)
