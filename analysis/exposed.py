"""Exposed communication and its causes (docs/metrics.md §2): which collective, group, step, operator pays, and why.

One rank alone cannot tell waiting for a late rank from the rest; once all ranks are known, `attributed` makes the table
again from `_exposed_pieces`, `_launchers` and the last arrivals.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.exposed_pieces import CAUSES, PIECES, WAIT, exposed_pieces
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.launchers import LAUNCHERS, launchers
from c3prof.analysis.overlap import OUTSIDE
from c3prof.analysis.rows import DEVICE, RANK, joined, placed, texts
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import lanes
from c3prof.kernels import UNKNOWN
from c3prof.table import Column, Schema, Table
from c3prof.trace import NONE, Trace

BLOCKS: Mapping[str, tuple[str, ...]] = {
    "combination": ("collective", "group", "op", "cause"),
    "collective": ("collective",),
    "group": ("group",),
    "step": ("step",),
    "op": ("op",),
    "annotation": ("op",),
    "cause": ("cause",),
}
"""For each value of `by` the columns that its rows fill."""

EXPOSED = Schema(
    "exposed",
    "Exposed communication by what it falls to; the rows of each `by` sum to exposed_ns of the run",
    (
        RANK,
        DEVICE,
        Column("by", "object", "", "what the row adds up: " + ", ".join(BLOCKS)),
        Column("collective", "object", "", "kind of collective"),
        Column("group", "object", "", "process group; null where the record does not name it"),
        Column("step", "object", "", "step number; outside for what lies in no step; null when the file has no steps"),
        Column("op", "object", "", "operator that launched it (by = op, combination) or annotation around its launch (by = annotation)"),
        Column("cause", "object", "", "why no compute ran: " + ", ".join(CAUSES)),
        Column("exposed_ns", "int64", "ns", "exposed communication"),
    ),
)
SCHEMAS = (EXPOSED, PIECES, LAUNCHERS)


def exposed(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, Table, Table]:
    """The tables exposed, _exposed_pieces and _launchers, as one rank alone can tell them."""
    found = [placed(lane, exposed_pieces(lane, trace)) for lane in lanes(trace, work(trace), settings)]
    pieces = Table.of(PIECES, joined(found, PIECES))
    by_whom = launchers(trace)
    return attributed(pieces.frame, trace.collectives, by_whom.frame), pieces, by_whom


def attributed(pieces: pd.DataFrame, collectives: pd.DataFrame, by_whom: pd.DataFrame, last_arrival_ns: Int64s | None = None) -> Table:
    """The table exposed from the pieces of one rank or many.

    collectives, by_whom: frames of Trace.collectives and _launchers of the same ranks, row by row.
    last_arrival_ns: for each row of collectives the last arrival of its ranks on that rank's clock, int64, or the
    smallest int64 where it is not known. What lies before it gets the cause `wait`; a piece that holds the instant is
    cut there, by integer division, so that the sums stay.
    """
    shares, devices = _shares(pieces, collectives)
    if last_arrival_ns is not None:
        shares = _cut_at(shares, np.append(np.asarray(last_arrival_ns, np.int64), _NEVER)[shares["row"]])
    sums = shares.groupby(_KEYS, sort=False)["exposed_ns"].sum().reset_index()
    columns = _attributes(sums, devices, collectives, by_whom)
    rows = joined([_block(by, names, columns) for by, names in BLOCKS.items()], EXPOSED)
    if rows is None:
        return Table.of(EXPOSED)
    place = {by: number for number, by in enumerate(BLOCKS)}
    rows = rows.assign(_place=rows["by"].map(place), _device=rows["device"].astype(str))
    return Table.of(EXPOSED, rows.sort_values(["rank", "_device", "_place"], kind="stable")[EXPOSED.names])


_KEYS = ["rank", "device", "row", "step", "cause"]
_NEVER = np.iinfo(np.int64).min


def collective_rows(pieces: pd.DataFrame, collectives: pd.DataFrame) -> Int64s:
    """Row in `collectives` (one rank or many, sorted by rank) of each piece, -1 for none."""
    first = np.searchsorted(collectives["rank"].to_numpy(), pieces["rank"].to_numpy(), side="left")
    own = pieces["collective_id"].to_numpy()
    return np.where(own >= 0, first + own, NONE)


def _shares(pieces: pd.DataFrame, collectives: pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """The pieces as numbers: device and cause by code, row in collectives (-1 none); and the device of each code."""
    device, devices = pd.factorize(pieces["device"].to_numpy(dtype=object))
    columns = {name: pieces[name].to_numpy() for name in ("rank", "step", "start_ns", "end_ns", "exposed_ns")}
    cause = pd.Categorical(pieces["cause"].astype(object), categories=CAUSES).codes
    return pd.DataFrame({**columns, "device": device, "cause": cause, "row": collective_rows(pieces, collectives)}), devices


def _cut_at(shares: pd.DataFrame, instant: Int64s) -> pd.DataFrame:
    """The shares with what lies before the instant beside each as waiting."""
    start, end, share = (shares[column].to_numpy() for column in ("start_ns", "end_ns", "exposed_ns"))
    waited = np.clip(instant, start, end) - start
    before = np.where(waited == end - start, share, 0)
    partly = np.flatnonzero((waited > 0) & (waited < end - start))
    for i in partly.tolist():  # at most one a collective and instant; Python's integers, since the product may exceed 64 bits
        before[i] = int(share[i]) * int(waited[i]) // int(end[i] - start[i])
    waits = shares.assign(exposed_ns=before, cause=CAUSES.index(WAIT)).loc[waited > 0]
    rest = shares.assign(exposed_ns=share - before).loc[waited < end - start]
    split: pd.DataFrame = pd.concat([waits, rest], ignore_index=True)
    return split


def _attributes(sums: pd.DataFrame, devices: npt.NDArray[Any], collectives: pd.DataFrame, by_whom: pd.DataFrame) -> pd.DataFrame:
    """The sums with words for their keys."""
    row = sums["row"].to_numpy()

    def of(frame: pd.DataFrame, column: str) -> pd.Series:
        values = texts(frame[column].iloc[np.maximum(row, 0)].array, row < 0) if len(frame) else np.full(len(row), None, object)
        return pd.Series(values, dtype=object)

    step = sums["step"].to_numpy()
    outside = OUTSIDE if (step != NONE).any() else None
    return pd.DataFrame(
        {
            "rank": sums["rank"],
            "device": pd.Series(devices[sums["device"]], dtype=object),
            "collective": of(collectives, "collective").fillna(UNKNOWN),
            "group": of(collectives, "group"),
            "step": pd.Series([outside if number == NONE else number for number in step.tolist()], dtype=object),
            "op": of(by_whom, "op"),
            "annotation": of(by_whom, "annotation"),
            "cause": pd.Series(np.array(CAUSES, object)[sums["cause"]], dtype=object),
            "exposed_ns": sums["exposed_ns"],
        }
    )


def _block(by: str, names: tuple[str, ...], columns: pd.DataFrame) -> pd.DataFrame:
    """The rows of one value of `by`, largest first."""
    source = {name: "annotation" if by == "annotation" else name for name in names}
    keys = ["rank", "device", *source.values()]
    sums = columns.groupby(keys, sort=False, dropna=False)["exposed_ns"].sum().reset_index()
    sums = sums.sort_values("exposed_ns", ascending=False, kind="stable", ignore_index=True)
    sums = sums.rename(columns={found: name for name, found in source.items()})
    absent = pd.Series([None] * len(sums), dtype=object)
    return sums.assign(by=by, **{name: absent for name in ("collective", "group", "step", "op", "cause") if name not in names})
