"""Serialized against concurrent steps of one run: how much of the possible gain of overlap is realized, from the hook alone.

docs/metrics.md §4. With T the median over steps of a phase (each step as long as its slowest rank):
serial = T(serialized), concurrent = T(concurrent), comm = the collectives of a serialized step, each as long as on the
rank that waited least, compute = serialized step minus its collectives on the rank where that is longest,
ideal = max(compute, comm), realized_by_time = (serial - concurrent) / (serial - ideal).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.recorded import waited_at_once
from c3prof.analysis.settings import Settings
from c3prof.records import CONCURRENT, SERIALIZED
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

FEWEST_STEPS = 3
LEAST_IDEAL_SPEEDUP = 1.05
_RESAMPLES = 1_000
_LEVELS = (0.025, 0.975)

CALIBRATION = Schema(
    "calibration",
    "Serialized against concurrent steps of this run",
    (
        Column("ranks", "int64", "", "ranks that recorded them"),
        Column("n_serialized", "int64", "", "serialized steps"),
        Column("n_concurrent", "int64", "", "concurrent steps"),
        Column("serial_ns", "float64", "ns", "serialized step"),
        Column("concurrent_ns", "float64", "ns", "concurrent step"),
        Column("compute_ns", "float64", "ns", "serialized step without its collectives"),
        Column("comm_ns", "float64", "ns", "collectives of a serialized step, waiting for late ranks not counted"),
        Column("ideal_ns", "float64", "ns", "the longer of the two"),
        Column("ideal_speedup", "float64", "ratio", "serial_ns / ideal_ns"),
        Column("real_speedup", "float64", "ratio", "serial_ns / concurrent_ns"),
        Column("real_speedup_low", "float64", "ratio", "lower end of its 95 % interval"),
        Column("real_speedup_high", "float64", "ratio", "upper end"),
        Column("realized_by_time", "float64", "ratio", "(serial - concurrent) / (serial - ideal): fraction of the ideal gain"),
        Column("realized_by_time_low", "float64", "ratio", "lower end of its 95 % interval (bootstrap over steps)"),
        Column("realized_by_time_high", "float64", "ratio", "upper end"),
        Column("n_at_once", "int64", "", "collectives of concurrent steps that were waited for at once"),
        Column("n_collectives", "int64", "", "collectives of concurrent steps"),
        Column("note", "object", "", "why a value is unknown"),
    ),
)

Floats = npt.NDArray[np.float64]


def calibration(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The table calibration: one row for the run when its collectors alternated phases, none otherwise."""
    steps = trace.recorded_steps
    steps = steps[steps["phase"].isin([SERIALIZED, CONCURRENT])]
    if not len(steps):
        return (Table.of(CALIBRATION),)
    records = trace.recorded_collectives
    wall = _slowest(steps)
    serialized, concurrent = (wall[wall["phase"] == phase] for phase in (SERIALIZED, CONCURRENT))
    compute, comm = _sides(steps, records)
    in_concurrent = records[(records["phase"] == CONCURRENT).to_numpy()]
    row: dict[str, Any] = {
        "ranks": steps["rank"].nunique(),
        "n_serialized": len(serialized),
        "n_concurrent": len(concurrent),
        "n_at_once": int(waited_at_once(in_concurrent).sum()),
        "n_collectives": len(in_concurrent),
    }
    enough = min(len(serialized), len(concurrent)) >= FEWEST_STEPS and len(comm) >= FEWEST_STEPS
    row |= (
        _measures(serialized["duration_ns"].to_numpy(), concurrent["duration_ns"].to_numpy(), compute, comm, settings.seed)
        if enough
        else _UNKNOWN
    )
    return (Table.of(CALIBRATION, pd.DataFrame([_judged(row, enough=enough)])),)


def _slowest(steps: pd.DataFrame) -> pd.DataFrame:
    """Duration of each step on its slowest rank, with its phase."""
    timed = steps.assign(duration_ns=steps["end_ns"] - steps["start_ns"], phase=steps["phase"].astype(object))
    return timed.groupby("step", as_index=False).agg(duration_ns=("duration_ns", "max"), phase=("phase", "first"))


