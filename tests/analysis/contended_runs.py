"""Simulated and hand-written runs with contention, as Traces and judged tables."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.readers import load
from c3prof.trace import Trace
from tests.kineto_files import Event, annotation, document, kernel, launch, nccl, op, written

A = ((64, 64), (64, 64))


def trace_of(folder: Path, *documents: dict[str, Any]) -> Trace:
    """The Trace of Kineto documents, one a rank, by way of files."""
    for rank, content in enumerate(documents):
        written(folder / f"rank{rank}.json", content)
    return load(folder)


def table(trace: Trace, name: str, seed: int = 0) -> pd.DataFrame:
    """One table of the report of a Trace."""
    return analyze(trace, Settings(only=(name,), seed=seed))[name].frame


def matmul(name: str, start: float, end: float, at: float, dims: Sequence[Sequence[int]] | None = None, **args: Any) -> list[Event]:
    """A kernel [start, end) µs with the operator and the launch at `at` µs on the CPU."""
    correlation = int(start * 1000) + 1
    shapes = {} if dims is None else {"Input Dims": [list(d) for d in dims]}
    return [
        op("aten::mm", at, at + 2, **shapes),
        launch(at + 0.5, at + 1.5, correlation),
        kernel(name, start, end, correlation=correlation, grid=[64, 1, 1], block=[256, 1, 1], **args),
    ]


def run_of(kernels: Sequence[tuple[str, float, Sequence[Sequence[int]], tuple[float, float] | None]]) -> dict[str, Any]:
    """A document without steps: kernels (name, duration, dims, part of it under an all_reduce), 100 µs apart."""
    events: list[Event] = []
    now = 1000.0
    for turn, (name, duration, dims, under) in enumerate(kernels):
        events += matmul(name, now, now + duration, 10.0 + 3 * turn, dims)
        if under is not None:
            events.append(nccl("allreduce", now + under[0], now + under[1]))
        now += duration + 100.0
    return document(events)


def step_marks(*ranges: tuple[float, float]) -> list[Event]:
    """ProfilerStep#1, #2, … over CPU ranges in µs."""
    return [annotation(f"ProfilerStep#{number}", start, end) for number, (start, end) in enumerate(ranges, 1)]


def rounded(value: float, digits: int = 6) -> float | None:
    """A number for comparison, None for NaN."""
    return None if math.isnan(value) else round(value, digits)
