"""Hand-checkable damage: what the scan repairs, what it drops, and where it says that it was."""

import pytest

from c3prof.readers.scan import MISSING, Damage, scan
from tests.readers.scans import HEAD, KERNEL, OP, event, kinds, names, scanned, texts

# --- repairs: the event stays -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name", "kind", "first", "length"),
    [
        (rb"C:\python\temp", "C:\\python\\temp", "bad-escape", 2, 1),
        (rb"\\srv\path \"q\" \u0041", '\\\\srv\\path "q" \\u0041', "bad-escape", 5, 1),
        (rb"a\ud800b", "a\ufffdb", "bad-escape", 1, 1),
        (rb"\udc00\ud800", "\ufffd\ufffd", "bad-escape", 0, 2),
        (b"a\nb\x00c", "a\nb\x00c", "control-byte", 1, 2),
        (b"caf\xe9 \xff", "caf\ufffd \ufffd", "bad-utf8", 3, 2),
        (b"a\xe2\x82", "a\ufffd", "bad-utf8", 1, 1),
    ],
)
def test_strings_are_repaired(written: bytes, name: str, kind: str, first: int, length: int) -> None:
    result = scanned(OP, OP.replace(b"aten::mm", written), OP)
    assert names(result) == ["aten::mm", name, "aten::mm"]
    start = len(HEAD + OP + b",") + OP.index(b"aten::mm")
    assert [(d.kind, d.offset, d.length) for d in result.damage] == [(kind, start + first, length)]
    assert result.counts["repaired"] == 1
    assert result.counts["dropped"] == 0


def test_legal_escapes_after_an_illegal_one_are_backslashes_too() -> None:
    assert names(scanned(OP.replace(b"aten::mm", rb"C:\python\new"))) == ["C:\\python\\new"]


@pytest.mark.parametrize("word", ["nan", "inf", "NaN", "Infinity", "-Infinity", "-nan", "+inf"])
def test_a_bare_word_for_no_number_is_absent(word: str) -> None:
    text = OP.replace(b'"dur":2', b'"dur":' + word.encode())
    result = scanned(text)
    assert result.events["dur_ns"].tolist() == [MISSING]
    assert result.damage == (Damage("bare-number", len(HEAD) + text.index(b'"dur":') + 6, len(word), result.damage[0].text),)


def test_an_empty_value_is_absent() -> None:
    result = scanned(event(args={"Process Group Description": "X", "Seq": 4}).replace(b'"X", "Seq"', b' , "Seq"'))
    assert texts(result, result.comm, "group_desc") == [None]
    assert result.comm["seq"].tolist() == [4]
    assert kinds(result) == ["empty-value"]


@pytest.mark.parametrize("written", [b'dur":2', b"dur:2", b"dur :2"])
def test_a_key_without_its_quote_is_read(written: bytes) -> None:
    result = scanned(OP.replace(b'"dur":2', written))
    assert result.events["dur_ns"].tolist() == [2_000]
    assert kinds(result) == ["unquoted-key"]


@pytest.mark.parametrize(
    ("text", "offset", "length"),
    [
        (b"[" + OP + b",," + OP + b"]", len(OP) + 2, 1),
        (b"[" + OP + b" " + OP + b"]", len(OP) + 2, 0),
        (b"[," + OP + b"," + OP + b"]", 1, 1),
        (b"[" + OP + b"," + OP + b" , ]", 2 * len(OP) + 5, 0),
    ],
)
def test_commas_between_events(text: bytes, offset: int, length: int) -> None:
    result = scan([text])
    assert names(result) == ["aten::mm", "aten::mm"]
    assert [(d.kind, d.offset, d.length) for d in result.damage] == [("separator", offset, length)]


# --- dropped: the rest is used ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        OP.replace(b"aten::mm", b'say "hi" now'),
        OP.replace(b'"ts":1', b'"ts":0x1'),
        OP.replace(b'"ts":1', b'"ts":01'),
        OP.replace(b'"ts":1', b'"ts":1 2'),
        OP.replace(b'"dur":2,', b'"dur":2'),
        OP.replace(b'"name":', b'"name"'),
        OP.replace(b'{"External id":9}', b'{"External id":9]'),
        OP.replace(b'{"External id":9}', b'{"External id":9'),
        OP[:40],
        OP[40:],
        b"7",
        b'"text"',
        b"}{",
    ],
)
def test_one_bad_event_among_others_is_dropped(bad: bytes) -> None:
    result = scanned(KERNEL, bad, OP, OP, tail=b',"traceName":"t"')
    assert names(result) == ["gemm", "aten::mm", "aten::mm"]
    start = len(HEAD + KERNEL + b",")
    assert [(d.kind, d.offset, d.length) for d in result.damage] == [("bad-event", start, len(bad) + 1)]
    assert result.counts["dropped"] == 1
    assert result.header["traceName"] == "t"


