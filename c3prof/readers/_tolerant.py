r"""One JSON value of a damaged file, repaired where its meaning is plain: what the scans mean by damage.

    value  := object | array | string | bare
    object := '{' '}' | '{' member (',' member)* [','] '}'
    member := key ':' [value]               a missing value is null (empty-value)
    key    := string | name ['"']           name: [A-Za-z_][A-Za-z0-9_ .%()/-]{0,63}  (unquoted-key)
    array  := '[' ']' | '[' [value] (',' [value])* ']'                                (empty-value)
    bare   := true | false | null | number | nan | inf | infinity, signed, any case, which is null (bare-number)
    string := '"' (byte except '"' and '\' | '\' byte)* '"'

A bare word is the longest run of letters, digits and + - . _ ; whitespace is space, tab, CR, LF; depth is at most 64.
In a string
- one illegal escape tells that its writer escaped nothing but quotes: every backslash is one, except before '"' (bad-escape);
- otherwise half of a surrogate pair is U+FFFD (bad-escape);
- bytes below 0x20 stand for themselves (control-byte);
- bytes that are not UTF-8 become U+FFFD as Python's "replace" does (bad-utf8).
A comma before '}' is dropped (empty-value). Anything else that does not fit is an error at the byte where it shows.
"""

import re
from dataclasses import dataclass

from c3prof.readers._values import NUMBER

DEEPEST = 64
_LONGEST_KEY = 80

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SAFE = re.compile(rb'"[\x20\x21\x23-\x5b\x5d-\x7f]*"')
_WS = rb"[ \t\r\n]*"
_SCALAR = rb'(?:"[\x20\x21\x23-\x5b\x5d-\x7f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)'
_ARRAY = rb"\[" + _WS + rb"(?:" + _SCALAR + rb"(?:" + _WS + rb"," + _WS + _SCALAR + rb")*" + _WS + rb")?\]"
_PLAIN_MEMBER = re.compile(
    rb'"[\x20\x21\x23-\x5b\x5d-\x7f]*"' + _WS + rb":" + _WS + rb"(?:" + _SCALAR + rb"|" + _ARRAY + rb")(?=[ \t\r\n,}])"
)
"""A whole member without damage: what _member and _one would find, at once."""
_NAME = re.compile(rb'([A-Za-z_][A-Za-z0-9_ .%()/-]{0,63})"?[ \t\r\n]{0,8}(?=:)')
_BARE = re.compile(rb"[A-Za-z0-9+\-._]+")
_NO_NUMBER = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_PAIR = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LEGAL = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATES = re.compile(rb"(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..|\\.", re.DOTALL)


class Incomplete(Exception):
    """The value goes on after the bytes at hand."""


class Unreadable(Exception):
    """The value cannot be understood. kind: bad-event, or deep with the position where it is."""

    def __init__(self, kind: str = "bad-event", at: int = -1) -> None:
        super().__init__(kind)
        self.kind, self.at = kind, at


@dataclass
class Repaired:
    """Valid JSON in place of a value, where the value ends, and what was repaired: (kind, position, length)."""

    json: bytes
    end: int
    repairs: list[tuple[str, int, int]]
    nested: bool = False


def repaired(buffer: bytes, start: int, *, final: bool, nested_key: bytes = b"") -> Repaired:
    """The value that starts at buffer[start], as valid JSON.

    final: no bytes follow the buffer. nested_key: stop at once, with nested set, when the value is an object
    of which this key holds an array. Raises Incomplete and Unreadable.
    """
    return _Reading(buffer, start, final, nested_key).value()


def repaired_key(buffer: bytes, start: int, *, final: bool) -> Repaired:
    """The key at buffer[start] as a JSON string. Raises Incomplete and Unreadable."""
    reading = _Reading(buffer, start, final, b"")
    key = reading.key()
    return Repaired(key, reading.at, reading.repairs)


