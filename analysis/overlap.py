"""How much communication compute hides, exactly, for the run and for each step (docs/metrics.md §2).

P is when a compute or fused kernel runs, Q when a comm or fused kernel runs, each on any stream of one device.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from c3prof.analysis import intervals
from c3prof.analysis.busy import Busy, busy, class_masks, collective_keys
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Spans
from c3prof.analysis.rows import DEVICE, NO_COMM, NOTE, RANK, notes
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

Columns = Mapping[str, npt.NDArray[Any]]

_TIMES = (
    Column("span_ns", "int64", "ns", "length of the window"),
    Column("compute_ns", "int64", "ns", "|P|: something computes"),
    Column("comm_ns", "object", "ns", "|Q|: something communicates; null when only fused kernels do"),
    Column("copy_ns", "int64", "ns", "|U(copy)|: memcpy and memset"),
    Column("hidden_ns", "object", "ns", "|P and Q|: communication behind compute; null when only fused kernels communicate"),
    Column("exposed_ns", "int64", "ns", "|Q - P|: communication with no compute at the same instant"),
    Column("exposed_copy_ns", "int64", "ns", "|U(copy) - P - Q|: copies with nothing else"),
    Column("idle_ns", "int64", "ns", "nothing runs"),
    Column("fused_ns", "int64", "ns", "|U(fused)|: part of comm and hidden that cannot be separated"),
    Column("comm_overlap_ns", "int64", "ns", "two or more collectives run; fused kernels are not counted"),
    Column("hidden_ratio", "float64", "ratio", "hidden_ns / comm_ns"),
    Column("covered_ratio", "float64", "ratio", "hidden_ns / compute_ns"),
    NOTE,
)

OVERLAP = Schema(
    "overlap",
    "Overlap of compute and communication, a row a rank and device",
    (RANK, DEVICE, Column("source", "object", "", "the file that the row comes from"), *_TIMES),
)
BY_STEP = Schema(
    "overlap_by_step",
    "Overlap by step; the additive columns sum to the run",
    (
        RANK,
        DEVICE,
        Column("step", "object", "", "step number; outside for what lies in no step; null when the file has no steps"),
        *_TIMES,
    ),
)
SCHEMAS = (OVERLAP, BY_STEP)

OUTSIDE = "outside"
"""Value of `step` in overlap_by_step for what lies outside all steps."""
NO_COMPUTE, NO_STEPS, UNATTRIBUTABLE = "no compute", "no steps in the file", "unattributable fused kernel"


def overlap(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, Table]:
    """The tables overlap and overlap_by_step. compute_ns + exposed_ns + exposed_copy_ns + idle_ns = span_ns on every row.

    Steps asked for in the settings are the whole window of `overlap`; without them it is the first start to the last
    end of device activity.
    """
    runs, steps = [], []
    paths: dict[int, str] = {}
    for rank, path in zip(trace.ranks["rank"].tolist(), trace.ranks["path"].tolist(), strict=True):
        paths[rank] = f"{paths[rank]}, {path}" if rank in paths else path
    for lane in lanes(trace, work(trace), settings):
        of_run, of_steps = _run_and_steps(lane)
        runs.append(_placed(lane, {**of_run, "source": np.array([paths.get(lane.rank, "")], object)}))
        steps.append(_placed(lane, of_steps))
    return _table(OVERLAP, runs), _table(BY_STEP, steps)


def _placed(lane: Lane, rows: Columns) -> Columns:
    n = len(rows["span_ns"])
    return {**rows, "rank": np.full(n, lane.rank, np.int32), "device": np.full(n, lane.label, object)}


def _table(schema: Schema, parts: Sequence[Columns]) -> Table:
    return Table.of(schema, {name: np.concatenate([part[name] for part in parts]) for name in schema.names} if parts else None)


def _run_and_steps(lane: Lane) -> tuple[Columns, Columns]:
    """The row of the run (or of the steps asked for) and the rows of its steps, with `outside` when there is such time."""
    now = busy(lane.rows)
    sets = _sets(lane, now)
    run = {name: values.sum(keepdims=True) for name, values in _measured(sets, lane.asked).items()}
    steps = _measured(sets, Spans(lane.steps.starts, lane.steps.ends))
    numbers: list[int | str | None] = lane.steps.steps.tolist()
    outside = {name: total - steps[name].sum() for name, total in run.items()}
    if not numbers:
        steps, numbers = run, [None]
    elif outside["span_ns"] > 0:
        steps, numbers = {name: np.append(values, outside[name]) for name, values in steps.items()}, [*numbers, OUTSIDE]
    only_fused = bool(len(now.fused.starts)) and not len(now.comm.starts)
    why = NO_STEPS if numbers == [None] else None
    with_numbers = {**steps, "step": np.array(numbers, object)}
    return _finished(run, None, only_fused=only_fused), _finished(with_numbers, why, only_fused=only_fused)


def _sets(lane: Lane, now: Busy) -> dict[str, Spans]:
    """The instants that each time column counts, and those of pure communication and of anything, inside the window."""
    start, end, comm = lane.rows["start_ns"].to_numpy(), lane.rows["end_ns"].to_numpy(), class_masks(lane.rows)[COMM]
    either = intervals.union(np.concatenate([now.p.starts, now.q.starts]), np.concatenate([now.p.ends, now.q.ends]))
    _, low, high = intervals.union_by(collective_keys(lane.rows)[comm], start[comm], end[comm])
    sets = {
        "span_ns": lane.asked,
        "compute_ns": now.p,
        "comm_ns": now.q,
        "copy_ns": now.copy,
        "hidden_ns": intervals.intersection(now.p, now.q),
        "exposed_ns": intervals.difference(now.q, now.p),
        "exposed_copy_ns": intervals.difference(now.copy, either),
        "fused_ns": now.fused,
        "comm_overlap_ns": intervals.at_least(2, low, high),
        "comm": now.comm,
        "anything": now.anything,
    }
    # With gaps between recording windows a step's window may reach into one: nothing was recorded there.
    return sets if len(lane.asked.starts) == 1 else {name: intervals.intersection(spans, lane.asked) for name, spans in sets.items()}


def _measured(sets: Mapping[str, Spans], windows: Spans) -> Columns:
    """How much of each window each set holds, ns."""
    return {
        name: intervals.covered_before(spans, windows.ends) - intervals.covered_before(spans, windows.starts)
        for name, spans in sets.items()
    }


def _finished(rows: Columns, why: str | None, *, only_fused: bool) -> Columns:
    """The rows with idle time, ratios and notes.

    only_fused: nothing but fused kernels communicates in the run; then comm and hidden are unknown on all of its rows,
    so that steps still sum to the run. In a row of another run with only fused kernels the ratios alone are unknown.
    """
    comm, hidden, compute = (rows[name] for name in ("comm_ns", "hidden_ns", "compute_ns"))
    lost = (rows["fused_ns"] > 0) & (rows["comm"] == 0) | only_fused
    reasons = [
        notes(why, UNATTRIBUTABLE if fused else None, None if fused or c else NO_COMM, None if fused or p else NO_COMPUTE)
        for fused, c, p in zip(lost.tolist(), comm.tolist(), compute.tolist(), strict=True)
    ]
    unknown = dict.fromkeys(("comm_ns", "hidden_ns"), np.full(len(lost), None, object)) if only_fused else {}
    return {
        **rows,
        "idle_ns": rows["span_ns"] - rows["anything"],
        "hidden_ratio": ratio(hidden, np.where(lost, 0, comm)),
        "covered_ratio": ratio(hidden, np.where(lost, 0, compute)),
        "note": np.array(reasons, object),
        **unknown,
    }
