"""Report → the sentence that answers first: how much of the step communication costs, and which.

Pure text over tables that are there already; every renderer and the app begin with it.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c3prof.analysis.causes import ADVICE
from c3prof.analysis.overlap import OUTSIDE
from c3prof.records import DISCARDED, SERIALIZED
from c3prof.table import Report
from c3prof.units import text_of_time


@dataclass(frozen=True)
class Headline:
    """The sentence, and the few sentences below it. Both are empty when the report has no overlap table."""

    sentence: str
    details: tuple[str, ...] = ()


def headline(report: Report) -> Headline:
    """What a person should know first, from the tables overlap, overlap_by_step and exposed."""
    if "overlap" not in report:
        return Headline("")
    runs = report["overlap"].frame
    if not len(runs):
        return _light(report)
    base, what = _base(report, runs)
    span = _total(base, "span_ns")
    comm, hidden, exposed = (_total(base, name) for name in ("comm_ns", "hidden_ns", "exposed_ns"))
    if not comm > 0:
        return Headline(_without_comm(base, span, what))
    largest = _largest(report, exposed)
    sentence = _sentence(exposed, span, what, largest)
    if not exposed > 0:
        sentence = f"All communication is hidden behind compute: {text_of_time(comm)}, {percent(comm, span)} of {what}."
    details = (
        _hidden(comm, hidden, exposed),
        _ranks(runs),
        _cause(report, exposed),
        _straggler(report),
        _idle(base, span, exposed, what),
        _cpu(runs),
    )
    return Headline(sentence, tuple(detail for detail in details if detail))


def _light(report: Report) -> Headline:
    """What a run without any profiler window still tells: how long steps take, and how long they wait for collectives."""
    steps = report["step_times"].frame if "step_times" in report else pd.DataFrame()
    if not len(steps):
        return Headline("No device activity and no communication was recorded: there is nothing to account for.")
    steps = steps[~steps["phase"].isin([SERIALIZED, DISCARDED])]
    known = steps[steps["blocked_ns"].notna()]
    took = f"Steps take {text_of_time(float(steps['duration_ns'].median()))} (median of {len(steps):,})"
    why = ("No profiler window was recorded: what is hidden cannot be told, only how long the host waits.",)
    if not len(known):
        return Headline(f"{took}; no wait for a collective was seen.", why)
    blocked, whole = float(known["blocked_ns"].astype(np.float64).sum()), float(known["duration_ns"].sum())
    return Headline(f"{took}; the host waits for collectives {percent(blocked, whole)} of the step.", why)


def percent(part: float, whole: float) -> str:
    """part of whole as a short percentage: 38 %, 4.2 %, < 0.1 %; "an unknown share" when it cannot be known."""
    if not whole > 0 or math.isnan(part):
        return "an unknown share"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "< 0.1 %"
    return f"{share:.0f} %" if share >= 9.95 else f"{share:.1f} %"


def _base(report: Report, runs: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that the shares refer to: the steps where there are any, else the whole run."""
    if "overlap_by_step" in report:
        steps = report["overlap_by_step"].frame
        steps = steps[steps["step"].notna() & (steps["step"].astype(str) != OUTSIDE)]
        if len(steps) and _total(steps, "span_ns") > 0:
            return steps, "the step"
    return runs, "the run"


def _total(frame: pd.DataFrame, column: str) -> float:
    """Sum of the known values of a column, NaN when none is known."""
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)
    return float(np.nansum(values)) if np.isfinite(values).any() else math.nan


def _without_comm(base: pd.DataFrame, span: float, what: str) -> str:
    fused = _total(base, "fused_ns") if "fused_ns" in base else 0.0
    if fused > 0:
        return f"Only fused kernels communicate ({percent(fused, span)} of {what}): how much of it is hidden cannot be told from a trace."
    shares = f"compute fills {percent(_total(base, 'compute_ns'), span)} of {what}, {percent(_total(base, 'idle_ns'), span)} is idle"
    return f"No communication was found; {shares}."


def _sentence(exposed: float, span: float, what: str, largest: tuple[str, float]) -> str:
    start = f"{percent(exposed, span)} of {what} is exposed communication"
    name, share = largest
    if not name:
        return f"{start}."
    if share >= 0.995:
        return f"{start}, all of it {name}."
    return f"{start}, most of it {name}." if share > 0.5 else f"{start}, the largest part ({share * 100:.0f} %) {name}."


