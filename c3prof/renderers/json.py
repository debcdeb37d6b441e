"""Report → JSON text: one object on one line."""

from collections.abc import Iterator

import msgspec

from c3prof.renderers.envelope import envelope
from c3prof.renderers.values import pieces, rows
from c3prof.table import Report, Table

_encode = msgspec.json.encode


def text(report: Report) -> str:
    """The report as one JSON object (docs/columns.md, `c3prof schema`), with a newline behind it. NaN is null."""
    return b"".join(parts(report)).decode()


def parts(report: Report) -> Iterator[bytes]:
    """The same text in parts, so that long tables need little memory."""
    outline = envelope(report)
    before = b"{"
    for name, value in outline.items():
        yield before + _encode(name) + b":"
        if name == "tables":
            yield from _tables(report, value)
        else:
            yield _encode(value)
        before = b","
    yield b"}\n"


def _tables(report: Report, outlines: dict[str, dict[str, object]]) -> Iterator[bytes]:
    before = b"{"
    for name, outline in outlines.items():
        yield before + _encode(name) + b":" + _encode(outline)[:-1] + b',"rows":['
        yield from _rows(report[name])
        yield b"]}"
        before = b","
    yield b"{}" if not outlines else b"}"


def _rows(table: Table) -> Iterator[bytes]:
    before = b""
    for piece in pieces(table):
        encoded = _encode(rows(piece))[1:-1]
        if encoded:
            yield before + encoded
            before = b","
