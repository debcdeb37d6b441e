"""Fuzzing of the scan: native and Python must agree on any bytes, and neither may raise.

    python tests/readers/fuzz_scan.py [--files 100000] [--seed 1]     mutated files
    python tests/readers/fuzz_scan.py --atheris [-max_total_time=60]  guided by coverage (needs atheris)
    … --sanitize   with a scanner built here under AddressSanitizer and UndefinedBehaviorSanitizer (gcc, Linux)

An input that fails is made small and written to tests/readers/regressions/, which the test suite reads.
"""

import hashlib
import importlib.util
import inspect
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
_SANITIZED = "C3PROF_FUZZ_SCANNER"


def _load_sanitized() -> None:
    """Puts the scanner that `--sanitize` built in the place of the installed one."""
    if path := os.environ.get(_SANITIZED):
        spec = importlib.util.spec_from_file_location("c3prof.readers._scan", path)
        assert spec
        assert spec.loader
        sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    _load_sanitized()

from c3prof.readers import _events, _tolerant  # noqa: E402
from c3prof.readers._conversions import Exact  # noqa: E402
from c3prof.readers._document import Document, Events  # noqa: E402 - after the choice of scanner
from c3prof.readers._native import NativeEvents  # noqa: E402
from c3prof.readers._pieces import PythonEvents  # noqa: E402
from c3prof.readers.scan import Scan, scan_of  # noqa: E402

REGRESSIONS = Path(__file__).parent / "regressions"
TABLES = ("events", "ops", "device", "comm", "meta")

SEEDS = [
    {"ph": "X", "cat": "kernel", "name": "gemm<{1}>", "pid": 0, "tid": 7, "ts": 10.5, "dur": 5, "args": {
        "device": 0, "stream": 7, "correlation": 3, "External id": 9, "grid": [1, 2, 3], "block": [4, 5], "shared memory": 8,
        "registers per thread": 32, "est. achieved occupancy %": 37.5, "graph id": 4, "graph node id": 5}},
    {"ph": "X", "cat": "Memcpy", "name": "copy", "pid": "GPU 1", "tid": "stream 7", "ts": 1711964646000000.123, "dur": 1.0005, "args": {
        "bytes": "4096", "kind": "PtoP", "stream": "0x1f"}},
    {"ph": "X", "cat": "cpu_op", "name": 'c10d::"a" \\ \u00e9\U0001f600', "pid": 42, "tid": "main", "ts": "11", "dur": 2.125, "args": {
        "external id": "77", "Input Dims": [[], [2, 3]], "Input type": ["float", "c10::Half"], "Input Strides": [[1]],
        "Concrete Inputs": ["", "[1, 2]"], "Module Hierarchy": "top.a", "Call stack": "a;b"}},
    {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 0, "args": {"name": "python", "labels": ""}},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"a": 1.5, "b": [{"c": None}]}},
    {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 1, "tid": 1, "ts": 4, "dur": 9},
    {"ph": "X", "cat": "python_function", "name": "forward", "pid": 1, "tid": 1, "ts": 4, "dur": 9, "args": {"Python id": 1}},
    {"ph": "s", "id": 5, "pid": 1, "tid": 1, "ts": 4, "cat": "ac2g", "name": "ac2g"},
    {"name": "old", "ts": 1, "dur": 2, "args": None},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 5, "dur": 6, "args": {
        "Collective name": "allreduce", "dtype": "Float", "Process Group Name": "0", "Process Group Description": "dp",
        "Process Group Ranks": "[0, 1]", "In split size": "[]", "Out split size": [1, 2], "In msg nelems": 10, "Out msg nelems": "20",
        "Group size": 2, "Seq": 7, "Rank": 0, "Src Rank": 1, "Dst Rank": 0}},
]  # fmt: skip

PARTS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"null", b"true", b"nan", b"-inf", b"Infinity", b"0", b"-0", b"7", b"7.0", b"1e3",
    b"-1", b"01", b"1.", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"123456789012345678901234567890123456789012",
    b"0.0005", b"0.0015", b"1711964646000000.1235", b"5200226329388.300", b"1e400", b"1E-7", b"4503599627370497.5", b'"stream 7"', b'"0xFf"',
    b'"GPU 3"', b'"7"', b'"-7"', b'"1.5"', b'"nan"', b'""', b"[]", b"{}", b"[1, 2]", b'{"a" : [ "b c" ]}', b"\\u0041", b"\\ud800", b"\\ud83d\\ude00",
    b"\\p", b"\\n", b'\\"', b"\x00", b"\x1f", b"\x7f", b"\xe9", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xff", b"\xef\xbb\xbf",
    b"},{", b'}, {"ph":', b"]}", b'"ph":', b'"traceEvents":[', b'"args":{', b'"args":null', b'"stream":', b'"ts":', b'"dur":', b'"name":', b'"cat":"kernel"',
    b'"External id":', b'"correlation":', b'"Input Dims":', b'"Input dims":', b'"device":', b'"baseTimeNanoseconds":1', b"[[", b'{"x":', b'"Seq":',
]  # fmt: skip


def read(events: Events, text: bytes, block: int) -> Scan:
    """The scan of text in blocks of a size."""
    document = Document(events, block=block, begin=block // 2)
    document.read(text[at : at + block] for at in range(0, len(text), block))
    return scan_of(document, events)


def difference(one: Scan, other: Scan) -> str:
    """What differs between two scans; empty when nothing does."""
    for table in TABLES:
        for name, column in getattr(one, table).items():
            found = getattr(other, table)[name]
            if column.dtype != found.dtype or not np.array_equal(column, found, equal_nan=column.dtype == float):
                return f"{table}.{name}: {column} {found}"
    for name in ("strings", "header", "damage", "counts"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)} {getattr(other, name)}"
    return ""


