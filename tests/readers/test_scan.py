"""Hand-checkable files: what the scan keeps, what it repairs, what it drops and where."""

import json
from typing import Any

import numpy as np
import pytest

from c3prof.readers.scan import MISSING, Damage, Scan, scan

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


def test_columns_of_two_events() -> None:
    result = scanned(KERNEL, OP)
    assert result.events["ts_ns"].tolist() == [10_000, 1_000]
    assert result.events["dur_ns"].tolist() == [5_000, 2_000]
    assert names(result) == ["gemm", "aten::mm"]
    assert texts(result, result.events, "pid") == ["0", "42"]
    assert texts(result, result.events, "tid") == ["7", "42"]
    assert result.events["external_id"].tolist() == [-1, 9]
    assert result.events["correlation"].tolist() == [3, -1]
    assert {name: column.tolist() for name, column in result.device.items() if name in ("row", "device", "stream", "registers")} == {
        "row": [0], "device": [0], "stream": [7], "registers": [-1],
    }  # fmt: skip
    assert result.damage == ()
    assert result.header == {"schemaVersion": 1}
    assert result.counts == {"events": 2, "ph:X": 2, "python_function": 0, "dropped": 0, "repaired": 0}
    assert result.strings == sorted(set(result.strings))


@pytest.mark.parametrize(
    ("digits", "ns"),
    [
        ("0", 0), ("1", 1_000), ("-2", -2_000), ("1.5", 1_500), ("0.001", 1), ("-0.001", -1), ("1e3", 1_000_000), ("1.25E-2", 12),
        ("5200226329388.300", 5_200_226_329_388_300), ("1711964646000000.123", 1_711_964_646_000_000_123),
        ("8796093022207.999", 8_796_093_022_207_999), ("4503599627370.497", 4_503_599_627_370_497),
        ("0.0005", 0), ("0.0015", 2), ("0.0025", 2), ("0.00250000000000000000001", 3), ("2.0004999999999999999", 2_000),
        ("9223372036854775.807", 2**63 - 1), ("9223372036854775.808", MISSING), ("1e400", MISSING), ("1e-400", 0),
        ('"12.5"', 12_500), ('"twelve"', MISSING), ("null", MISSING), ("true", MISSING), ("[1]", MISSING),
    ],
)  # fmt: skip
def test_times_are_exact_to_the_ns(digits: str, ns: int) -> None:
    result = scanned(OP.replace(b'"ts":1,', b'"ts":' + digits.encode() + b","), OP)
    assert result.events["ts_ns"].tolist() == [ns, 1_000]
    result = scanned(OP.replace(b'"dur":2,', b'"dur":' + digits.encode() + b","), OP)
    assert result.events["dur_ns"].tolist() == [ns, 2_000]


def test_a_missing_dur_is_missing_and_a_negative_one_negative() -> None:
    assert scanned(OP.replace(b'"dur":2,', b""), OP.replace(b'"dur":2', b'"dur":-2')).events["dur_ns"].tolist() == [MISSING, -2_000]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("7", 7), ('"7"', 7), ("7.0", 7), ("7e0", 7), ("7.5", -1), ('"seven"', -1), ("null", -1), ("true", -1), ("-0", 0),
        (str(2**53 + 1), 2**53 + 1), (str(2**63), -(2**63)), (str(2**64 - 5), -5), (f'"{2**64 + 3}"', 3), ("1e19", -1), ("9" * 41, -1),
    ],
)  # fmt: skip
def test_ids_are_read_as_integers(value: str, number: int) -> None:
    result = scanned(OP.replace(b'"External id":9', b'"External id":' + value.encode()))
    assert result.events["external_id"].tolist() == [number]
    assert result.damage == ()


def test_old_keys_are_read_when_the_new_ones_are_absent() -> None:
    result = scanned(event(args={"external id": 5, "Input dims": [[1]]}), event(args={"External id": 6, "external id": 5}))
    assert result.events["external_id"].tolist() == [5, 6]
    assert texts(result, result.ops, "dims") == ["[[1]]"]


