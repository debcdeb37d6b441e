"""Hand-checkable files: what the scan keeps of whole events, and how it reads their values."""

import json
from typing import Any

import numpy as np
import pytest

from c3prof.readers.scan import MISSING, scan
from tests.readers.scans import KERNEL, OP, event, names, one, scanned, texts


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
