r"""The bytes of a file as events, header values and damage: what the scans mean by a Kineto file.

A file is one or more documents, each an object or an array. In an array every element is an event, or an array of
events (nested). In an object, the value of "traceEvents", when it is an array, holds the events; every other member is
a header value, of which the first with a key counts; an object with "traceEvents" in it is read like the top (nested).
A comma too many or too few between events or members is passed over (separator); a second document is read as well
(trailing). Where something else does not fit, reading resumes at the first of

- the start of an event: '{', not after ':', with a first key as events have it, or
- a known top-level key (the events have ended, or not begun),

and what lies between is one bad-event (deep, not-json, trailing, or cut at the end of the file).
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from c3prof.readers._columns import Columns
from c3prof.readers._tolerant import Incomplete, Repaired, Unreadable, repaired, repaired_key

MOST_DAMAGE = 1000
_BLOCK, _BEGIN = 1 << 17, 1 << 12
_DEEPEST = 8
_EXCERPT = 60
_LONGEST_MATCH = 256
_LONG_EVENT = 1 << 16
_TRACE_EVENTS = b'"traceEvents"'

_ONLY_IN_EVENTS = (b'"ph"', b'"ts"', b'"dur"', b'"tid"', b'"cat"')
_EVENT_KEYS = rb"ph|cat|name|ts|pid|tid|dur|args|id|bp|s"
_TOP_KEYS = (
    rb"schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|displayTimeUnit|traceEvents|traceName|trace_id|host_name"
    rb"|record_shapes|with_flops|with_stack|with_modules|profile_memory|cupti_version|cuda_runtime_version|cuda_driver_version"
    rb"|hip_runtime_version|hip_driver_version|roctracer_version|profiler_version|otherData|systemTraceEvents|stackFrames"
)
_WS = rb"[ \t\r\n]{0,32}"
_RESUME = re.compile(
    rb"[^: \t\r\n]" + _WS + rb"(?P<event>\{)" + _WS + rb'"(?:' + _EVENT_KEYS + rb')"' + _WS + rb":"
    rb'|(?P<key>")(?:' + _TOP_KEYS + rb')"' + _WS + rb":"
)  # fmt: skip
_SPACE = re.compile(rb"[ \t\r\n]*")
_OBJECT, _ARRAY = 0x7B, 0x5B


@dataclass(frozen=True)
class Damage:
    """What was lost or repaired: its kind, where it begins in the decompressed bytes, how long it is, and an excerpt."""

    kind: str
    offset: int
    length: int
    text: str


class Events(Protocol):
    """Where events become columns: from the buffer as far as they are plain, and one by one after repair."""

    name: str

    def consume(self, buffer: bytes, start: int) -> int: ...
    def add(self, event: bytes) -> None: ...
    def result(self) -> tuple[dict[str, Columns], list[str], dict[str, int]]: ...


class Document:
    """Reads blocks of bytes once (read); then header, damage and counts hold what was beside the events.

    block: bytes that are gathered before they are looked at; begin: of these, bytes that are copied behind what is left.
    """

    def __init__(self, events: Events, block: int = _BLOCK, begin: int = _BEGIN) -> None:
        self.header: dict[str, Any] = {}
        self.damage: list[Damage] = []
        self.counts: Counter[str] = Counter(dropped=0, repaired=0)
        self._events = events
        self._block, self._begin = block, begin
        self._buffer, self._at, self._base, self._final = b"", 0, 0, False
        self._open: list[int] = []
        self._after_value = False  # a comma or an end comes next
        self._filled = False  # what is open has had a value or a comma
        self._started = False
        self._lost: _Lost | None = None

    def read(self, blocks: Iterable[bytes]) -> None:
        """Reads all blocks; what they hold does not depend on where they are cut."""
        waiting, size, wanted = list[bytes](), 0, self._block
        for block in blocks:
            waiting.append(block)
            size += len(block)
            if size >= wanted:
                self._extend(waiting)
                size, wanted = 0, max(self._block, len(self._buffer) - self._at)
        self._final = True
        self._extend(waiting)

    def _extend(self, waiting: list[bytes]) -> None:
        """Reads on through what is left and the blocks, which are taken from the list: nothing is held longer than needed.

        What is left is mostly part of one short event: with the begin of the next bytes behind it, it is read, and then
        these bytes where they are. A long one is joined with them.
        """
        left, self._buffer = self._buffer[self._at :], b""
        self._base, self._at = self._base + self._at, 0
        if self._final or len(left) > self._begin:
            self._buffer = b"".join([left, *waiting])
            del left
            waiting.clear()
            self._advance()
            return
        block = b"".join(waiting) if len(waiting) > 1 else waiting[0]
        waiting.clear()
        self._buffer = left + block[: self._begin]
        self._advance()
        if self._at >= len(left):
            self._buffer, self._base, self._at = block, self._base + len(left), self._at - len(left)
        else:
            self._buffer += block[self._begin :]
        self._advance()

    def _advance(self) -> None:
        try:
            while True:
                self._step()
        except Incomplete:
            if self._final:
                self._end()

    def _end(self) -> None:
        """The bytes have run out: what was begun is cut, unless reading can resume behind it."""
        while self._lost is None and self._at < len(self._buffer):
            self._lose("cut")
            try:
                while True:
                    self._step()
            except Incomplete:
                continue
        if self._lost is not None:
            self._record_loss(len(self._buffer))
        elif self._open:
            self._note("cut", self._at, 0, "the file ends before its last ] or }")

    def _step(self) -> None:
        if self._lost is not None:
            self._resume(self._lost)
            return
        byte = self._peek()
        if not self._open:
            self._document(byte)
        elif byte == 0x2C:
            if not self._after_value:
                self._note("separator", self._at, 1, "a comma too many")
            self._after_value, self._filled = False, True
            self._at += 1
        elif byte == self._open[-1] + 2:
            if not self._after_value and self._filled:
                self._note("separator", self._at, 0, "a comma too many")
            self._open.pop()
            self._after_value = self._filled = True
            self._at += 1
        elif self._open[-1] == _ARRAY:
            self._element(byte)
        else:
            self._member()

    def _peek(self) -> int:
        self._at = _SPACE.match(self._buffer, self._at).end()  # type: ignore[union-attr] # matches the empty string
        if self._at >= len(self._buffer):
            raise Incomplete
        return self._buffer[self._at]

    def _document(self, byte: int) -> None:
        if self._base + self._at == 0 and byte == 0xEF:
            if len(self._buffer) < 3 and not self._final:
                raise Incomplete
            if self._buffer[:3] == b"\xef\xbb\xbf":
                self._at = 3
                return
        if byte not in (_OBJECT, _ARRAY):
            self._lose("trailing" if self._started else "not-json")
            return
        if self._started:
            self._note("trailing", self._at, 1, "another document begins")
        self._enter(byte, self._at + 1)

    def _enter(self, byte: int, at: int) -> None:
        self._open.append(byte)
        self._started, self._after_value, self._filled, self._at = True, False, False, at

    def _element(self, byte: int) -> None:
        if byte == _ARRAY and len(self._open) < _DEEPEST:
            self._note("nested", self._at, 1, "a list in the list of events")
            self._enter(byte, self._at + 1)
            return
        if byte != _OBJECT:
            self._lose("bad-event")
            return
        self._expect_comma()
        end = self._events.consume(self._buffer, self._at)
        if end == self._at:
            if not self._final and len(self._buffer) - end < _LONG_EVENT:
                raise Incomplete  # most likely it is only cut here: more bytes are cheaper than the reading below
            try:
                event = repaired(self._buffer, self._at, final=self._final)
            except Unreadable as error:
                self._lose(error.kind, behind=error.at)
                return
            self._events.add(event.json)
            self._note_repairs(event, "repaired")
            end = event.end
        self._at, self._after_value = end, True

    def _expect_comma(self) -> None:
        if self._after_value:
            self._note("separator", self._at, 0, "a comma is missing")
        self._after_value = False

    def _member(self) -> None:
        """One member of an object at the top: the way into the events, or a header value."""
        try:
            key = repaired_key(self._buffer, self._at, final=self._final)
            if key.json in _ONLY_IN_EVENTS:  # the list of events seemed to end too early
                self._lose("bad-event", in_events=True)
                return
            at = self._value_of(key)
            if key.json == _TRACE_EVENTS and self._buffer[at] == _ARRAY and len(self._open) < _DEEPEST:
                value = Repaired(b"", at + 1, [], nested=True)
            elif self._buffer[at] in b",}":
                value = Repaired(b"null", at, [("empty-value", at, 1)])
            else:
                inner = _TRACE_EVENTS if len(self._open) < _DEEPEST else b""
                value = repaired(self._buffer, at, final=self._final, nested_key=inner)
        except Unreadable as error:
            self._lose(error.kind, behind=error.at)
            return
        self._expect_comma()
        self._note_repairs(key)
        if value.nested:
            if self._buffer[at] == _OBJECT:
                self._note("nested", at, 1, "traceEvents a level too deep")
            self._enter(self._buffer[at], at + 1)
            return
        self._note_repairs(value)
        self.header.setdefault(msgspec.json.decode(key.json), _decoded(value.json))
        self._at, self._after_value = value.end, True

    def _value_of(self, key: Repaired) -> int:
        """Where the value of a key begins."""
        at = _SPACE.match(self._buffer, key.end).end()  # type: ignore[union-attr] # matches the empty string
        if at < len(self._buffer) and self._buffer[at] != 0x3A:
            raise Unreadable
        at = _SPACE.match(self._buffer, min(at + 1, len(self._buffer))).end()  # type: ignore[union-attr] # as above
        if at >= len(self._buffer):
            raise Incomplete
        return at

    def _lose(self, kind: str, *, in_events: bool = False, behind: int = -1) -> None:
        """What begins here cannot be understood: search for a place to resume, from `behind` on if that is farther."""
        excerpt = self._buffer[self._at : self._at + _EXCERPT]
        if len(excerpt) < _EXCERPT and not self._final:
            raise Incomplete
        in_object = bool(self._open) and self._open[-1] == _OBJECT
        in_events |= bool(self._open) and not in_object
        self._lost = _Lost(kind, self._base + self._at, excerpt, in_events)
        self._at = max(self._at, behind)
        if in_object:
            self._at += 1  # a member that cannot be read is not the place to resume

    def _resume(self, lost: "_Lost") -> None:
        match = _RESUME.search(self._buffer, self._at)
        if not match:
            if not self._final:
                self._at = max(self._at, len(self._buffer) - _LONGEST_MATCH)
            raise Incomplete
        at = match.start(match.lastgroup or 0)
        if lost.kind in ("cut", "not-json"):
            lost.kind = "bad-event"
        self._record_loss(at)
        wanted = _ARRAY if match.lastgroup == "event" else _OBJECT
        while self._open and self._open[-1] != wanted and wanted in self._open:
            self._open.pop()
        if not self._open:
            self._open.append(_OBJECT)
        if self._open[-1] != wanted:
            self._open.append(wanted)
        self._started, self._at, self._after_value, self._filled = True, at, False, True

    def _record_loss(self, end: int) -> None:
        lost, self._lost = self._lost, None
        if lost is None:
            return
        length = self._base + end - lost.offset
        if length:
            self.counts["dropped"] += lost.in_events
            self._note(lost.kind, lost.offset - self._base, length, lost.excerpt[:length].decode(errors="replace"))
        else:
            self._note("separator", end, 0, "an end is missing")
        self._at = end

    def _note_repairs(self, value: Repaired, count: str = "") -> None:
        for kind, at, length in sorted(value.repairs, key=itemgetter(1)):
            self._note(kind, at, length, self._buffer[at : min(at + _EXCERPT, value.end)].decode(errors="replace"))
        if count and value.repairs:
            self.counts[count] += 1

    def _note(self, kind: str, at: int, length: int, text: str) -> None:
        self.counts[f"damage:{kind}"] += 1
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(Damage(kind, self._base + at, length, text))


@dataclass
class _Lost:
    kind: str
    offset: int
    excerpt: bytes
    in_events: bool


def _decoded(json: bytes) -> Any:
    try:
        return msgspec.json.decode(json)
    except (msgspec.DecodeError, RecursionError):
        return json.decode(errors="replace")
