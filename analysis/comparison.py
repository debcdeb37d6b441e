"""Two runs → what changed, per part of the step, class, kernel and collective.

A sample is one step: the mean over the ranks and devices of what they spent in it. The first step of each run is left out when there
are three or more. The interval of a difference of means is Welch's, 95 %, unadjusted; without two steps on a side there is none.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.overlap import OUTSIDE
from c3prof.analysis.significance import t_factor
from c3prof.table import Column, Report, Schema, Table
from c3prof.trace import Trace

_COLUMNS = (
    Column("first_ns", "float64", "ns", "mean a step, rank and device in the first run; null when it is not in it"),
    Column("second_ns", "float64", "ns", "the same in the second run"),
    Column("change_ns", "float64", "ns", "second minus first"),
    Column("change_low", "float64", "ns", "lower bound of the 95 % interval; null without two steps in each run"),
    Column("change_high", "float64", "ns", "upper bound"),
    Column("changed", "bool", "", "whether the interval excludes no change"),
    Column("n_first", "int64", "", "steps in the first run"),
    Column("n_second", "int64", "", "steps in the second run"),
    Column("note", "object", "", "why there is no interval, or no number"),
)

_KEYS = {
    "change_by_part": ("Change by part of the step", Column("part", "object", "", "column of the table overlap")),
    "change_by_class": (
        "Change by class of kernel",
        Column("kernel_class", "object", "", "class of kernel, kind of collective for communication"),
    ),
    "change_by_kernel": ("Change by kernel", Column("kernel", "object", "", "kernel name")),
    "change_by_collective": ("Change by kind of collective", Column("collective", "object", "", "kind of collective")),
}

SCHEMAS = {name: Schema(name, title, (key, *_COLUMNS)) for name, (title, key) in _KEYS.items()}

_PARTS = ("span_ns", "compute_ns", "comm_ns", "hidden_ns", "exposed_ns", "copy_ns", "idle_ns")

Samples: TypeAlias = pd.DataFrame
"""ns of each step (rows) and key (columns)."""


def comparison(first: tuple[Trace, Report], second: tuple[Trace, Report]) -> Mapping[str, Table]:
    """The tables of SCHEMAS for two runs, what changed most first."""
    samples = {
        "change_by_part": [_parts(report) for _, report in (first, second)],
        "change_by_class": [_by(trace.activities, "kernel_class") for trace, _ in (first, second)],
        "change_by_kernel": [_by(trace.activities, "name") for trace, _ in (first, second)],
        "change_by_collective": [_by(trace.collectives, "collective") for trace, _ in (first, second)],
    }
    return {name: _changes(SCHEMAS[name], *pair) for name, pair in samples.items()}


def _parts(report: Report) -> Samples:
    for name in ("overlap_by_step", "overlap"):
        frame = report[name].frame if name in report else pd.DataFrame()
        if name == "overlap_by_step" and len(frame):
            frame = frame[frame["step"].notna() & (frame["step"].astype(str) != OUTSIDE)]
        if len(frame):
            values = frame[list(_PARTS)].apply(pd.to_numeric, errors="coerce").astype(np.float64)
            step = frame["step"].astype(str).astype(np.int64) if name == "overlap_by_step" else pd.Series(0, frame.index)
            return _warm(values.groupby(step).mean())
    return pd.DataFrame()


def _by(frame: pd.DataFrame, key: str) -> Samples:
    """ns of each step and value of a column, mean over the ranks and devices that were recorded."""
    if not len(frame):
        return pd.DataFrame()
    lanes = len(frame[["rank", "device"]].drop_duplicates())
    has_steps = (frame["step"] >= 0).any()
    kept = frame[frame["step"] >= 0] if has_steps else frame
    time = (kept["end_ns"] - kept["start_ns"]).astype(np.float64)
    names = kept[key].astype(object).fillna("unknown").astype(str)
    sums = pd.DataFrame({"time": time, "step": kept["step"], "key": names}).pivot_table("time", "step", "key", "sum", fill_value=0.0)
    return _warm(sums / lanes)


def _warm(samples: Samples) -> Samples:
    return samples.iloc[1:] if len(samples) >= 3 else samples


def _changes(schema: Schema, first: Samples, second: Samples) -> Table:
    keys = list(dict.fromkeys([*first.columns, *second.columns]))
    one, other = (_moments(side, keys) for side in (first, second))
    change = np.nan_to_num(other[0]) - np.nan_to_num(one[0])
    change[np.isnan(one[0]) & np.isnan(other[0])] = np.nan
    half = _half_width(one, other, len(first), len(second))
    low, high = change - half, change + half
    enough = len(first) >= 2 and len(second) >= 2
    data = {
        schema.columns[0].name: keys,
        "first_ns": one[0],
        "second_ns": other[0],
        "change_ns": change,
        "change_low": low,
        "change_high": high,
        "changed": (low > 0) | (high < 0),
        "n_first": np.full(len(keys), len(first)),
        "n_second": np.full(len(keys), len(second)),
        "note": [_note(key, first, second, enough=enough) for key in keys],
    }
    order = np.argsort(-np.abs(np.nan_to_num(change)), kind="stable")
    return Table.of(schema, schema.frame(data).iloc[order].reset_index(drop=True)) if keys else Table.of(schema)


def _moments(samples: Samples, keys: list[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and squared standard error of each key; NaN and 0 for a key that the run does not have."""
    values = samples.reindex(columns=keys)
    mean = values.mean().to_numpy(np.float64) if len(values) else np.full(len(keys), np.nan)
    error = values.var(ddof=1).to_numpy(np.float64) / len(values) if len(values) > 1 else np.full(len(keys), np.nan)
    return mean, np.where(np.isnan(mean), 0.0, error)


def _half_width(
    one: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    other: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    n: int,
    m: int,
) -> npt.NDArray[np.float64]:
    """t · sqrt(e₁ + e₂) with the degrees of freedom of Welch and Satterthwaite; NaN without two steps on each side."""
    if n < 2 or m < 2:
        return np.full(len(one[1]), np.nan)
    total = one[1] + other[1]
    spread = one[1] ** 2 / (n - 1) + other[1] ** 2 / (m - 1)
    freedom = np.divide(total**2, spread, out=np.full(len(total), float(n + m - 2)), where=spread > 0)
    return np.asarray(t_factor(freedom) * np.sqrt(total), np.float64)


def _note(key: str, first: Samples, second: Samples, *, enough: bool) -> str:
    notes = [f"not in the {which} run" for which, side in (("first", first), ("second", second)) if key not in side.columns]
    return "; ".join(notes + ([] if enough else ["no interval: fewer than two steps in a run"]))