def _largest(report: Report, exposed: float) -> tuple[str, float]:
    """The (collective, group) with most exposed time in words, and its share of the table's exposed time."""
    if "exposed" not in report or not len(report["exposed"]) or not exposed > 0:
        return "", 0.0
    frame = exposed_rows(report)
    names = pd.DataFrame(
        {"collective": _words(frame["collective"]), "group": _words(frame["group"]), "ns": frame["exposed_ns"].to_numpy(np.float64)}
    )
    sums = names.groupby(["collective", "group"], sort=True)["ns"].sum()
    if not sums.sum() > 0:
        return "", 0.0
    collective, group = sums.index[int(sums.to_numpy().argmax())]
    name = collective if collective != "unknown" else "of a kind that the trace does not name"
    group = _described(report, group)
    return (f"{name} in group {group}" if group else name), float(sums.max() / sums.sum())


def _described(report: Report, group: str) -> str:
    """A process group by its description (dp, mesh_tp, …) where the program gave one: its name is but a number."""
    if "overlap_by_group" not in report:
        return group
    named = report["overlap_by_group"].frame
    described = named.loc[named["group"].astype(str) == group, "group_desc"].dropna()
    return str(described.iloc[0]) if len(described) and described.iloc[0] != "undefined" else group


def exposed_rows(report: Report) -> pd.DataFrame:
    """The rows of `exposed` that add up to the exposed time once, by collective, group and cause."""
    frame = report["exposed"].frame
    return frame[(frame["by"] == "combination").to_numpy(bool)]


def _words(column: Any) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in column.astype(object)]


def _hidden(comm: float, hidden: float, exposed: float) -> str:
    if not exposed > 0:
        return ""
    if not hidden > 0:
        return f"None of the {text_of_time(comm)} of communication is hidden behind compute."
    return f"{percent(hidden, comm)} of the communication is hidden behind compute ({text_of_time(hidden)} of {text_of_time(comm)})."


def _ranks(runs: pd.DataFrame) -> str:
    """The spread over ranks, when there are several: an average hides the rank that pays."""
    if runs["rank"].nunique() < 2:
        return ""
    sums = runs.groupby("rank", sort=True)[["exposed_ns", "span_ns"]].sum().astype(np.float64)
    shares = (sums["exposed_ns"] / sums["span_ns"].where(sums["span_ns"] > 0)).dropna()
    if not len(shares):
        return ""
    values = shares.to_numpy()
    low, high = int(values.argmin()), int(values.argmax())
    if percent(values[low], 1.0) == percent(values[high], 1.0):
        return f"The exposed share is the same on all {len(shares)} ranks."
    spread = f"from {percent(values[low], 1.0)} (rank {shares.index[low]}) to {percent(values[high], 1.0)} (rank {shares.index[high]})"
    return f"Over {len(shares)} ranks the exposed share of the run goes {spread}."


def _cause(report: Report, exposed: float) -> str:
    if "exposed" not in report or not exposed > 0:
        return ""
    frame = exposed_rows(report)
    sums = pd.Series(frame["exposed_ns"].to_numpy(np.float64)).groupby(_words(frame["cause"])).sum()
    if not len(sums) or not sums.sum() > 0:
        return ""
    cause, share = str(sums.idxmax()), float(sums.max() / sums.sum())
    if cause in ("", "unknown"):
        return ""
    return f"Main cause: {cause} ({percent(share, 1.0)} of the exposed time) – {ADVICE.get(cause, 'see the table exposed')}."


def _straggler(report: Report) -> str:
    """The rank that the others wait for most."""
    if "stragglers" not in report or not len(report["stragglers"]):
        return ""
    rows = report["stragglers"].frame
    row = rows.loc[rows["caused_wait_ns"].idxmax()]
    why = f" ({row['cause']})" if pd.notna(row["cause"]) else ""
    times = f"comes last in {row['n_last']:,} of {row['n_collectives']:,} collectives"
    return f"The others wait for rank {row['rank']}: it {times} and costs them {text_of_time(row['caused_wait_ns'])}{why}."


def _idle(base: pd.DataFrame, span: float, exposed: float, what: str) -> str:
    idle = _total(base, "idle_ns")
    return f"Idle time is larger still: {percent(idle, span)} of {what} has nothing running on the device." if idle > exposed else ""


def _cpu(runs: pd.DataFrame) -> str:
    if (runs["device"].astype(str).isin(("cpu", "-1"))).all():
        return "CPU run (gloo): compute is the time in which a thread's innermost operator is neither communication nor a wait."
    return ""