def test_a_bad_last_event_does_not_hide_what_follows_the_events() -> None:
    result = scanned(OP, OP[:40], tail=b',"baseTimeNanoseconds":5')
    assert names(result) == ["aten::mm"]
    assert result.header["baseTimeNanoseconds"] == 5
    assert kinds(result) == ["bad-event"]


def test_values_nested_deeper_than_64_are_dropped() -> None:
    deep, deeper = (OP.replace(b'"External id":9', b'"x":' + b"[" * n + b"]" * n) for n in (62, 63))
    result = scanned(KERNEL, deep, deeper, OP)
    assert names(result) == ["gemm", "aten::mm", "aten::mm"]
    assert kinds(result) == ["deep"]
    assert result.counts["dropped"] == 1


def test_a_million_brackets_end_in_a_report() -> None:
    assert kinds(scan([b"[" * 1_000_000])) == ["nested"] * 7 + ["bad-event", "empty"]
    assert kinds(scan([b'{"a":' * 100_000])) == ["deep", "empty"]


# --- cut --------------------------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_gives_the_events_before() -> None:
    whole = b'{"schemaVersion":1,"traceEvents":[' + KERNEL + b"," + OP + b'],"traceName":"t"}'
    ends = [whole.index(KERNEL) + len(KERNEL), whole.index(OP) + len(OP)]
    for length in range(1, len(whole)):
        result = scan([whole[:length]])
        assert names(result) == ["gemm", "aten::mm"][: sum(length >= end for end in ends)]
        assert kinds(result)[0] == "cut", length
        assert result.damage[0].offset + result.damage[0].length == length


def test_an_empty_file_says_so() -> None:
    for blocks in ([], [b""], [b" \n"]):
        result = scan(blocks)
        assert len(result.events["ts_ns"]) == 0
        assert kinds(result) == ["empty"]


@pytest.mark.parametrize("text", [b"hello world", b"\x1f\x8b\x08\x00junk", b"<html></html>", b"rank,time\n0,1\n" * 100])
def test_what_is_no_json_says_so(text: bytes) -> None:
    result = scan([text])
    assert [(d.kind, d.offset, d.length) for d in result.damage] == [("not-json", 0, len(text)), ("empty", 0, 0)]


def test_a_file_without_its_head_is_used_from_its_first_event() -> None:
    result = scan([KERNEL[30:] + b"," + OP + b"]}"])
    assert names(result) == ["aten::mm"]
    assert kinds(result) == ["bad-event"]


# --- nested and trailing ----------------------------------------------------------------------------------------------


def test_events_a_level_too_deep_are_found() -> None:
    for text in (
        b'{"x":{"traceEvents":[' + OP + b'],"rank":3},"y":1}',
        b'{"x":{"rank":3,"traceEvents":[' + OP + b']},"y":1}',
    ):
        result = scan([text])
        assert names(result) == ["aten::mm"]
        assert result.header == {"rank": 3, "y": 1}
        assert kinds(result) == ["nested"]
    result = scan([b'{"traceEvents":[[' + OP + b"]," + b"[" + KERNEL + b'],[]],"y":1}'])
    assert names(result) == ["aten::mm", "gemm"]
    assert result.header == {"y": 1}
    assert kinds(result) == ["nested"] * 3


def test_a_second_document_is_read_too() -> None:
    text = b'{"rank":0,"traceEvents":[' + OP + b"]}"
    result = scan([text + b"\n" + text.replace(b'"rank":0', b'"rank":1')])
    assert names(result) == ["aten::mm", "aten::mm"]
    assert result.header == {"rank": 0}
    assert [(d.kind, d.offset) for d in result.damage] == [("trailing", len(text) + 1)]


def test_bytes_behind_the_end_are_named() -> None:
    text = b"[" + OP + b"]"
    result = scan([text + b" \x00\x00\x00"])
    assert names(result) == ["aten::mm"]
    assert [(d.kind, d.offset, d.length) for d in result.damage] == [("trailing", len(text) + 1, 3)]


def test_a_broken_header_value_does_not_hide_the_next_one() -> None:
    result = scanned(OP, head=b'"distributedInfo":{"rank":"a"b"},"baseTimeNanoseconds":7,')
    assert result.header == {"schemaVersion": 1, "baseTimeNanoseconds": 7}
    assert names(result) == ["aten::mm"]
    assert kinds(result) == ["bad-event"]


def test_at_most_a_thousand_damages_are_kept_and_all_are_counted() -> None:
    result = scanned(*[OP.replace(b"aten::mm", b"a\\pb")] * 1500)
    assert len(result.damage) == 1000
    assert result.counts["damage:bad-escape"] == result.counts["repaired"] == 1500
    assert result.events["ts_ns"].tolist() == [1_000] * 1500


def test_no_events_is_said() -> None:
    assert kinds(scan([b'{"traceEvents":[]}'])) == ["empty"]
    assert kinds(scan([b'{"traceEvents":null}'])) == ["empty"]
    assert kinds(scan([b"{}"])) == ["empty"]
