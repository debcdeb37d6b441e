"""Who is late, who waits, and why (docs/metrics.md §5)."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock import SYNCHRONIZING
from c3prof.analysis.joined import Joined
from c3prof.analysis.waits import Waits
from c3prof.table import Column, Schema, Table
from c3prof.units import NS_PER_US

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

STRAGGLERS = Schema(
    "stragglers",
    "Ranks that arrive last again and again; no row when chance explains who is last",
    (
        Column("rank", "int32", "", "global rank"),
        Column("n_last", "int64", "", "collectives in which it came last by more than the clock bound"),
        Column("n_collectives", "int64", "", "collectives that it took part in and that were measured"),
        Column("caused_wait_ns", "float64", "ns", "sum of the other ranks' waits in the collectives where it came last"),
        Column("cause", "object", "", "compute-late, launch-late or comm-late, by most of that wait; null without launch records"),
        Column("p_value", "float64", "", "chance of being last so often if all ranks were alike, times the number of ranks"),
        Column("trend_ns_per_step", "float64", "ns", "how the wait that it causes grows per step; null with fewer than 3 steps"),
        Column("note", "object", "", "what the sureness rests on"),
    ),
)

STRAGGLERS_BY_STEP = Schema(
    "stragglers_by_step",
    "The same by step, for the ranks in stragglers",
    (
        Column("rank", "int32", "", "global rank"),
        Column("step", "int64", "", "step number"),
        Column("n_last", "int64", "", "collectives of the step in which it came last"),
        Column("n_collectives", "int64", "", "measured collectives of the step that it took part in"),
        Column("caused_wait_ns", "float64", "ns", "sum of the other ranks' waits where it came last"),
    ),
)

WAITS_BY_RANK = Schema(
    "waits_by_rank",
    "How long each rank waited, and was waited for",
    (
        Column("rank", "int32", "", "global rank"),
        Column("node", "object", "", "number of its host in order of first rank, null unknown"),
        Column("n_collectives", "int64", "", "measured synchronizing collectives that it took part in"),
        Column("n_last", "int64", "", "of these, where it came last by more than the clock bound"),
        Column("duration_ns", "float64", "ns", "sum of its durations"),
        Column("wait_ns", "float64", "ns", "sum of its waits; null where nothing was measured"),
        Column("caused_wait_ns", "float64", "ns", "sum of the other ranks' waits where it came last"),
    ),
)

LAUNCH_LATENCY_NS = 20 * NS_PER_US
"""A collective that starts this soon after its launch, or after the previous one on its stream, waited for just that."""

CHANCE = 0.02
"""A rank is called straggler below this p_value."""


@dataclass(frozen=True)
class _Measured:
    """The measured records of synchronizing collectives, and of each the operation's last rank and the wait it caused.

    caused: on the last rank's record the sum of the others' waits, else 0; last: that record; group, step, size of the
    operation; unit: what counts as one observation, a (group, step) or, without steps, an operation.
    """

    rows: Codes
    rank: Codes
    step: Codes
    unit: Codes
    ranks_in: Codes
    wait: Floats
    duration: Floats
    last: Mask
    caused: Floats


def stragglers(run: Joined, split: Waits) -> tuple[Table, Table, Table]:
    """Tables stragglers, stragglers_by_step and waits_by_rank.

    Counted are synchronizing collectives on one clock, without the first of each recording window; nobody is last
    where the skew is within the clock bound. A rank is a straggler when it is last in more steps (of a group) than chance gives (binomial,
    times the number of ranks, below 2 %) and causes well more than its share of the waiting.
    """
    seen = _measured(run, split)
    by_rank = _by_rank(run, seen)
    named = _named(seen, by_rank)
    causes = _causes(run, seen)
    rows, steps = [], []
    for rank, chance, units in named:
        mine = seen.rank == rank
        by_step = _by_step(seen, mine)
        cause = pd.Series(seen.caused[mine & seen.last]).groupby(causes[mine & seen.last]).sum()
        totals = by_rank[by_rank["rank"] == rank].iloc[0]
        note = f"{units} observations" + (" (steps of a group)" if by_step is not None else "")
        known = cause.idxmax() if len(cause) else None
        rows.append(
            (rank, totals["n_last"], totals["n_collectives"], totals["caused_wait_ns"], known or None, chance, _trend(by_step), note)
        )
        if by_step is not None:
            steps.append(by_step.assign(rank=rank)[STRAGGLERS_BY_STEP.names])
    rows.sort(key=lambda row: -row[3])
    columns = dict(zip(STRAGGLERS.names, map(list, zip(*rows, strict=True)), strict=True)) if rows else None
    return (
        Table.of(STRAGGLERS, columns),
        Table.of(STRAGGLERS_BY_STEP, pd.concat(steps, ignore_index=True) if steps else None),
        Table.of(WAITS_BY_RANK, by_rank),
    )


def _measured(run: Joined, split: Waits) -> _Measured:
    frame = run.trace.collectives
    kept = frame["collective"].isin(SYNCHRONIZING).to_numpy() & np.isfinite(split.wait_ns) & ~split.reasons["first"] & run.asked
    rows = np.flatnonzero(kept)
    operation, rank = split.operation[rows], frame["rank"].to_numpy()[rows].astype(np.int64)
    step, wait = frame["step"].to_numpy()[rows], split.wait_ns[rows]
    last = (rank == split.last_rank[rows]) & (split.skew_ns[rows] > split.bound_ns[rows])
    others = np.bincount(operation, wait) if len(rows) else np.zeros(0)
    caused = np.where(last, others[operation] - wait, 0.0)
    group = run.groups.code[rows]
    unit = np.where(step >= 0, group * (step.max(initial=0) + 2) + step, -1 - operation)
    unit = np.unique(unit, return_inverse=True)[1]
    duration = (frame["end_ns"].to_numpy() - frame["start_ns"].to_numpy())[rows].astype(np.float64)
    return _Measured(rows, rank, step, unit, split.n[rows], wait, duration, last, caused)


def _by_rank(run: Joined, seen: _Measured) -> pd.DataFrame:
    ranks = run.trace.ranks.drop_duplicates("rank").sort_values("rank")
    numbers = ranks["rank"].to_numpy().astype(np.int64)
    code = np.searchsorted(numbers, seen.rank)

    count = np.bincount(code, minlength=len(numbers))

    def total(weights: Floats) -> Floats:
        return np.where(count > 0, np.bincount(code, weights, len(numbers)), np.nan)

    return pd.DataFrame(
        {
            "rank": numbers,
            "node": _nodes(ranks["host"]),
            "n_collectives": count,
            "n_last": np.bincount(code[seen.last], minlength=len(numbers)),
            "duration_ns": total(seen.duration),
            "wait_ns": total(seen.wait),
            "caused_wait_ns": total(seen.caused),
        }
    )


def _nodes(hosts: pd.Series) -> npt.NDArray[np.object_]:
    """Numbers instead of host names: a report holds no names."""
    codes = pd.factorize(hosts)[0]
    nodes = codes.astype(object)
    nodes[codes < 0] = None
    return nodes


def _named(seen: _Measured, by_rank: pd.DataFrame) -> list[tuple[int, float, int]]:
    """(rank, p_value, observations) of each straggler.

    An observation is a unit; its last rank is the one that caused most of its waiting. Collectives of one step are not
    independent: who is late stays late.
    """
    frame = pd.DataFrame({"unit": seen.unit, "rank": seen.rank, "wait": seen.wait, "caused": seen.caused, "share": 1 / seen.ranks_in})
    waits = frame.groupby("unit")["wait"].sum()
    pairs = frame.groupby(["unit", "rank"], as_index=False).agg(caused=("caused", "sum"), share=("share", "mean"))
    pairs["fair"] = waits.reindex(pairs["unit"]).to_numpy() * pairs["share"]
    pairs["wait"] = waits.reindex(pairs["unit"]).to_numpy()
    most = pairs.groupby("unit")["caused"].transform("max")
    pairs["led"] = (pairs["caused"] == most) & (most > 0)
    sums = pairs.groupby("rank").agg(
        led=("led", "sum"), units=("led", "size"), q=("share", "mean"), fair=("fair", "sum"), wait=("wait", "sum"), caused=("caused", "sum")
    )
    enough = sums["caused"] >= np.minimum(2 * sums["fair"], sums["fair"] + 0.25 * (sums["wait"] - sums["fair"]))
    found = []
    for rank, row in sums[enough & (sums["led"] > sums["units"] * sums["q"])].iterrows():
        chance = min(1.0, len(by_rank) * binomial_tail(int(row["led"]), int(row["units"]), float(row["q"])))
        if chance < CHANCE:
            found.append((int(str(rank)), chance, int(row["units"])))
    return found


def binomial_tail(k: int, n: int, q: float) -> float:
    """P(X ≥ k) of a binomial with n trials and probability q."""
    if k <= 0 or q >= 1:
        return 1.0
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(q) + (n - i) * math.log1p(-q)
        for i in range(k, n + 1)
    ]
    return min(1.0, math.fsum(math.exp(value) for value in logs))


def _causes(run: Joined, seen: _Measured) -> npt.NDArray[np.object_]:
    """For each measured record why it started when it did; None without launch records.

    launch-late: within 20 µs of its launch; comm-late: within 20 µs of the previous operation's end on its stream;
    else compute-late. On a CPU the thread that computes also launches, so there a late launch is late compute.
    """
    frame = run.trace.collectives
    start, end, launch_end = (frame[c].to_numpy() for c in ("start_ns", "end_ns", "launch_end_ns"))
    keys = [frame[c].to_numpy() for c in ("stream", "device", "rank")]
    by = np.lexsort((start, *keys))
    neighbours = np.ones(len(by), bool)
    neighbours[:1] = False
    for key in keys:
        neighbours[1:] &= key[by][1:] == key[by][:-1]
    previous_end = np.full(len(by), np.iinfo(np.int64).min // 2)
    previous_end[by[neighbours]] = end[by[np.flatnonzero(neighbours) - 1]]
    on_cpu = frame["device"].to_numpy() < 0
    just_launched = (launch_end >= 0) & (start - launch_end <= LAUNCH_LATENCY_NS)
    queued = start - previous_end <= LAUNCH_LATENCY_NS
    cause = np.full(len(frame), "", dtype=object)
    cause[launch_end >= 0] = "compute-late"
    cause[queued & ~(just_launched & ~on_cpu)] = "comm-late"
    cause[just_launched & ~on_cpu] = "launch-late"
    return cause[seen.rows]


def _by_step(seen: _Measured, mine: Mask) -> pd.DataFrame | None:
    rows = mine & (seen.step >= 0)
    if not rows.any():
        return None
    frame = pd.DataFrame(
        {"step": seen.step[rows], "n_last": seen.last[rows].astype(np.int64), "caused_wait_ns": seen.caused[rows], "n_collectives": 1}
    )
    return frame.groupby("step", as_index=False).sum()


def _trend(by_step: pd.DataFrame | None) -> float:
    if by_step is None or len(by_step) < 3:
        return math.nan
    return float(np.polyfit(by_step["step"], by_step["caused_wait_ns"], 1)[0])
