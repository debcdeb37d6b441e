"""Spans of serialized and concurrent steps, as recorded: what a calibration measures (docs/metrics.md §4)."""

import numpy as np
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import cpu_windows, lanes, step_windows
from c3prof.kernels import COMM, COMPUTE, FUSED
from c3prof.records import SERIALIZED
from c3prof.table import Column, Schema
from c3prof.trace import CPU_DEVICE, Trace

PHASE_STEPS = Schema(
    "_phase_steps",
    "Steps of a calibrated run on each device, the serialized ones too",
    (
        Column("rank", "int32", "", "global rank"),
        Column("device", "object", "", "device number, or cpu"),
        Column("step", "int64", "", "step number"),
        Column("phase", "object", "", "serialized, concurrent or discarded"),
        Column("span_ns", "int64", "ns", "length of its window"),
        Column("compute_ns", "int64", "ns", "time in which something computes"),
        Column("comm_ns", "int64", "ns", "time in which something communicates"),
    ),
)


def phase_steps(trace: Trace) -> list[pd.DataFrame]:
    """Rows of PHASE_STEPS for each device; none where no step was serialized. The first step is left out."""
    phases = trace.steps[["rank", "step", "phase"]].astype({"phase": object})
    if not (phases["phase"] == SERIALIZED).any():
        return []
    found = []
    for lane in lanes(trace, work(trace), Settings()):
        windows = step_windows(lane.rows) if lane.device != CPU_DEVICE else cpu_windows(trace, lane.rank, lane.run)
        start, end, kind = (lane.rows[name].to_numpy() for name in ("start_ns", "end_ns", "class"))
        columns = {"rank": lane.rank, "device": lane.label, "step": windows.steps, "span_ns": windows.ends - windows.starts}
        for name, classes in (("compute_ns", [COMPUTE, FUSED]), ("comm_ns", [COMM, FUSED])):
            chosen = np.isin(kind.astype(object), classes)
            columns[name] = intervals.shared_ns(windows.starts, windows.ends, intervals.union(start[chosen], end[chosen]))
        found.append(pd.DataFrame(columns).iloc[1:].merge(phases, on=["rank", "step"]))
    return found