@pytest.mark.parametrize(
    ("args", "tid", "stream"),
    [
        ({"stream": 7}, 1, 7), ({"stream": "7"}, 1, 7), ({"stream": "stream 7"}, 1, 7), ({"stream": "0x10"}, 1, 16),
        ({"stream": 2**64 - 1}, 1, -1), ({"device": 0}, 13, 13), ({"device": 0}, "stream 9", 9), ({"stream": None, "device": 0}, "3", 3),
    ],
)  # fmt: skip
def test_the_stream_is_read_from_args_or_tid(args: dict[str, Any], tid: int | str, stream: int) -> None:
    assert one(args=args, tid=tid).device["stream"].tolist() == [stream]


def test_a_stream_that_is_other_text_is_told_apart_by_its_code() -> None:
    result = scanned(event(args={"stream": "copy queue"}), event(args={"stream": 1}), event(args={"stream": "copy queue"}))
    code = result.strings.index("copy queue")
    assert result.device["stream"].tolist() == [-1000 - code, 1, -1000 - code]


def test_the_device_is_read_from_args_or_pid() -> None:
    result = scanned(event(args={"stream": 1, "device": 3}, pid=9), event(args={"stream": 1}, pid=2), event(args={"stream": 1}, pid=None))
    assert result.device["device"].tolist() == [3, 2, MISSING]


def test_launch_configuration_and_copies() -> None:
    args = {
        "stream": 7, "grid": [1, 2, 3], "block": [4, 5, 6], "shared memory": 49152, "registers per thread": 32,
        "est. achieved occupancy %": 37.5, "graph id": 4, "graph node id": 5,
    }  # fmt: skip
    result = scanned(event(args=args), event(cat="gpu_memcpy", args={"stream": 8, "bytes": "4096", "kind": "PtoP"}))
    device = result.device
    assert texts(result, device, "grid") == ["[1,2,3]", None]
    assert texts(result, device, "block") == ["[4,5,6]", None]
    assert device["shared_memory"].tolist() == [49152, -1]
    assert device["registers"].tolist() == [32, -1]
    assert np.array_equal(device["occupancy"], [37.5, np.nan], equal_nan=True)
    assert device["bytes"].tolist() == [-1, 4096]
    assert device["graph"].tolist() == [4, -1]
    assert device["graph_node"].tolist() == [5, -1]
    assert texts(result, device, "copy_kind") == [None, "PtoP"]


def test_device_columns_are_read_for_device_categories_only() -> None:
    categories = [
        "kernel",
        "Kernel",
        "gpu_memcpy",
        "Memcpy",
        "gpu_memset",
        "Memset",
        "gpu_user_annotation",
        "cuda_sync",
        "cuda_runtime",
        "cpu_op",
    ]
    result = scanned(*(event(cat=category, args={"stream": 1}) for category in categories))
    assert result.device["row"].tolist() == list(range(8))


def test_what_operators_carry() -> None:
    args = {
        "Input Dims": [[2, 3], [], [[4]]], "Input type": ["float", "Scalar"], "Input Strides": [[3, 1]], "Concrete Inputs": ["", "1"],
        "Module Hierarchy": "top.Linear", "Call stack": "a;b",
    }  # fmt: skip
    result = scanned(
        event(name="aten::mm", args=args),
        event(name="record_param_comms", args=args),
        event(args={"Module Hierarchy": ""}),
        event(args={"Concrete Inputs": ["1"]}),
    )
    assert result.ops["row"].tolist() == [0, 1]
    assert texts(result, result.ops, "dims") == ["[[2,3],[],[[4]]]"] * 2
    assert texts(result, result.ops, "types") == ['["float","Scalar"]'] * 2
    assert texts(result, result.ops, "strides") == ["[[3,1]]"] * 2
    assert texts(result, result.ops, "concrete") == [None, '["","1"]']
    assert texts(result, result.ops, "module") == ["top.Linear"] * 2


def test_what_collectives_carry() -> None:
    args = {
        "Collective name": "allreduce", "dtype": "Float", "Process Group Name": "0", "Process Group Description": "dp",
        "Process Group Ranks": "[0, 1]", "In split size": "[]", "Out split size": [1, 2], "In msg nelems": 10, "Out msg nelems": "20",
        "Group size": 2, "Seq": 7, "Rank": 0, "Src Rank": 1, "Dst Rank": 0,
    }  # fmt: skip
    result = scanned(OP, event(args=args), event(args={"Rank": 0}))
    comm = result.comm
    assert comm["row"].tolist() == [1, 2]
    for column, text in {"collective": "allreduce", "dtype": "Float", "group": "0", "group_desc": "dp", "group_ranks": "[0, 1]"}.items():
        assert texts(result, comm, column) == [text, None]
    assert texts(result, comm, "in_split") == ["[]", None]
    assert texts(result, comm, "out_split") == ["[1,2]", None]
    numbers = ("in_elements", "out_elements", "group_size", "seq", "rank", "src_rank", "dst_rank")
    assert [comm[column].tolist() for column in numbers] == [[10, -1], [20, -1], [2, -1], [7, -1], [0, 0], [1, -1], [0, -1]]


