"""Properties of the scan on damaged bytes: it never raises, costs only what is damaged, and does not depend on blocks or speed."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.readers._document import Document
from c3prof.readers._pieces import PythonEvents
from c3prof.readers.scan import Scan, scan, scan_of

EVENTS = [
    {"ph": "X", "cat": "kernel", "name": "gemm<{1}>", "pid": 0, "tid": 7, "ts": 10.5, "dur": 5, "args": {"stream": 7, "grid": [1, 2, 3]}},
    {"ph": "X", "cat": "cpu_op", "name": 'c10d::"a" \\ é', "pid": 42, "tid": "main", "ts": 11, "dur": 2.125, "args": {"Input Dims": [[], [2, 3]]}},
    {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "args": {"name": "python"}},
    {"ph": "X", "cat": "kernel", "name": "nccl", "pid": 0, "tid": 9, "ts": 12, "dur": 1, "args": {"Collective name": "send", "Seq": 5, "stream": 9}},
]  # fmt: skip
PIECES = [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() for event in EVENTS]
HEAD, TAIL = b'{"schemaVersion":1,"traceEvents":[', b'],"traceName":"t"}'
GOOD = HEAD + b",".join(PIECES) + TAIL
PRETTY = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS * 3, "traceName": "t"}, indent=2).encode()


class EventByEvent(PythonEvents):
    """Every event through the tolerant reader: what the fast way must equal."""

    def consume(self, buffer: bytes, start: int) -> int:  # noqa: ARG002 - nothing is consumed
        return start


def read_with(events: PythonEvents, text: bytes, size: int = 1 << 22) -> Scan:
    """The scan with the buffer extended after every `size` bytes."""
    document = Document(events, block=size, begin=size // 2)
    document.read(text[at : at + size] for at in range(0, len(text), size))
    return scan_of(document, events)


def slowly(text: bytes) -> Scan:
    return read_with(EventByEvent(), text)


def in_blocks(text: bytes, size: int) -> Scan:
    return read_with(PythonEvents(), text, size)


def assert_same(one: Scan, other: Scan) -> None:
    for table in ("events", "ops", "device", "comm", "meta"):
        left, right = getattr(one, table), getattr(other, table)
        assert left.keys() == right.keys()
        for name, column in left.items():
            assert column.dtype == right[name].dtype, name
            assert np.array_equal(column, right[name], equal_nan=column.dtype == float), (table, name)
    assert one.strings == other.strings
    assert one.header == other.header
    assert one.damage == other.damage
    assert one.counts == other.counts


def rows(result: Scan) -> list[tuple[object, ...]]:
    """Every kept event as comparable values."""
    texts = [*result.strings, None]
    text_columns = ("ph", "cat", "name", "pid", "tid")
    return [
        (*(texts[result.events[c][i]] for c in text_columns), *(int(result.events[c][i]) for c in ("ts_ns", "dur_ns")))
        for i in range(len(result.events["ts_ns"]))
    ]


WHOLE = rows(scan([GOOD]))


@pytest.mark.parametrize("byte", b'"\\{}[],: x0\xff\x00')
def test_one_wrong_byte_costs_at_most_its_own_event(byte: int) -> None:
    start = len(HEAD + PIECES[0]) + 1
    for at in range(start, start + len(PIECES[1])):
        text = GOOD[:at] + bytes([byte]) + GOOD[at + 1 :]
        result = scan([text])
        kept = rows(result)
        assert kept[0] == WHOLE[0], at
        assert kept[-2:] == WHOLE[2:], at
        assert len(kept) <= 4
        assert result.header == {"schemaVersion": 1, "traceName": "t"}, at
        if at % 7 == 0:
            assert_same(result, slowly(text))


damaged = st.builds(
    lambda text, cuts: b"".join(
        piece for at, length, new in cuts for piece in (text[at % len(text) : at % len(text) + length], new)
    ),
    st.sampled_from([GOOD, PRETTY, HEAD + b",".join(PIECES) + b"]"]),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 800), st.binary(max_size=3) | st.sampled_from([b'"', b"}", b"nan", b",", b"]}", b"[{"])), max_size=5),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(damaged, st.integers(1, 97) | st.integers(98, 2000))
def test_any_splice_reads_the_same_in_any_blocks(text: bytes, size: int) -> None:
    assert_same(scan([text]), in_blocks(text, size))


@settings(max_examples=80, deadline=None)
@given(damaged)
def test_any_splice_reads_the_same_event_by_event(text: bytes) -> None:
    assert_same(scan([text * 3]), slowly(text * 3))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_scan(text: bytes) -> None:
    assert_same(scan([text]), in_blocks(text, 3))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(PRETTY)), st.integers(1, 30), st.binary(max_size=30))
def test_damage_is_within_the_file_and_in_order(at: int, length: int, new: bytes) -> None:
    text = PRETTY[:at] + new + PRETTY[at + length :]
    offsets = [damage.offset for damage in scan([text]).damage if damage.kind != "empty"]
    assert all(0 <= damage.offset <= damage.offset + damage.length <= len(text) for damage in scan([text]).damage)
    assert offsets == sorted(offsets)


def test_real_files_read_the_same_event_by_event(shared_traces: Path) -> None:
    for name in ("cuda_event_sync", "mi250_no_distributed_info", "gloo/tp_2r_rank0", "vllm_decode_graph_replay"):
        text = gzip.decompress((shared_traces / f"{name}.json.gz").read_bytes())
        result = scan([text])
        assert result.damage == ()
        assert_same(result, slowly(text))
        assert_same(result, in_blocks(text, 10_007))
