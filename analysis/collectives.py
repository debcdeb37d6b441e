"""The ledger of all communication (docs/metrics.md §5): who arrived when, waited how long, moved how much how fast."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.joined import Joined
from c3prof.analysis.waits import NOTES, Waits
from c3prof.table import Column, Schema, Table

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

COLLECTIVES = Schema(
    "collectives",
    "Communication operations of each rank, in the order of the trace's",
    (
        Column("rank", "int32", "", "global rank"),
        Column("collective", "category", "", "kind: all_reduce, all_gather, …, send, recv"),
        Column("group", "category", "", "process group, with its members where one name means several; null when not recorded"),
        Column("group_size", "object", "", "ranks in the group, null unknown"),
        Column("dimension", "category", "", "what the group is for: dp, tp, pp, ep, cp, world; null unknown"),
        Column("seq", "object", "", "sequence number in the group; where none is recorded, the place in the common order of its ranks"),
        Column("step", "object", "", "step number, null for none"),
        Column("dtype", "category", "", "element type as recorded"),
        Column("size_bytes", "object", "B", "message size as nccl-tests counts it, null unknown"),
        Column("arrival_ns", "int64", "ns", "start on the aligned clock"),
        Column("end_ns", "int64", "ns", "end on the aligned clock"),
        Column("duration_ns", "int64", "ns", "end − arrival"),
        Column("skew_ns", "float64", "ns", "last arrival − first arrival over the recorded ranks"),
        Column(
            "wait_ns", "float64", "ns", "part of the duration before the data could move; null where the kind or the record does not tell"
        ),
        Column("transfer_ns", "float64", "ns", "rest of the duration: wait_ns + transfer_ns = duration_ns"),
        Column("last_rank", "object", "", "rank that arrived last, null unknown"),
        Column("algbw_gb_s", "float64", "GB/s", "size_bytes / transfer_ns"),
        Column("busbw_gb_s", "float64", "GB/s", "algbw times 2(n−1)/n, (n−1)/n or 1 by kind, n = group_size"),
        Column("lower_bound", "bool", "", "the time behind the bandwidths may contain waiting: they are at least this"),
        Column("hidden_ns", "float64", "ns", "part with compute at the same instant on the device; null without device activity"),
        Column("exposed_ns", "float64", "ns", "part of the duration without compute at the same instant; null as hidden_ns"),
        Column("evidence", "category", "", "what its being communication rests on"),
        Column("note", "category", "", "why something is null, or bounded; empty for nothing"),
    ),
)

_RING_FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
"""Bus bandwidth over algorithm bandwidth is this times (n−1)/n for n ranks, as nccl-tests defines it."""

_AS_SENT = ("broadcast", "reduce", "send", "recv", "send_recv")
"""Kinds whose bus bandwidth is their algorithm bandwidth."""


def ledger(run: Joined, split: Waits, groups: Table, hidden: Floats, exposed: Floats) -> Table:
    """Table `collectives`: row i is row i of run.trace.collectives.

    split: the waits; groups: table `process_groups`; hidden, exposed: ns for each record, NaN unknown.
    """
    frame = run.trace.collectives
    start, end = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    size, n = frame["size_bytes"].to_numpy(), run.groups.table["size"].to_numpy()[run.groups.code]
    algbw, busbw, lower_bound = bandwidths(frame["collective"], size, n, split, (end - start).astype(np.float64))
    data = {
        "rank": frame["rank"],
        "collective": frame["collective"],
        "group": by_group(run, groups.frame["group"]),
        "group_size": integers(n, n > 0),
        "dimension": by_group(run, groups.frame["dimension"]),
        "seq": integers(*_sequence(run)),
        "step": integers(frame["step"].to_numpy(), frame["step"].to_numpy() >= 0),
        "dtype": frame["dtype"],
        "size_bytes": integers(size, size >= 0),
        "arrival_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
        "skew_ns": split.skew_ns,
        "wait_ns": split.wait_ns,
        "transfer_ns": split.transfer_ns,
        "last_rank": integers(split.last_rank, split.comparable),
        "algbw_gb_s": algbw,
        "busbw_gb_s": busbw,
        "lower_bound": lower_bound,
        "hidden_ns": hidden,
        "exposed_ns": exposed,
        "evidence": frame["evidence"],
        "note": notes(split.reasons, len(frame)),
    }
    return Table.of(COLLECTIVES, data)


def bandwidths(kind: pd.Series, size: Codes, n: Codes, split: Waits, duration: Floats) -> tuple[Floats, Floats, Mask]:
    """algbw and busbw in GB/s, and where they are lower bounds, for each record.

    Over the transfer; over the duration where no other rank's record exists, over the shortest duration of the
    operation where clocks cannot be compared: both contain waiting.
    """
    alone = split.reasons["alone"] | split.reasons["contradiction"]
    time = np.where(alone, duration, np.where(split.reasons["no clock"], split.shortest_ns, split.transfer_ns))
    with np.errstate(invalid="ignore", divide="ignore"):
        algbw = np.where((size > 0) & (time > 0), size / time, np.nan)
    factor = np.full(len(kind), np.nan)
    names = kind.to_numpy(dtype=object)
    for name, rounds in _RING_FACTORS.items():
        rows = (names == name) & (n > 0)
        factor[rows] = rounds * (n[rows] - 1) / n[rows]
    factor[np.isin(names, _AS_SENT)] = 1.0
    lower_bound = np.isfinite(algbw) & (alone | split.reasons["no clock"] | split.reasons["partial"])
    return algbw, algbw * factor, lower_bound


def notes(reasons: dict[str, Mask], n: int) -> pd.Categorical:
    """The reasons that hold for each record, joined by semicolons."""
    bits = np.zeros(n, np.int64)
    for bit, name in enumerate(NOTES):
        bits |= reasons[name].astype(np.int64) << bit
    codes, found = pd.factorize(bits)
    texts = ["; ".join(text for bit, text in enumerate(NOTES.values()) if value >> bit & 1) for value in found.tolist()]
    return pd.Categorical.from_codes(codes, categories=texts)


def by_group(run: Joined, values: pd.Series) -> pd.Categorical:
    """For each record the value of its group, missing where the group has none."""
    codes, found = pd.factorize(values)
    return pd.Categorical.from_codes(codes[run.groups.code], categories=list(found))


def integers(values: Codes, known: Mask) -> npt.NDArray[np.object_]:
    """int where known, else None; equal values share one object."""
    codes, found = pd.factorize(np.asarray(values))
    objects = np.array([int(value) for value in found] + [None], dtype=object)
    return np.asarray(objects[np.where(known, codes, -1)])


def _sequence(run: Joined) -> tuple[Codes, Mask]:
    """Recorded sequence numbers; for operations matched by order their place in the group, unless others have numbers there."""
    seq = run.trace.collectives["seq"].to_numpy()
    operation, group = run.matches.operation, run.groups.code
    placed = operation >= 0
    order = np.zeros(len(seq), np.int64)
    by = np.lexsort((operation[placed], group[placed]))
    g, o = group[placed][by], operation[placed][by]
    fresh = np.diff(o, prepend=o[:1] - 1) != 0
    starts = np.diff(g, prepend=g[:1] - 1) != 0
    count = np.cumsum(fresh)
    place = count - np.maximum.accumulate(np.where(starts, count, 0))
    order[np.flatnonzero(placed)[by]] = place
    numbered = np.isin(group, group[~run.matches.by_order & (seq >= 0)])
    return np.where(run.matches.by_order, order, seq), np.where(run.matches.by_order, placed & ~numbered, seq >= 0)