def test_kept_and_counted_events() -> None:
    result = scanned(
        OP, event(ph="s", cat="ac2g"), event(ph="f"), event(ph="i"), event(ph="C", args={"free": 1, "used": [2, 3]}), event(ph="M", args={"name": "python"}),
        event(cat="python_function", name="forward"), event(cat="python_function", name="nn.Module: Linear_0"),
        b'{"name":"old","ts":1,"dur":2}', b'{"name":"no dur","ts":1}', b"{}",
    )  # fmt: skip
    assert names(result) == ["aten::mm", "k", "k", "nn.Module: Linear_0", "old"]
    assert texts(result, result.meta, "args") == ['{"free":1,"used":[2,3]}', '{"name":"python"}']
    assert result.meta["row"].tolist() == [1, 2]
    assert result.counts == {
        "events": 11, "ph:X": 3, "ph:s": 1, "ph:f": 1, "ph:i": 1, "ph:C": 1, "ph:M": 1, "ph:": 3, "python_function": 2, "dropped": 0, "repaired": 0,
    }  # fmt: skip


def test_pids_are_texts_and_numbers_alike() -> None:
    result = scanned(*(event(pid=pid, tid="t") for pid in (7, "7", 7.0, -1, "Spans", None, 2**70)))
    assert texts(result, result.events, "pid") == ["7", "7", "7", "-1", "Spans", None, str(2**70)]


def test_names_of_other_types_are_their_compact_json() -> None:
    result = scanned(*(event(name=name) for name in (5, None, True, {"a": [1, 2]}, "ok")))
    assert names(result) == ["5", None, "true", '{"a":[1,2]}', "ok"]


def test_escapes_are_read() -> None:
    assert names(scanned(OP.replace(b"aten::mm", rb"a\"b\\c\/d\n\u00e9\ud83d\ude00"))) == ['a"b\\c/d\né😀']


@pytest.mark.parametrize("space", ["", " ", "\n  ", " \r\n\t"])
def test_whitespace_does_not_matter(space: str) -> None:
    events = [json.loads(KERNEL), json.loads(OP)] * 40
    text = json.dumps({"traceEvents": events}, separators=(space + "," + space, space + ":" + space))
    result = scan([text.replace("}", space + "}").replace("{", "{" + space).replace("]", space + "]").encode()])
    assert names(result) == ["gemm", "aten::mm"] * 40
    assert result.damage == ()


def test_what_looks_like_the_end_of_an_event_inside_one() -> None:
    tricky = [event(name='}, {"ph": "X"'), event(args={"list": [{"a": 1}, {"b": 2}], "text": "}\n,\n{"}), event(name='\\"}, {"')]
    result = scanned(*tricky * 50)
    assert names(result) == ['}, {"ph": "X"', "k", '\\"}, {"'] * 50
    assert result.damage == ()


def test_the_array_form() -> None:
    result = scan([b" [\n" + KERNEL + b" ,\n" + OP + b"\n]\n"])
    assert names(result) == ["gemm", "aten::mm"]
    assert result.damage == ()


def test_header_before_and_behind_the_events() -> None:
    head, tail = b'"deviceProperties":[{"id":0}],', b',"baseTimeNanoseconds":1711964646000000000,"schemaVersion":2,"traceName":"a\\"b"'
    result = scanned(OP, head=head, tail=tail)
    assert result.header == {
        "schemaVersion": 1, "deviceProperties": [{"id": 0}], "baseTimeNanoseconds": 1711964646000000000, "traceName": 'a"b',
    }  # fmt: skip


def test_a_byte_order_mark_is_no_damage() -> None:
    assert scan([b"\xef\xbb\xbf[" + OP + b"]"]).damage == ()


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