def _sides(steps: pd.DataFrame, records: pd.DataFrame) -> tuple[Floats, Floats]:
    """Compute and communication of each serialized step, ns."""
    alone = records[(records["phase"] == SERIALIZED).to_numpy() & (records["end_ns"] >= 0).to_numpy()]
    alone = alone.assign(
        duration_ns=alone["end_ns"] - alone["start_ns"], group=alone["group"].astype(object), collective=alone["collective"].astype(object)
    )
    least = alone.groupby(["step", "group", "collective", "seq", "peer"], dropna=False)["duration_ns"].min().groupby("step").sum()
    serialized = steps[(steps["phase"] == SERIALIZED).to_numpy()]
    own = alone.groupby(["rank", "step"])["duration_ns"].sum().reindex(pd.MultiIndex.from_frame(serialized[["rank", "step"]]), fill_value=0)
    rest = (serialized["end_ns"] - serialized["start_ns"]).to_numpy() - own.to_numpy()
    compute = pd.Series(rest, index=serialized["step"].to_numpy()).groupby(level=0).max()
    both = compute.index.intersection(least.index)
    return compute.loc[both].to_numpy(np.float64), least.loc[both].to_numpy(np.float64)


_MEASURED = (
    "serial_ns", "concurrent_ns", "compute_ns", "comm_ns", "ideal_ns", "ideal_speedup",
    "real_speedup", "real_speedup_low", "real_speedup_high", "realized_by_time", "realized_by_time_low", "realized_by_time_high",
)  # fmt: skip
_UNKNOWN = dict.fromkeys(_MEASURED, np.nan)


def _measures(serialized: Floats, concurrent: Floats, compute: Floats, comm: Floats, seed: int) -> dict[str, float]:
    """The row's numbers; intervals by resampling steps."""
    draw = np.random.default_rng(seed).integers
    serial_s, concurrent_s = (np.median(v[draw(0, len(v), (_RESAMPLES, len(v)))], axis=1) for v in (serialized, concurrent))
    picked = draw(0, len(comm), (_RESAMPLES, len(comm)))
    ideal_s = np.maximum(np.median(compute[picked], axis=1), np.median(comm[picked], axis=1))
    serial, together, alone, sent = (float(np.median(v)) for v in (serialized, concurrent, compute, comm))
    ideal = max(alone, sent)
    speedup_low, speedup_high = np.quantile(serial_s / concurrent_s, _LEVELS)
    realized_low, realized_high = np.quantile((serial_s - concurrent_s) / (serial_s - ideal_s), _LEVELS)
    return {
        "serial_ns": serial,
        "concurrent_ns": together,
        "compute_ns": alone,
        "comm_ns": sent,
        "ideal_ns": ideal,
        "ideal_speedup": serial / ideal,
        "real_speedup": serial / together,
        "real_speedup_low": float(speedup_low),
        "real_speedup_high": float(speedup_high),
        "realized_by_time": (serial - together) / (serial - ideal),
        "realized_by_time_low": float(realized_low),
        "realized_by_time_high": float(realized_high),
    }


def _judged(row: dict[str, Any], *, enough: bool) -> dict[str, Any]:
    """The row with its note, and without a fraction that would mean nothing."""
    note = None
    if not enough:
        note = f"fewer than {FEWEST_STEPS} steps of a phase with collectives"
    elif row["n_collectives"] and row["n_at_once"] == row["n_collectives"]:
        note = "no overlap was possible: every collective was waited for at once"
    elif row["ideal_speedup"] < LEAST_IDEAL_SPEEDUP:
        note = f"ideal_speedup below {LEAST_IDEAL_SPEEDUP}: there is next to nothing to gain"
    if note:
        row |= dict.fromkeys(("realized_by_time", "realized_by_time_low", "realized_by_time_high"), np.nan)
    return row | {"note": note}
