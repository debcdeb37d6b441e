"""What overlap costs in power and clock: samples of the collectors, joined to when the device did what.

A sample belongs to the instant at which it was taken; drivers average over tens of milliseconds before it, so a window
with fewer than three samples says nothing. Energy is mean power times time.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from c3prof.analysis import intervals
from c3prof.analysis.busy import busy
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.intervals import Spans
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import lanes
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace
from c3prof.units import NS_PER_S

FEWEST_SAMPLES = 3
POWER_COUNTER = "power [W]"

POWER = Schema(
    "power",
    "Power and clocks inside and outside of overlap",
    (
        Column("rank", "int32", "", "global rank"),
        Column("counter", "object", "", "what was sampled, with its unit"),
        Column("where", "object", "", "overlap, no overlap (the rest of what a profiler recorded), or all steps"),
        Column("samples", "int64", "", "samples in it"),
        Column("time_ns", "int64", "ns", "length of it"),
        Column("mean", "float64", "", "mean of the samples, in the counter's unit"),
        Column("peak", "float64", "", "largest sample"),
        Column("energy_j", "float64", "J", "mean power x time; power only"),
        Column("energy_per_step_j", "float64", "J", "energy of all steps over their number; power only"),
        Column("note", "object", "", "why a value is unknown"),
    ),
)


def power(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The table power: a row a counter and place where the collectors sampled; empty without samples."""
    rows: list[dict[str, Any]] = []
    for one in trace.each_rank() if len(trace.counters) else ():
        names = one.counters["name"].astype(object).to_numpy()
        for name in [n for n in dict.fromkeys(names) if n.endswith("]")]:
            at = one.counters["at_ns"].to_numpy()[names == name]
            values = one.counters["value"].to_numpy()[names == name]
            for where, spans, steps in _places(one, settings):
                rows.append({"rank": one.rank_numbers[0], "counter": name, "where": where} | _measured(name, at, values, spans, steps))
    return (Table.of(POWER, {column: [row[column] for row in rows] for column in POWER.names} if rows else None),)


def _places(trace: Trace, settings: Settings) -> list[tuple[str, Spans, int]]:
    """Names, instants and numbers of steps of the places that power is told for."""
    places = []
    found = list(lanes(trace, work(trace), settings))
    if found:
        hidden = [intervals.intersection(now.p, now.q) for now in (busy(lane.rows) for lane in found)]
        inside = intervals.union(np.concatenate([s.starts for s in hidden]), np.concatenate([s.ends for s in hidden]))
        asked = intervals.union(np.concatenate([lane.asked.starts for lane in found]), np.concatenate([lane.asked.ends for lane in found]))
        inside = intervals.intersection(inside, asked)
        places += [("overlap", inside, 0), ("no overlap", intervals.difference(asked, inside), 0)]
    steps = trace.recorded_steps
    if len(steps):
        places.append(("all steps", intervals.union(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()), len(steps)))
    return places


def _measured(name: str, at: npt.NDArray[np.int64], values: npt.NDArray[np.float64], spans: Spans, steps: int) -> dict[str, Any]:
    inside = values[intervals.contains(spans, at)]
    time_ns = intervals.total(spans)
    enough = len(inside) >= FEWEST_SAMPLES
    mean = float(inside.mean()) if enough else np.nan
    energy = mean * time_ns / NS_PER_S if name == POWER_COUNTER else np.nan
    return {
        "samples": len(inside),
        "time_ns": time_ns,
        "mean": mean,
        "peak": float(inside.max()) if enough else np.nan,
        "energy_j": energy,
        "energy_per_step_j": energy / steps if steps else np.nan,
        "note": None if enough else f"fewer than {FEWEST_SAMPLES} samples",
    }
