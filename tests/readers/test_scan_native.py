"""The native scan against the Python one: the same columns and damage on real, damaged and once failing files."""

import gzip
import importlib.util
import json
import random
import threading
from pathlib import Path
from types import ModuleType

import pytest

from c3prof.readers._columns import TABLES
from c3prof.readers._pieces import PythonEvents

pytest.importorskip("c3prof.readers._scan", reason="the native scanner is not built here", exc_type=ImportError)

from c3prof.readers import _scan
from c3prof.readers._native import NativeEvents
from c3prof.readers.scan import scanner, scanner_name


def _fuzz_scan() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_scan", Path(__file__).with_name("fuzz_scan.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz_scan = _fuzz_scan()
REGRESSIONS = sorted(Path(__file__).with_name("regressions").glob("*"))


def test_the_native_scan_is_used_unless_python_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("C3PROF_SCAN", raising=False)
    assert isinstance(scanner(), NativeEvents)
    assert scanner_name() == "native"
    monkeypatch.setenv("C3PROF_SCAN", "python")
    assert isinstance(scanner(), PythonEvents)
    assert scanner_name() == "python"


def test_columns_have_the_declared_names() -> None:
    tables = _scan.take(_scan.scanner(1))
    assert {table: set(columns) for table, columns in tables.items()} == {table: set(columns) for table, columns in TABLES.items()}


def test_plain_events_never_leave_the_native_way() -> None:
    text = b"[" + b", ".join(json.dumps(event).encode() for event in fuzz_scan.SEEDS) + b"]"
    at = _scan.consume(_scan.scanner(1), text, 1)
    assert at == len(text) - 1


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
def test_inputs_that_once_failed(path: Path) -> None:
    fuzz_scan.check(path.read_bytes())


def test_mutated_files_read_the_same() -> None:
    generator = random.Random(20261130)
    for _ in range(400):
        fuzz_scan.check(fuzz_scan.mutated(fuzz_scan.document(generator), generator))


def test_every_cut_reads_the_same() -> None:
    text = json.dumps({"traceEvents": fuzz_scan.SEEDS[:3], "traceName": "t"}).encode()
    for length in range(0, len(text), 3):
        fuzz_scan.check(text[:length])


def test_real_files_read_the_same(shared_traces: Path) -> None:
    paths = [*shared_traces.glob("*.json.gz"), *shared_traces.glob("*/*rank0.json.gz")]
    assert len(paths) > 10
    for path in paths:
        text = gzip.decompress(path.read_bytes())
        if len(text) < 20_000_000:
            found = fuzz_scan.difference(fuzz_scan.read(NativeEvents(), text, 1 << 20), fuzz_scan.read(PythonEvents(), text, 1 << 22))
            assert not found, path.name


def test_a_scanner_is_of_one_thread_at_a_time() -> None:
    text = b"[" + b",".join([b'{"ph":"X","ts":1,"dur":1,"name":"' + b"x" * 200 + b'"}'] * 200_000) + b"]"
    capsule = _scan.scanner(1)
    thread = threading.Thread(target=_scan.consume, args=(capsule, text, 1))
    thread.start()
    busy = 0
    while thread.is_alive():
        try:
            _scan.rows(capsule)
        except RuntimeError:
            busy += 1
    thread.join()
    assert busy
    assert _scan.rows(capsule) == 200_000


def test_wrong_arguments_are_refused() -> None:
    capsule = _scan.scanner(1)
    for start in (-1, 5):
        with pytest.raises(ValueError, match="outside"):
            _scan.consume(capsule, b"[{}]", start)
    with pytest.raises(TypeError):
        _scan.consume(capsule, "[{}]", 0)  # type: ignore[arg-type] # what it refuses
    with pytest.raises(ValueError, match="PyCapsule"):
        _scan.consume(object(), b"[{}]", 0)
    assert _scan.consume(capsule, b"[{}]", 4) == 4
