"""Events of a buffer as columns, in pieces as large as the strict decoder accepts: the Python way.

A piece is cut where "}, {" stands. That may be inside a string or a nested list, but then the piece is no valid JSON;
and when it is valid, reading it from its start, which is the start of an event, shows that the cut is between two events.
"""

import re

import msgspec
import numpy as np

from c3prof.readers._columns import Columns, joined
from c3prof.readers._events import EventDecoding
from c3prof.readers._tolerant import DEEPEST

_LARGEST, _SMALLEST = 1 << 19, 1 << 12
_BOUNDARY = re.compile(rb"\}[ \t\r\n]*(?=,[ \t\r\n]*\{)")
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"')


class PythonEvents:
    """The events of a file as columns, fed from a buffer (consume) and one by one (add)."""

    name = "python"

    def __init__(self) -> None:
        self._decoding = EventDecoding()
        self._pieces: list[dict[str, Columns]] = []
        self._repaired: list[bytes] = []
        self._size = _LARGEST

    def consume(self, buffer: bytes, start: int) -> int:
        """Where the events that could be read from buffer[start], the start of one, end; start when not even one could."""
        while True:
            end = _last_boundary(buffer, start, start + self._size)
            if end < 0:
                return start
            if self._accepted(b"[" + buffer[start:end] + b"]"):
                self._size = min(self._size * 4, _LARGEST)
                return end
            if self._size == _SMALLEST:
                return start
            self._size = max(self._size // 4, _SMALLEST)

    def _accepted(self, piece: bytes) -> bool:
        if not _is_strict(piece):
            return False
        try:
            tables, _ = self._decoding.columns(piece)
        except msgspec.DecodeError:
            return False
        self._flush()
        self._pieces.append(tables)
        return True

    def add(self, event: bytes) -> None:
        """One more event, an object in valid JSON."""
        self._repaired.append(event)

    def _flush(self) -> None:
        if self._repaired:
            self._pieces.append(self._decoding.columns(b"[" + b",".join(self._repaired) + b"]")[0])
            self._repaired = []

    def result(self) -> tuple[dict[str, Columns], list[str], dict[str, int]]:
        """The tables, the texts that their codes point to, and the counts."""
        self._flush()
        return joined(self._pieces), self._decoding.strings.texts, dict(self._decoding.counts)


def _last_boundary(buffer: bytes, start: int, end: int) -> int:
    """The position after the last event in buffer[start:end] that another one follows; -1 when there is none."""
    window = 1 << 12
    low = min(end, len(buffer))
    while low > start:
        low = max(start, low - window)
        ends = [match.start() + 1 for match in _BOUNDARY.finditer(buffer, low, end)]
        if ends:
            return ends[-1]
        window *= 4
    return -1


def _is_strict(piece: bytes) -> bool:
    """What msgspec does not check where it skips: UTF-8 and depth. Right when the piece is valid JSON otherwise."""
    if not piece.isascii():
        try:
            piece.decode()
        except UnicodeDecodeError:
            return False
    text = _ESCAPE.sub(b"", piece) if b"\\" in piece else piece
    structure = np.frombuffer(text.translate(None, _NO_STRUCTURE), np.uint8)
    quotes = structure == 0x22
    outside = np.cumsum(quotes, dtype=np.uint8) % 2 == 0
    brackets = structure[outside & ~quotes]
    steps = np.where((brackets == 0x5B) | (brackets == 0x7B), 1, -1)
    return int(np.cumsum(steps).max(initial=0)) <= DEEPEST + 1
