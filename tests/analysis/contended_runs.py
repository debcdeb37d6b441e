"""Simulated and hand-written runs as Traces, for the tests of contention."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from c3prof.analysis.contention import contention
from c3prof.analysis.interference import flagged
from c3prof.analysis.settings import Settings
from c3prof.readers import load
from c3prof.trace import Trace
from tests.kineto_files import written


def trace_of(folder: Path, document: dict[str, Any], name: str = "rank0.json") -> Trace:
    """The Trace of a Kineto document, by way of a file."""
    return load(written(folder / name, document))


def slowdowns(trace: Trace, seed: int = 0) -> pd.DataFrame:
    """Table slowdown of one rank, judged over its rows."""
    table, _, *_ = contention(trace, {}, Settings(seed=seed))
    return flagged(table.frame)


def numbers(frame: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of some columns as tuples."""
    return list(frame[list(columns)].itertuples(index=False, name=None))
