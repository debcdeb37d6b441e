"""Small scans for tests: bytes of events in, texts and kinds out."""

import json
from typing import Any

from c3prof.readers.scan import Scan, scan

KERNEL = b'{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":5,"args":{"device":0,"stream":7,"correlation":3}}'
OP = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":42,"tid":42,"ts":1,"dur":2,"args":{"External id":9}}'

HEAD = b'{"schemaVersion":1,"traceEvents":['


def scanned(*events: bytes, head: bytes = b"", tail: bytes = b"") -> Scan:
    return scan([b'{"schemaVersion":1,' + head + b'"traceEvents":[' + b",".join(events) + b"]" + tail + b"}"])


def names(result: Scan) -> list[str | None]:
    return [result.strings[code] if code >= 0 else None for code in result.events["name"]]


def texts(result: Scan, table: dict[str, Any], column: str) -> list[str | None]:
    return [result.strings[code] if code >= 0 else None for code in table[column]]


def kinds(result: Scan) -> list[str]:
    return [damage.kind for damage in result.damage]


def event(**fields: Any) -> bytes:
    return json.dumps({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1} | fields).encode()


def one(**fields: Any) -> Scan:
    return scanned(event(**fields))
