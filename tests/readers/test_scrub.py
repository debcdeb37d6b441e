"""scrub: nothing personal is left, and every number is the same."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c3prof import cli
from c3prof.readers.scrub import Pseudonyms, learned, scrubbed
from tests.kineto_files import annotation, document, kernel, launched, nccl, op, written


def clean(text, size=7, names=None):
    data = text if isinstance(text, bytes) else text.encode()
    blocks = [data[i : i + size] for i in range(0, len(data), size)]
    names = learned(blocks, names or Pseudonyms())
    return b"".join(scrubbed(blocks, names))


PERSONAL = {
    "host_name": "node-17.cluster.example.com",
    "traceName": "/home/alice/runs/trace.json",
    "traceEvents": [
        {
            "ph": "X",
            "cat": "python_function",
            "name": "/home/alice/train.py(12): main",
            "ts": 1.001,
            "dur": 2,
            "args": {"Call stack": "a.py(1): b;/x/y"},
        },
        {"ph": "X", "cat": "user_annotation", "name": "load C:\\Users\\bob\\data\\x.bin", "ts": 2, "dur": 1, "args": {}},
        {"ph": "X", "cat": "user_annotation", "name": "node-17: step of alice", "ts": 2, "dur": 1, "args": {"user": "carol"}},
        {
            "ph": "X",
            "cat": "kernel",
            "name": "void at::native::reduce_kernel<512, 1>(a / b)",
            "ts": 3,
            "dur": 1,
            "args": {"Input Dims": [[1, 2]]},
        },
        {"ph": "X", "cat": "user_annotation", "name": "mail alice@example.com at 10.1.2.3", "ts": 2, "dur": 1},
        {"ph": "X", "cat": "user_annotation", "name": "~/secret/dir and \\\\server\\share\\x", "ts": 2, "dur": 1},
    ],
}


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}], ids=["plain", "pretty", "minified"])
@pytest.mark.parametrize("size", [3, 64, 10**6])
def test_nothing_personal_is_left(layout, size):
    found = clean(json.dumps(PERSONAL, **layout), size).decode()
    for word in (
        "alice",
        "bob",
        "carol",
        "node-17",
        "cluster",
        "example",
        "10.1.2.3",
        "/home",
        "Users",
        "secret",
        "server",
        "train.py",
        "a.py",
    ):
        assert word not in found, word
    events = json.loads(found)["traceEvents"]
    assert events[3] == PERSONAL["traceEvents"][3]
    assert events[2]["name"] == "host-1: step of user-1"
    assert [event["ts"] for event in events] == [event["ts"] for event in PERSONAL["traceEvents"]]


def test_equal_texts_stay_equal_and_different_ones_different():
    names = ["/a/b/one", "/a/b/two", "/a/b/one"]
    found = json.loads(clean(json.dumps([{"name": name} for name in names])))
    assert [event["name"] for event in found] == ["<path 1>", "<path 2>", "<path 1>"]


def test_hosts_are_told_apart_over_the_files_of_a_run():
    names = Pseudonyms()
    found = [json.loads(clean(json.dumps({"host_name": host, "traceEvents": []}), names=names))["host_name"] for host in ("n1", "n2", "n1")]
    assert found == ["host-1", "host-2", "host-1"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "aten::add", "ts": 1714060800000000.123, "dur": 0.5}',
        '{"name": "void cub::DeviceReduce<a, b>(int*)", "Process Group Ranks": "[0, 1, ...]"}',
        '{"name": "Memcpy DtoH (Device -> Pageable)", "version": "2.21.5", "ratio": "1/2", "unit": "GB/s"}',
        '{"name": "Optimizer.step#AdamW.step", "x": "N/A", "y": "forward/backward"}',
        '{"a": NaN, "b": , "c": [1, 2',
    ],
)
def test_what_is_not_personal_stays_byte_for_byte(text):
    assert clean(text) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        b'[{"name": "un"quoted /home/alice/x.py", "ts": 1}, {"name": "/home/alice/y", "ts": 2}]',
        b'[{"name": "cut /home/alice/x',
        b'[{"name": "C:\\home\\alice\\p", "ts": 1}]',
        b'[{"name": "/home/al\xe9alice/x", "ts": nan}]',
        b'[{"name": "line\n/home/alice/x"}]',
    ],
)
def test_damage_hides_nothing(text):
    found = clean(text, 10**6)
    assert b"alice" not in found
    assert b"x.py" not in found


@given(st.binary(max_size=300), st.integers(1, 50))
def test_it_ends_on_any_bytes_whatever_the_blocks(data, size):
    clean(data, size)


def numbers(path, capsys):
    assert cli.exit_code(["analyze", str(path), "--format", "json", "--no-cache"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found["tables"], found["coverage"]


def test_the_same_numbers_before_and_after(tmp_path, capsys):
    events = [annotation("ProfilerStep#1", 0, 900), op("/home/alice/model.py(3): forward", 0, 100)]
    events += launched(kernel("gemm", 100, 500), 10) + launched(nccl("allreduce", 400, 700), 20)
    path = written(tmp_path / "in.json.gz", document(events, host_name="node-17"))
    assert cli.exit_code(["scrub", str(path), "-o", str(tmp_path / "out.json.gz")]) == 0
    raw = gzip.decompress((tmp_path / "out.json.gz").read_bytes())
    assert b"alice" not in raw
    assert b"node-17" not in raw
    for found in (before := numbers(path, capsys)), (after := numbers(tmp_path / "out.json.gz", capsys)):
        found[0]["overlap"]["rows"][0].pop("source")
    for tables, _ in (before, after):  # a path in a name is another text, and so is the signature made of it; all numbers are the same
        for table in tables.values():
            for row in table["rows"]:
                texts = [name for name, value in row.items() if isinstance(value, str) and (".py" in value or value.startswith("<"))]
                row.update(dict.fromkeys([*texts, "signature"]))
    assert before == after


@pytest.mark.parametrize("name", ["mi250_no_distributed_info.json.gz", "gloo/tp_2r_rank0.json.gz", "vllm_decode_graph_replay.json.gz"])
def test_real_files_keep_their_numbers(name, shared_traces, tmp_path, capsys):
    target = tmp_path / name.rsplit("/", 1)[-1]
    assert cli.exit_code(["scrub", str(shared_traces / name), "-o", str(target)]) == 0
    assert numbers(shared_traces / name, capsys) == numbers(target, capsys)


def test_a_folder_becomes_a_folder_and_what_is_not_copied_is_said(tmp_path, capsys):
    for rank in (0, 1):
        written(tmp_path / "run" / "sub" / f"r{rank}.json", document([kernel("gemm", 0, 10)], rank=rank, host_name=f"node-{rank}7"))
    (tmp_path / "run" / "notes.txt").write_text("private")
    assert cli.exit_code(["scrub", str(tmp_path / "run"), "-o", str(tmp_path / "out")]) == 0
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.json")) == ["sub/r0.json", "sub/r1.json"]
    hosts = [json.loads((tmp_path / "out" / "sub" / f"r{rank}.json").read_text())["host_name"] for rank in (0, 1)]
    assert hosts == ["host-1", "host-2"]
    assert "not copied: notes.txt" in capsys.readouterr().err


def test_a_run_folder_of_ours_stays_one(tmp_path, capsys):
    """run.json, manifests, records and windows are scrubbed, stacks are left behind, and the numbers are the same."""
    run = tmp_path / "run"
    for rank in (0, 1):
        folder = run / "ranks" / f"rank0000{rank}"
        record = {
            "schema": "c3prof.rank/1",
            "rank": rank,
            "world_size": 2,
            "host": "node-17",
            "status": "complete",
            "errors": ["/home/alice/x"],
        }
        written(folder / "manifest.json", record)
        written(folder / "trace-w000.json.gz", document([kernel("gemm", 0, 10)], rank=rank, world_size=2))
        written(folder / "stacks.txt", "File /home/alice/train.py")
    written(run / "run.json", {"schema": "c3prof.run/1", "world_size": 2, "config": {"dir": "/home/alice/run"}})
    assert cli.exit_code(["scrub", str(run), "-o", str(tmp_path / "out")]) == 0
    found = sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert found == [*(f"ranks/rank0000{rank}/{name}" for rank in (0, 1) for name in ("manifest.json", "trace-w000.json.gz")), "run.json"]
    whole = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*.json"))
    assert b"alice" not in whole
    assert b"node-17" not in whole
    assert numbers(run, capsys) == numbers(tmp_path / "out", capsys)


def test_an_input_is_never_overwritten(tmp_path, capsys):
    path = written(tmp_path / "a.json", document([kernel("gemm", 0, 10)]))
    before = path.read_bytes()
    assert cli.exit_code(["scrub", str(path), "-o", str(path)]) == 2
    assert path.read_bytes() == before
    assert "nothing is overwritten" in capsys.readouterr().err


def test_same_input_same_bytes(tmp_path):
    path = written(tmp_path / "a.json.gz", document([kernel("gemm", 0, 10)], host_name="node-17"))
    for name in ("one", "two"):
        assert cli.exit_code(["scrub", str(path), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
