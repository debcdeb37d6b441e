"""Report → JSON text: one object on one line."""

import msgspec

from c3prof.renderers.envelope import envelope
from c3prof.table import Report


def text(report: Report) -> str:
    """The report as one JSON object (docs/columns.md, `c3prof schema`), with a newline behind it. NaN is null."""
    return msgspec.json.encode(envelope(report)).decode() + "\n"