class _Reading:
    def __init__(self, buffer: bytes, start: int, final: bool, nested_key: bytes) -> None:
        self.buffer, self.at, self.final, self.nested_key = buffer, start, final, nested_key
        self.out: list[bytes] = []
        self.repairs: list[tuple[str, int, int]] = []
        self.open: list[int] = []
        self.ended = False
        self.nested = False

    def value(self) -> Repaired:
        self._one()
        while self.open and not self.nested:
            byte = self._peek()
            if byte == self.open[-1] + 2:
                self._close()
            elif self.ended:
                if byte != 0x2C:
                    raise Unreadable
                self.at += 1
                self.ended = False
            elif self.open[-1] == 0x7B:
                self._member()
            else:
                self._item(byte)
        return Repaired(b"".join(self.out), self.at, self.repairs, self.nested)

    def _peek(self) -> int:
        self.at = _SPACE.match(self.buffer, self.at).end()  # type: ignore[union-attr] # matches the empty string
        if self.at >= len(self.buffer):
            raise Incomplete
        return self.buffer[self.at]

    def _close(self) -> None:
        """The end of what is open; a comma before it is dropped in an object and followed by null in an array."""
        if not self.ended and not self._fresh():
            self.repairs.append(("empty-value", self.at, 1))
            if self.open[-1] == 0x5B:
                self.out.append(b",null")
        self.out.append(self.buffer[self.at : self.at + 1])
        self.open.pop()
        self.at += 1
        self.ended = True

    def _fresh(self) -> bool:
        return self.out[-1] in (b"{", b"[")

    def _member(self) -> None:
        comma = b"" if self._fresh() else b","
        plain = _PLAIN_MEMBER.match(self.buffer, self.at) if len(self.open) < DEEPEST else None
        if plain and not (self.nested_key and plain[0].startswith(self.nested_key)):
            self.out.append(comma + plain[0])
            self.at, self.ended = plain.end(), True
            return
        key = self.key()
        if self._peek() != 0x3A:
            raise Unreadable
        self.at += 1
        self.out.append(comma + key + b":")
        byte = self._peek()
        if byte in b",}":
            self._empty()
        elif len(self.open) == 1 and key == self.nested_key and byte == 0x5B:
            self.nested = True
        else:
            self._one()

    def key(self) -> bytes:
        return self._string() if self._peek() == 0x22 else self._name()

    def _item(self, byte: int) -> None:
        if not self._fresh():
            self.out.append(b",")
        if byte == 0x2C:
            self._empty()
        else:
            self._one()

    def _empty(self) -> None:
        self.repairs.append(("empty-value", self.at, 1))
        self.out.append(b"null")
        self.ended = True

    def _one(self) -> None:
        """A whole scalar, or the opening of an object or array."""
        byte = self._peek()
        self.ended = byte not in b"{["
        if self.ended:
            self.out.append(self._string() if byte == 0x22 else self._bare())
            return
        if len(self.open) == DEEPEST:
            raise Unreadable("deep", self.at)
        self.open.append(byte)
        self.out.append(self.buffer[self.at : self.at + 1])
        self.at += 1

    def _bare(self) -> bytes:
        match = _BARE.match(self.buffer, self.at)
        if not match:
            raise Unreadable
        if match.end() == len(self.buffer):
            raise Incomplete
        word, start = match[0], self.at
        self.at = match.end()
        if word in (b"true", b"false", b"null") or NUMBER.fullmatch(word):
            return word
        if not _NO_NUMBER.fullmatch(word):
            raise Unreadable
        self.repairs.append(("bare-number", start, len(word)))
        return b"null"

    def _name(self) -> bytes:
        if len(self.buffer) - self.at < _LONGEST_KEY and not self.final:
            raise Incomplete
        match = _NAME.match(self.buffer, self.at)
        if not match:
            raise Unreadable
        name = match[1].rstrip(b" ")
        self.repairs.append(("unquoted-key", self.at, len(name)))
        self.at = match.end()
        return b'"' + name + b'"'

    def _string(self) -> bytes:
        match = _STRING.match(self.buffer, self.at)
        if not match:
            raise Incomplete
        start, self.at = self.at, match.end()
        return match[0] if _SAFE.fullmatch(match[0]) else self._mended(match[0], start)

    def _mended(self, text: bytes, start: int) -> bytes:
        """A string with its escapes, control bytes and UTF-8 made legal."""
        illegal = [pair.start() for pair in _PAIR.finditer(text) if not _LEGAL.fullmatch(pair[0])]
        if illegal:
            self.repairs.append(("bad-escape", start + illegal[0], len(illegal)))
            text = _PAIR.sub(lambda pair: pair[0] if pair[0] == b'\\"' else pair[0].replace(b"\\", b"\\\\"), text)
        else:
            halves = [m.start() for m in _SURROGATES.finditer(text) if m[1] is None and len(m[0]) == 6]
            if halves:
                self.repairs.append(("bad-escape", start + halves[0], len(halves)))
                text = _SURROGATES.sub(lambda m: rb"\ufffd" if m[1] is None and len(m[0]) == 6 else m[0], text)
        original = self.buffer[start : self.at]
        if controls := [m.start() for m in _CONTROL.finditer(original)]:
            self.repairs.append(("control-byte", start + controls[0], len(controls)))
            text = _CONTROL.sub(lambda m: rb"\u%04x" % m[0][0], text)
        return self._utf8(text, original, start)

    def _utf8(self, text: bytes, original: bytes, start: int) -> bytes:
        try:
            original.decode()
        except UnicodeDecodeError as error:
            replaced = original.decode(errors="replace").count("\ufffd") - original.count("\ufffd".encode())
            self.repairs.append(("bad-utf8", start + error.start, replaced))
            return text.decode(errors="replace").encode()
        return text
