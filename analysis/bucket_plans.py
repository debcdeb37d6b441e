"""What other gradient buckets would do: merging neighbours, by replay of when each was ready (MG-WFBP)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c3prof.analysis.bandwidth import Line, line_of
from c3prof.analysis.joined import Joined
from c3prof.analysis.waits import Waits
from c3prof.table import Column, Schema, Table

Floats = npt.NDArray[np.float64]

BUCKET_PLANS = Schema(
    "bucket_plans",
    "Gradient all_reduces of a step, merged in other ways and replayed with the fitted latency and bandwidth",
    (
        Column("group", "object", "", "process group"),
        Column("plan", "object", "", "recorded; merged: the partition into neighbours that ends first; single: all in one"),
        Column("n_buckets", "int64", "", "all_reduces of a step"),
        Column("buckets", "object", "", "recorded buckets in each: 1+1+2"),
        Column("total_bytes", "int64", "B", "all buckets together"),
        Column("tail_ns", "float64", "ns", "end of communication after the last bucket was ready: what the step pays"),
        Column("saved_ns", "float64", "ns", "tail of the recorded plan − tail of this one"),
        Column("n_steps", "int64", "", "steps whose medians were replayed"),
        Column("measured_tail_ns", "float64", "ns", "the same of the recorded plan, as measured; how far the replay is to be trusted"),
        Column("note", "object", "", "what the replay assumes, or why there is none"),
    ),
)

MOST_BUCKETS = 512
"""More all_reduces a step than this are not gradient buckets."""


@dataclass(frozen=True)
class Plan:
    """sizes: how many neighbouring buckets go into each message, first to last; end: when the last message is there."""

    sizes: tuple[int, ...]
    end: float


def bucket_plans(run: Joined, split: Waits, groups: Table, fit: Table) -> Table:
    """Table `bucket_plans`, three rows for each group of dimension dp whose steps all have the same all_reduces.

    A bucket is ready at its last arrival, or before, where it queued behind the one before it: then at its launch.
    """
    rows: list[tuple[object, ...]] = []
    for code, dimension in enumerate(groups.frame["dimension"]):
        if dimension != "dp":
            continue
        name = groups.frame.loc[code, "group"]
        steps = _steps(run, split, code)
        line = line_of(fit.frame, "all_reduce", name)
        if steps is not None and line is not None:
            rows += [(name, *row) for row in _replayed(*steps, line)]
    return Table.of(BUCKET_PLANS, dict(zip(BUCKET_PLANS.names, map(list, zip(*rows, strict=True)), strict=True)) if rows else None)


def replayed_end(ready: Floats, size: Floats, sizes: tuple[int, ...], alpha: float, bandwidth: float) -> float:
    """When the last message of a plan is there: each starts when its last bucket is ready and the one before is done."""
    end, at = -np.inf, 0
    for count in sizes:
        members = slice(at, at + count)
        end = max(end, float(ready[members].max())) + alpha + float(size[members].sum()) / bandwidth
        at += count
    return end


def earliest_plan(ready: Floats, size: Floats, alpha: float, bandwidth: float) -> Plan:
    """The partition into neighbours whose last message ends first; among equals the one with fewest messages.

    Exact: an earlier end of the first j buckets never delays the rest, so best(j) = min over i < j of
    max(best(i), latest ready of i…j) + α + bytes(i…j) / B.
    """
    n = len(size)
    total = np.concatenate([[0.0], np.cumsum(size)])
    best = [(-np.inf, 0)] + [(np.inf, 0)] * n
    origin = [0] * (n + 1)
    for j in range(1, n + 1):
        latest = -np.inf
        for i in range(j - 1, -1, -1):
            latest = max(latest, float(ready[i]))
            end = max(best[i][0], latest) + alpha + float(total[j] - total[i]) / bandwidth
            if (end, best[i][1] + 1) < best[j]:
                best[j], origin[j] = (end, best[i][1] + 1), i
    sizes: list[int] = []
    while n:
        sizes.append(n - origin[n])
        n = origin[n]
    return Plan(tuple(reversed(sizes)), best[-1][0])


def _steps(run: Joined, split: Waits, code: int) -> tuple[Floats, Floats, int, float] | None:
    """Medians over the steps of ready times (from the first) and sizes, the number of steps, and the measured tail."""
    frame = run.trace.collectives
    rows = np.flatnonzero(
        run.asked
        & (run.groups.code == code)
        & (frame["collective"] == "all_reduce").to_numpy()
        & np.isfinite(split.transfer_ns)
        & (frame["step"] >= 0).to_numpy()
    )
    if not len(rows):
        return None
    picked = frame.iloc[rows][["step", "start_ns", "end_ns", "launch_end_ns", "size_bytes"]].assign(operation=split.operation[rows])
    operations = picked.groupby("operation").agg(
        step=("step", "first"),
        start=("start_ns", "max"),
        end=("end_ns", "max"),
        launch=("launch_end_ns", "max"),
        size=("size_bytes", "first"),
    )
    operations = operations.sort_values(["step", "start"])
    counts = operations.groupby("step").size()
    n = int(counts.mode().iloc[0])
    whole = operations[operations["step"].isin(counts.index[counts == n])]
    sizes = whole["size"].to_numpy().reshape(-1, n)
    whole_steps = (sizes == sizes[0]).all(axis=1)
    if n < 2 or n > MOST_BUCKETS or whole_steps.sum() < 3 or (sizes[0] <= 0).any():
        return None
    start, end, launch = (whole[c].to_numpy().reshape(-1, n)[whole_steps] for c in ("start", "end", "launch"))
    ready = start.copy()
    queued = start[:, 1:] - end[:, :-1] < _QUEUED_NS
    ready[:, 1:][queued] = np.maximum(np.minimum(launch, start)[:, 1:], ready[:, :-1])[queued]
    relative = (ready - ready[:, :1]).astype(np.float64)
    tail = float(np.median(end[:, -1] - ready[:, -1]))
    return np.median(relative, axis=0), sizes[0].astype(np.float64), len(relative), tail


_QUEUED_NS = 10_000
"""A message that starts this soon after the one before was waiting for it."""


def _replayed(ready: Floats, size: Floats, n_steps: int, measured: float, line: Line) -> list[tuple[object, ...]]:
    n = len(size)
    model = (max(line.alpha, 0.0), line.bandwidth)
    plans = {name: Plan(sizes, replayed_end(ready, size, sizes, *model)) for name, sizes in {"recorded": (1,) * n, "single": (n,)}.items()}
    plans["merged"] = earliest_plan(ready, size, *model)
    tails = {name: plan.end - float(ready.max()) for name, plan in plans.items()}
    note = "messages one after another on one stream; no slowdown of the compute that runs beside them"
    rows: list[tuple[object, ...]] = []
    for name in ("recorded", "merged", "single"):
        shown = "+".join(map(str, plans[name].sizes)) if n <= 64 else f"{len(plans[name].sizes)} messages"
        rows.append(
            (
                name,
                len(plans[name].sizes),
                shown,
                int(size.sum()),
                tails[name],
                tails["recorded"] - tails[name],
                n_steps,
                measured if name == "recorded" else np.nan,
                note,
            )
        )
    return rows