def check(text: bytes) -> None:
    """Raises AssertionError when native and Python differ on text."""
    native = read(NativeEvents(), text, 1 << 22)
    found = difference(native, read(PythonEvents(), text, 1 << 22))
    if not found and len(text) % 4 == 0:
        found = difference(native, read(NativeEvents(), text, 1 + len(text) % 601))
    if found:
        raise AssertionError(found)


def document(random_: random.Random) -> bytes:
    """A whole file of a few events, minified or pretty."""
    events = [random_.choice(SEEDS) for _ in range(random_.randint(1, 5))]
    content = (
        events if random_.random() < 0.2 else {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events, "traceName": "t"}
    )
    style = random_.choice([{"indent": 1}, {"separators": (",", ":")}, {}])
    return json.dumps(content, ensure_ascii=random_.random() < 0.5, **style).encode()  # type: ignore[arg-type]


def mutated(text: bytes, random_: random.Random) -> bytes:
    """Text after some cuts, flips, splices and replaced values."""
    for _ in range(random_.choice([0, 1, 1, 1, 2, 2, 3, 5, 9])):
        at, way = random_.randrange(len(text) + 1), random_.randrange(7)
        if way == 0:
            text = text[:at] + text[at + random_.randint(1, 30) :]
        elif way == 1:
            text = text[:at] + bytes([random_.randrange(256)]) + text[at + 1 :]
        elif way == 2:
            text = text[:at] + random_.choice(PARTS) + text[at:]
        elif way == 3:
            start = random_.randrange(len(text) + 1)
            text = text[:at] + text[start : start + random_.randint(1, 120)] + text[at:]
        elif way == 4 and random_.random() < 0.2:
            text = text[:at]
        else:
            text = _with_another_value(text, at, random_)
    return text


def _with_another_value(text: bytes, at: int, random_: random.Random) -> bytes:
    """Text with the value behind the next colon replaced by another."""
    start = text.find(b":", at) + 1
    if not start:
        return text
    ends = [end for mark in (b",", b"}", b"\n") if (end := text.find(mark, start)) >= 0]
    return text[:start] + random_.choice(PARTS) + text[min(ends, default=len(text)) :]


def kept_failure(text: bytes, fails: Callable[[bytes], bool]) -> Path:
    """The file that a failing text was written to, after its removable parts were removed."""
    step = max(len(text) // 2, 1)
    while step:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + step :]
            if fails(shorter):
                text = shorter
            else:
                at += step
        step //= 2
    REGRESSIONS.mkdir(exist_ok=True)
    path = REGRESSIONS / f"{hashlib.sha256(text).hexdigest()[:12]}.json"
    path.write_bytes(text)
    return path


def _fails(text: bytes) -> bool:
    try:
        check(text)
    except Exception:  # noqa: BLE001 - whatever it raises is a failure
        return True
    return False


def run(files: int, seed: int) -> int:
    """How many of so many mutated files failed."""
    random_, failures, start = random.Random(seed), 0, time.monotonic()
    for number in range(files):
        text = mutated(document(random_), random_)
        if _fails(text):
            failures += 1
            sys.stderr.write(f"file {number} fails: {kept_failure(text, _fails)}\n")
        if number % 5000 == 4999:
            sys.stderr.write(f"{number + 1} files, {failures} failed\n")
            sys.stderr.flush()
    sys.stderr.write(f"{files} files, {failures} failed, {time.monotonic() - start:.0f} s, seed {seed}\n")
    return failures


def _guided(arguments: list[str]) -> None:
    import atheris  # type: ignore[import-untyped] # noqa: PLC0415 - only for this way

    for owner in (Document, _tolerant._Reading, _events.EventDecoding, Exact, NativeEvents):
        for name, function in vars(owner).items():
            if inspect.isfunction(function):
                setattr(owner, name, atheris.instrument_func(function))
    corpus = ROOT / "build" / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number in range(200):
        (corpus / f"seed{number}").write_bytes(document(random.Random(number)))
    words = corpus.parent / "words"
    words.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in part) + '"\n' for part in PARTS))
    atheris.Setup([sys.argv[0], f"-dict={words}", "-max_len=1500", *arguments, str(corpus)], _checked)
    atheris.Fuzz()


def _checked(text: bytes) -> None:
    if _fails(text):
        raise AssertionError(f"fails: {kept_failure(text, _fails)}")


def _sanitized(arguments: list[str]) -> int:
    """The same command in a Python with the sanitizers' libraries and a scanner built with them."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
    folder = ROOT / "build" / "sanitized"
    build = [sys.executable, "setup.py", "-q", "build_ext", "--force", "--build-lib", str(folder), "--build-temp", str(folder / "temp")]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "CFLAGS": flags, "LDFLAGS": "-fsanitize=address,undefined"}, check=True)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name=lib{name}.so"], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("asan", "ubsan")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python itself keeps memory until it ends
        "UBSAN_OPTIONS": "print_stacktrace=1",
        _SANITIZED: str(next(folder.rglob("_scan*.so"))),
    }
    return subprocess.run([sys.executable, __file__, *arguments], env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Exit code of the command above."""
    if "--sanitize" in arguments:
        return _sanitized([argument for argument in arguments if argument != "--sanitize"])
    if "--atheris" in arguments:
        _guided([argument for argument in arguments if argument != "--atheris"])
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    return int(run(int(options.get("--files", 100_000)), int(options.get("--seed", 1))) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
