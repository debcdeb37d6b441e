"""What one JSON value of an event means as a number: the definitions that every scan follows.

All functions take the text of a value and are exact: they work on digits, not on float64.
"""

import math
import re

import msgspec

MISSING = -(2**63)
"""What an int64 time, device or stream holds when it is absent or no number."""

NONE = -1
"""What an id, a count or a string code holds when there is none."""

NUMBER = re.compile(rb"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_LANE = re.compile(r"(?:stream|device|gpu) ?([0-9]{1,40})", re.IGNORECASE | re.ASCII)
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,40}")
_LONGEST_ID = 40
_TEXT = msgspec.json.Decoder(str)


def plain_text(value: bytes) -> str:
    """The characters of a JSON string; the compact JSON of any other value."""
    return _TEXT.decode(value) if value[:1] == b'"' else compact_json(value)


_PARTS = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')


def compact_json(value: bytes) -> str:
    """Valid JSON text without the whitespace outside its strings."""
    return _PARTS.sub(lambda part: part[0] if part[0][:1] == b'"' else b"", value).decode()


def number_text(value: bytes) -> bytes:
    """The digits of a JSON number, or of a string that holds nothing but a number; b"" otherwise."""
    text = plain_text(value).encode() if value[:1] == b'"' else value
    return text if NUMBER.fullmatch(text) else b""


def int64_of(text: bytes) -> int | None:
    """The integer that a number's text means, wrapped to int64 (mod 2**64); None when it is not integral.

    Text in float syntax counts when its float64 is integral and inside int64. More than 40 digits are no id.
    """
    if not text:
        return None
    if text.lstrip(b"-").isdigit():
        return wrapped(int(text)) if len(text) <= _LONGEST_ID else None
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2.0**63 else None


def wrapped(number: int) -> int:
    """The int64 with the same lowest 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def ns_of(text: bytes) -> int:
    """Exact decimal µs as ns, rounded half to even; MISSING when text is empty or beyond int64."""
    match = NUMBER.fullmatch(text)
    if not match:
        return MISSING
    sign, whole, decimals, exponent = match.group(1), match.group(2), match.group(3) or b"", match.group(4) or b"0"
    digits = whole + decimals
    point = len(whole) + _bounded(exponent) + 3
    stripped = digits.lstrip(b"0")
    point -= len(digits) - len(stripped)
    if not stripped or point < 0:
        return 0
    if point > 19:
        return MISSING
    ns = int(stripped[:point].ljust(point, b"0") or b"0")
    rest = stripped[point:].rstrip(b"0")
    ns += rest > b"5" or (rest == b"5" and ns % 2 == 1)
    return MISSING if ns >= 2**63 else -ns if sign else ns


def _bounded(exponent: bytes) -> int:
    digits = exponent.lstrip(b"+-").lstrip(b"0") or b"0"
    size = int(digits) if len(digits) <= 9 else 10**9
    return -size if exponent[:1] == b"-" else size


def lane_of(text: str) -> int | None:
    """The device or stream number in a text: 7, "7", "stream 7", "GPU 7", "0x10"; None for other text."""
    number = int64_of(text.encode()) if NUMBER.fullmatch(text.encode()) else None
    if number is not None:
        return number
    if named := _LANE.fullmatch(text):
        return wrapped(int(named.group(1)))
    return wrapped(int(text, 16)) if _HEX.fullmatch(text) else None


def float_of(text: bytes) -> float:
    """The float64 of a number's text; NaN when it is none or not finite."""
    value = float(text) if text else math.nan
    return value if math.isfinite(value) else math.nan


def id_text(value: bytes) -> str:
    """The text that names a process or thread: 7, 7.0 and "7" are the same."""
    if NUMBER.fullmatch(value) and len(value) <= _LONGEST_ID:
        number = float(value)
        if value.lstrip(b"-").isdigit():
            return str(int(value))
        if number.is_integer():
            return str(int(number))
    return plain_text(value)
