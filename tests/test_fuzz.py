"""Damaged files always end in a report with warnings or a one-line error: never a traceback, never a hang."""

import gzip
import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from c3prof.errors import C3profError
from c3prof.pipeline import report
from c3prof.renderers.json import text as json_text
from tests.kineto_files import annotation, document, kernel, launched, memcpy, nccl, op


def good() -> bytes:
    events = [{"ph": "M", "name": "process_name", "pid": 1000, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    for step in range(3):
        t = 100.25 * step
        events += [
            annotation(f"ProfilerStep#{step}", t, t + 90),
            op("aten::mm", t + 1, t + 9, **{"External id": step + 1, "Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}),
            *launched(kernel("gemm <Ünïcode>", t + 20, t + 40, grid=[8, 1, 1], block=[64, 1, 1]), t + 2),
            *launched(nccl("allreduce", t + 30, t + 55), t + 5),
            *launched(memcpy("Memcpy HtoD", t + 60, t + 61.5, stream=21), t + 12),
        ]
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}]
    whole = document(events, world_size=2, base_ns=1_700_000_000_000_000_000, distributedInfo={"pg_config": groups})
    return json.dumps(whole, indent=2).encode()


GOOD = good()
places = st.integers(0, len(GOOD) - 1)
pieces = st.binary(max_size=12) | st.sampled_from([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"nan", b"\x00", b'": ', b"1e400", b"-" * 30])
damages = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), places, places),
        st.tuples(st.just("flip"), places, st.integers(0, 7)),
        st.tuples(st.just("splice"), places, pieces),
        st.tuples(st.just("copy"), places, places),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, damage) -> bytes:
    for kind, place, more in damage:
        at = min(place, len(data) - 1) if data else 0
        if kind == "cut":
            low, high = sorted((at, more))
            data = data[:low] + data[high:]
        elif kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ (1 << more)]) + data[at + 1 :]
        elif kind == "splice":
            data = data[:at] + more + data[at:]
        else:
            low, high = sorted((at, more))
            data = data[:high] + data[low:high] + data[high:]
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def outcome(path) -> None:
    """Reads and reports; fails on anything but a report that is one JSON object, or a one-line error."""
    try:
        said = json_text(report([str(path)], {"cache": False}))
    except C3profError as error:
        said = str(error)
    assert said
    assert "\n" not in said.strip() if not said.startswith("{") else json.loads(said)["schema"] == "c3prof.report/1"


relaxed = settings(
    max_examples=40, deadline=timedelta(seconds=20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@relaxed
@given(damage=damages)
def test_damaged_json(folder, damage):
    path = folder / "rank0.json"
    path.write_bytes(damaged(GOOD, damage))
    outcome(path)


@relaxed
@given(damage=damages)
def test_damaged_gzip(folder, damage):
    path = folder / "rank0.json.gz"
    path.write_bytes(damaged(gzip.compress(GOOD, mtime=0), damage))
    outcome(path)


def test_the_undamaged_file_has_no_warning_but_the_missing_rank(folder):
    path = folder / "good.json"
    path.write_bytes(GOOD)
    assert [w.code for w in report([str(path)], {"cache": False}).warnings] == ["missing-ranks"]
