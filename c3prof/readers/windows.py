"""Several profiler windows of one rank → one Trace of that rank."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.trace import POINTERS, SCHEMAS, Trace

_ORDER: dict[str, tuple[str, ...]] = {
    "activities": ("device", "stream", "start_ns"),
    "launches": ("thread", "start_ns"),
    "ops": ("thread", "start_ns", "-end_ns"),
    "annotations": ("thread", "start_ns", "-end_ns"),
    "device_annotations": ("device", "stream", "start_ns"),
    "collectives": ("start_ns",),
    "steps": ("step",),
    "counters": ("at_ns",),
    "windows": ("start_ns",),
}
"""What the rows of a frame of one rank are sorted by (c3prof/trace.py); a minus is descending."""


def merged(windows: Sequence[Trace]) -> Trace:
    """One Trace of the windows of one rank, in order of time: rows sorted as declared, positions moved along.

    The process groups and the row of ranks are those of the first window; counts of coverage add up.
    """
    if len(windows) == 1:
        return windows[0]
    whole = Trace.concat(windows)
    place = {name: _place(getattr(whole, name), keys) for name, keys in _ORDER.items()}
    frames = {name: _moved(getattr(whole, name), np.argsort(place[name]), POINTERS.get(name, {}), place) for name in _ORDER}
    counts = [next(iter(window.coverage.values()), {}) for window in windows]
    rank = windows[0].rank_numbers[0]
    return replace(
        whole,
        **frames,
        ranks=whole.ranks.iloc[:1].assign(events=int(whole.ranks["events"].sum())),
        groups=SCHEMAS["groups"].frame(whole.groups.drop_duplicates("group").reset_index(drop=True)),
        coverage={rank: {name: sum(count.get(name, 0) for count in counts) for name in dict.fromkeys(n for c in counts for n in c)}},
    )


def one_rank(files: Sequence[Trace]) -> Trace:
    """One Trace of files that name the same rank: windows of one recording when they follow each other in time.

    Files that overlap in time are recordings of the same thing; the first given stays, the others are named.
    """
    by_time = sorted(files, key=lambda trace: tuple(trace.windows["start_ns"]))
    follow = all(before.windows["end_ns"].max() <= after.windows["start_ns"].min() for before, after in pairwise(by_time))
    if follow:
        paths = ", ".join(trace.ranks["path"].iloc[0] for trace in by_time)
        whole = merged(by_time)
        return replace(whole, ranks=whole.ranks.assign(path=paths))
    first = files[0]
    rank, kept = first.rank_numbers[0], first.ranks["path"].iloc[0]
    message = f"rank {rank} is in {kept} and again in this file, at the same time; it is left out"
    return first.with_warnings([DataWarning("duplicate-rank", message, path=other.ranks["path"].iloc[0]) for other in files[1:]])


def _place(frame: pd.DataFrame, keys: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The new position of each row."""
    if not len(frame):
        return np.zeros(0, np.int64)
    order = np.lexsort([_key(frame, key) for key in reversed(keys)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _key(frame: pd.DataFrame, key: str) -> npt.NDArray[Any]:
    column = frame[key.removeprefix("-")]
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Threads that were one in several windows are neighbours again; their order is that of first appearance.
        return column.cat.codes.to_numpy()
    values = column.to_numpy()
    return -values if key.startswith("-") else values


def _moved(
    frame: pd.DataFrame, order: npt.NDArray[np.int64], pointers: dict[str, str], place: dict[str, npt.NDArray[np.int64]]
) -> pd.DataFrame:
    frame = frame.iloc[order].reset_index(drop=True)
    columns = {}
    for column, target in pointers.items():
        positions = frame[column].to_numpy()
        columns[column] = np.where(positions >= 0, np.append(place[target], -1)[positions], -1).astype(np.int32)
    return frame.assign(**columns)
