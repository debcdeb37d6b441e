"""The contention simulator keeps to its physics, by hand."""

from typing import Any

import pytest

from c3prof.sample_traces.simulator import Collective, Kernel, Noise, Program, contended, realized


def spans(document: dict[str, Any], stream: int) -> list[tuple[float, float]]:
    """(start, duration) of the kernels on a stream in µs from the first kernel's start."""
    kernels = [e for e in document["traceEvents"] if e["cat"] == "kernel"]
    begin = min(e["ts"] for e in kernels)
    return [(round(e["ts"] - begin, 3), round(e["dur"], 3)) for e in kernels if e["args"]["stream"] == stream]


def test_alone() -> None:
    document = contended(Program([Kernel("k", 10.0)] * 2, steps=1))[0]
    assert spans(document, 7) == [(0, 10), (11, 10)]


def test_partial_overlap() -> None:
    """k0 [0, 10); the all_reduce [10, 50); k1 starts at 11 with 100 of work at half speed: 39 shared do 19.5 → 39 + 80.5."""
    document = contended(Program([Kernel("k0", 10.0), Kernel("k1", 100.0, slowdown=2.0)], [Collective(40.0, after=1)], steps=1))[0]
    assert spans(document, 7) == [(0, 10), (11, 119.5)]
    assert spans(document, 20) == [(10, 40)]


def test_collective_slows_in_turn() -> None:
    """Beside compute from 11 on: 1 + (work - 1) · 2."""
    document = contended(Program([Kernel("k0", 10.0), Kernel("k1", 500.0)], [Collective(40.0, after=1, slowdown=2.0)], steps=1))[0]
    assert spans(document, 20) == [(10, 79)]


def test_a_rank_waits_for_the_last() -> None:
    program = Program([Kernel("k", 10.0)], [Collective(30.0, after=1, delay=50.0)], steps=1, ranks=2)
    first, second = (spans(document, 20)[0] for document in contended(program, 1))
    assert min(first[1], second[1]) == pytest.approx(30.0)
    assert first[0] + first[1] == pytest.approx(second[0] + second[1])
    assert max(first[1], second[1]) > 30


def test_rate_that_varies() -> None:
    """Half of the work at 1.5, half at 2.5: 2.0 over all of the shared time."""
    program = Program([Kernel("k", 100.0, slowdown=1.5, tail_slowdown=2.5)], [Collective(300.0)], steps=2)
    assert spans(contended(program)[0], 7)[0] == (0, 200)
    assert realized(program) == {"k": pytest.approx(2.0)}


def test_seeded_and_ticks() -> None:
    program = Program([Kernel("k", 10.0)], [Collective(30.0)], steps=3, noise=Noise(0.1, 0.1, 4, 0.1, tick_ns=1000))
    assert contended(program, 7) == contended(program, 7)
    assert contended(program, 7) != contended(program, 8)
    times = [time for e in contended(program, 7)[0]["traceEvents"] if e["cat"] == "kernel" for time in (e["ts"], e["dur"])]
    assert all(time == int(time) for time in times)
