"""What the collectors recorded of every step, profiler window or not: step times, waits, and what recording cost."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.settings import Settings
from c3prof.records import CONCURRENT
from c3prof.table import Column, Schema, Table
from c3prof.trace import NONE, Trace

AT_ONCE_NS = 200_000
"""A wait that begins sooner after its call left no time to compute (or sooner than 5 % of the collective's duration)."""
AT_ONCE_SHARE = 0.05

_RANK = Column("rank", "int32", "", "global rank")
_PHASE = Column("phase", "object", "", "of calibration: serialized, concurrent or discarded; null without")
_BLOCKED = Column("blocked_ns", "object", "ns", "host time blocked in waits for collectives; null when no wait was seen")

STEP_TIMES = Schema(
    "step_times",
    "Every recorded step as the host saw it",
    (
        _RANK,
        Column("step", "int64", "", "step number"),
        _PHASE,
        Column("window", "object", "", "profiler window that was open, null for none"),
        Column("duration_ns", "int64", "ns", "wall time of the step"),
        Column("cpu_ns", "object", "ns", "CPU time of the thread that runs the loop"),
        _BLOCKED,
        Column("collectives", "int64", "", "c10d operations called in it"),
        Column("size_bytes", "int64", "B", "their message sizes"),
        Column("note", "object", "", "why a value is unknown"),
    ),
)
WAITS = Schema(
    "waits",
    "When the host waits for its collectives, by kind and group",
    (
        _RANK,
        Column("collective", "object", "", "kind of collective"),
        Column("group", "object", "", "process group"),
        Column("n", "int64", "", "operations in concurrent steps (all, without calibration)"),
        Column("n_at_once", "int64", "", "waited for with no time to compute in between"),
        Column("n_unseen", "int64", "", "waited for inside torch or not at all: no wait was seen"),
        Column("size_bytes", "int64", "B", "median message size"),
        Column("duration_ns", "object", "ns", "median time from call to end; null when no end is known"),
        _BLOCKED,
        Column("note", "object", "", "what follows for overlap"),
    ),
)
OVERHEAD = Schema(
    "overhead",
    "What the collectors cost, measured by themselves",
    (
        _RANK,
        Column("steps", "int64", "", "steps recorded"),
        Column("hook_calls", "int64", "", "communication operations that the hook saw"),
        Column("hook_ns_per_call", "float64", "ns", "time in the hook per operation, waits of calibration not counted"),
        Column("hook_ns_per_step", "float64", "ns", "the same per step"),
        Column("step_ns_per_step", "float64", "ns", "time in step() per step, exports of windows not counted"),
        Column("watcher_ns_per_step", "float64", "ns", "CPU time of the watcher thread per step"),
        Column("overhead_ratio", "float64", "ratio", "hook, step() and watcher over the median step without profiler"),
        Column("window_ns", "int64", "ns", "time in which opening and exporting windows held the loop up, in all"),
        Column("window_ratio", "float64", "ratio", "median step in a window over median step outside"),
        Column("note", "object", "", "why a value is unknown"),
    ),
)

Tables = Mapping[str, Table]


def step_times(trace: Trace, _: Tables, settings: Settings) -> tuple[Table, ...]:
    """The table step_times: a row a recorded step. blocked_ns is a lower bound where the note says that waits are unseen."""
    steps = _asked(trace.recorded_steps, settings)
    records = trace.recorded_collectives
    index = pd.MultiIndex.from_frame(steps[["rank", "step"]])
    by_step = records.assign(
        seen=(records["wait_start_ns"] != NONE).astype(np.int64),
        blocked=records["blocked_ns"].clip(lower=0),
        bytes=records["size_bytes"].clip(lower=0),
    ).groupby(["rank", "step"])
    sums = by_step[["seen", "blocked", "bytes"]].sum().reindex(index, fill_value=0)
    counts = by_step.size().reindex(index, fill_value=0).to_numpy()
    seen, blocked = sums["seen"].to_numpy(), sums["blocked"].to_numpy()
    notes = [_step_note(n, s) for n, s in zip(counts.tolist(), seen.tolist(), strict=True)]
    columns = {
        "rank": steps["rank"].to_numpy(),
        "step": steps["step"].to_numpy(),
        "phase": _nullable(steps["phase"]),
        "window": _known(steps["window"].to_numpy()),
        "duration_ns": steps["end_ns"].to_numpy() - steps["start_ns"].to_numpy(),
        "cpu_ns": _known(steps["cpu_ns"].to_numpy()),
        "blocked_ns": _nulled(blocked, (counts > 0) & (seen == 0)),
        "collectives": counts,
        "size_bytes": sums["bytes"].to_numpy(),
        "note": notes,
    }
    return (Table.of(STEP_TIMES, columns),)


def waits(trace: Trace, _: Tables, settings: Settings) -> tuple[Table, ...]:
    """The table waits: a row a rank, kind and group. All waited for at once means that no overlap was possible."""
    records = _asked(trace.recorded_collectives, settings)
    records = records[records["phase"].isna() | (records["phase"] == CONCURRENT)]
    frame = pd.DataFrame(
        {
            "rank": records["rank"].to_numpy(),
            "collective": _nullable(records["collective"]),
            "group": _nullable(records["group"]),
            "at_once": waited_at_once(records),
            "unseen": (records["wait_start_ns"] == NONE).to_numpy() & (records["asynchronous"].to_numpy() != False),  # noqa: E712  # None means unknown
            "size_bytes": records["size_bytes"].to_numpy(),
            "duration_ns": np.where(records["end_ns"] >= 0, records["end_ns"] - records["start_ns"], np.nan),
            "blocked_ns": np.where(records["blocked_ns"] >= 0, records["blocked_ns"], np.nan),
        }
    )
    rows = [_wait_row(part) for _, part in frame.groupby(["rank", "collective", "group"], dropna=False, sort=True)]
    return (Table.of(WAITS, _columns(rows)),)


def overhead(trace: Trace, _: Tables, settings: Settings) -> tuple[Table, ...]:
    """The table overhead: a row a rank that has a manifest."""
    del settings
    rows = [_overhead_row(rank, trace) for rank in trace.recorded_steps["rank"].unique().tolist()]
    return (Table.of(OVERHEAD, _columns(rows)),)


def waited_at_once(records: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which of the recorded collectives were waited for with no time to compute between call and wait.

    async_op=False says so by itself; otherwise the wait began within AT_ONCE_NS, or AT_ONCE_SHARE of the duration.
    """
    gap = records["wait_start_ns"].to_numpy() - records["launch_end_ns"].to_numpy()
    duration = np.maximum(records["end_ns"].to_numpy() - records["start_ns"].to_numpy(), 0)
    soon = (records["wait_start_ns"].to_numpy() != NONE) & (gap <= np.maximum(AT_ONCE_NS, AT_ONCE_SHARE * duration))
    return np.asarray(soon | (records["asynchronous"].to_numpy() == False), bool)  # noqa: E712  # None means unknown


def _wait_row(part: pd.DataFrame) -> dict[str, Any]:
    n, at_once, unseen = len(part), int(part["at_once"].sum()), int(part["unseen"].sum())
    note: str | None
    if at_once == n:
        note = "no overlap was possible: every one was waited for at once"
    else:
        note = f"{unseen} waits inside torch are not seen; blocked_ns is a lower bound" if unseen else None
    return {
        **{name: part[name].iloc[0] for name in ("rank", "collective", "group")},
        "n": n,
        "n_at_once": at_once,
        "n_unseen": unseen,
        "size_bytes": int(part["size_bytes"].median()),
        "duration_ns": _or_none(part["duration_ns"].median()),
        "blocked_ns": _or_none(part["blocked_ns"].sum(min_count=1)),
        "note": note,
    }


def _overhead_row(rank: int, trace: Trace) -> dict[str, Any]:
    counts = trace.coverage.get(rank, {})
    steps = trace.recorded_steps[trace.recorded_steps["rank"] == rank]
    duration, windowed = (steps["end_ns"] - steps["start_ns"]).to_numpy(), (steps["window"] != NONE).to_numpy()
    # The first step pays for what is loaded and allocated once; it says nothing about recording.
    windowed, duration = windowed[1:], duration[1:]
    plain = float(np.median(duration[~windowed])) if (~windowed).any() else np.nan
    inside = float(np.median(duration[windowed])) if windowed.any() else np.nan
    n, calls = max(len(steps), 1), counts.get("hook_calls", 0)
    per_step = [counts.get(name, 0) / n for name in ("hook_ns", "collector_step_ns", "watcher_cpu_ns")]
    known = "hook_calls" in counts
    notes = [] if known else ["no manifest from the end of the run"]
    notes += ["no step outside of windows"] if np.isnan(plain) else []
    return {
        "rank": rank,
        "steps": len(steps),
        "hook_calls": calls,
        "hook_ns_per_call": counts.get("hook_ns", 0) / calls if calls else np.nan,
        "hook_ns_per_step": per_step[0] if known else np.nan,
        "step_ns_per_step": per_step[1] if known else np.nan,
        "watcher_ns_per_step": per_step[2] if known else np.nan,
        "overhead_ratio": sum(per_step) / plain if known else np.nan,
        "window_ns": counts.get("window_ns", 0),
        "window_ratio": inside / plain,
        "note": "; ".join(notes) or None,
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _step_note(collectives: int, seen: int) -> str | None:
    if not collectives or seen == collectives:
        return None
    return f"{collectives - seen} of {collectives} waits were not seen (inside torch, or none)"


def _asked(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    if settings.steps is None:
        return frame
    low, high = settings.steps
    return frame[(frame["step"] >= low) & (frame["step"] <= high)]


def _nullable(column: pd.Series) -> npt.NDArray[np.object_]:
    return _nulled(column.astype(object).to_numpy(), column.isna().to_numpy())


def _known(values: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    return _nulled(values, values == NONE)


def _nulled(values: npt.NDArray[Any], unknown: npt.NDArray[np.bool_]) -> npt.NDArray[np.object_]:
    """The values, None where unknown."""
    result = values.astype(object)
    result[unknown] = None
    return result


def _or_none(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
