"""Which files are read, by content; the others are named."""

import fsspec
import pytest

import c3prof
from c3prof.errors import UnreadableInput
from c3prof.readers.sources import found
from tests.kineto_files import document, kernel, nccl, written


def trace_file(path, rank=0, world_size=1):
    return written(path, document([kernel("gemm", 0, 10), nccl("allreduce", 5, 12)], rank=rank, world_size=world_size))


def test_a_folder_is_sorted_out_by_content(tmp_path):
    trace_file(tmp_path / "a.json", 0, 2)
    trace_file(tmp_path / "sub" / "b.gz", 1, 2)
    written(tmp_path / "et.json", {"schema": "1.0.2-chakra.0.0.4", "nodes": [{"id": 1, "name": "x"}]})
    written(tmp_path / "config.json", {"lr": 0.1, "layers": [1, 2]})
    written(tmp_path / "loss.csv", "step,loss\n1,2.0\n")
    written(tmp_path / "empty.json", b"")
    written(tmp_path / "c.json.tmp", document([kernel("gemm", 0, 10)]))
    inputs = found(tmp_path)
    assert [s.name for s in inputs.sources] == ["a.json", "sub/b.gz"]
    assert {s.name: s.reason for s in inputs.skipped} == {
        "c.json.tmp": "hidden or half-written by its name",
        "config.json": "not a Kineto trace (no traceEvents)",
        "empty.json": "empty file",
        "et.json": "an execution trace, not a Kineto trace",
        "loss.csv": "not a Kineto trace (no traceEvents)",
    }
    trace = c3prof.load(tmp_path)
    assert trace.rank_numbers == [0, 1]
    assert sorted(w.path for w in trace.warnings if w.code == "skipped-file") == [
        "c.json.tmp", "config.json", "empty.json", "et.json", "loss.csv",
    ]  # fmt: skip


def test_traceevents_far_behind_a_long_header_are_found(tmp_path):
    written(tmp_path / "a.json", document([kernel("gemm", 0, 10)], padding="x" * 300_000))
    assert [s.name for s in found(tmp_path).sources] == ["a.json"]


def test_globs_and_several_paths(tmp_path):
    for rank in range(3):
        trace_file(tmp_path / f"r{rank}.json.gz", rank, 4)
    assert [s.name for s in found(str(tmp_path / "r*.gz")).sources] == ["r0.json.gz", "r1.json.gz", "r2.json.gz"]
    assert c3prof.load([tmp_path / "r0.json.gz", tmp_path / "r2.json.gz"]).rank_numbers == [0, 2]


def test_remote_files_and_folders(tmp_path):
    memory = fsspec.filesystem("memory")
    for rank in range(2):
        data = trace_file(tmp_path / f"{rank}.json.gz", rank, 2).read_bytes()
        memory.pipe(f"/bucket/run/{rank}.json.gz", data)
    memory.pipe("/bucket/run/notes.txt", b"hello")
    assert c3prof.load("memory://bucket/run/1.json.gz").rank_numbers == [1]
    assert c3prof.load("memory://bucket/run/*.gz").rank_numbers == [0, 1]
    folder = found("memory://bucket/run")
    assert [s.name for s in folder.sources] == ["0.json.gz", "1.json.gz"]
    assert [s.name for s in folder.skipped] == ["notes.txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.json", "no such file or folder"),
        ("empty", "no file here"),
        ("only_text", "no Kineto trace among 1 files"),
        ("memory://nothing/here.json", "no file here"),
        ("nosuchprotocol://x", "nosuchprotocol"),
        ("r[0-9].json", "no file here"),
    ],
)
def test_nothing_usable_is_one_clear_error(tmp_path, path, message):
    (tmp_path / "empty").mkdir()
    written(tmp_path / "only_text" / "a.txt", "hello")
    given = path if "://" in path else str(tmp_path / path)
    with pytest.raises(UnreadableInput, match="(?s)" + message) as error:
        c3prof.load(given)
    assert "\n" not in str(error.value)
