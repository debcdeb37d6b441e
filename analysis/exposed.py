"""Exposed communication and its causes (docs/metrics.md §2): which collective, group, step, operator pays, and why.

One rank alone cannot tell waiting for a late rank from the rest; once all ranks are known, `attributed` makes the table
again from `_exposed_pieces`, `_launchers` and the last arrivals.
"""

from collections.abc import Mapping

import numpy as np
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
    row = collective_rows(pieces, collectives)
    if last_arrival_ns is not None and len(row):
        pieces, row = _cut_at(pieces, row, np.where(row >= 0, np.asarray(last_arrival_ns)[row], np.iinfo(np.int64).min))
    columns = _attributes(pieces, row, collectives, by_whom)
    rows = joined([_block(by, names, pieces, columns) for by, names in BLOCKS.items()], EXPOSED)
    if rows is None:
        return Table.of(EXPOSED)
    place = {by: number for number, by in enumerate(BLOCKS)}
    rows = rows.assign(_place=rows["by"].map(place), _device=rows["device"].astype(str))
    return Table.of(EXPOSED, rows.sort_values(["rank", "_device", "_place"], kind="stable")[EXPOSED.names])


def _block(by: str, names: tuple[str, ...], pieces: pd.DataFrame, columns: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The rows of one value of `by`, largest first."""
    values = {name: columns["annotation" if by == "annotation" else name] for name in names}
    frame = pd.DataFrame({"rank": pieces["rank"], "device": pieces["device"], **values, "exposed_ns": pieces["exposed_ns"]})
    sums = frame.groupby(["rank", "device", *names], sort=False, dropna=False, as_index=False)["exposed_ns"].sum()
    sums = sums.sort_values("exposed_ns", ascending=False, kind="stable", ignore_index=True)
    absent = pd.Series([None] * len(sums), dtype=object)
    return sums.assign(by=by, **{name: absent for name in ("collective", "group", "step", "op", "cause") if name not in names})


def collective_rows(pieces: pd.DataFrame, collectives: pd.DataFrame) -> Int64s:
    """Row in `collectives` (one rank or many, sorted by rank) of each piece, -1 for none."""
    first = np.searchsorted(collectives["rank"].to_numpy(), pieces["rank"].to_numpy(), side="left")
    own = pieces["collective_id"].to_numpy()
    return np.where(own >= 0, first + own, NONE)


def _attributes(pieces: pd.DataFrame, row: Int64s, collectives: pd.DataFrame, by_whom: pd.DataFrame) -> dict[str, pd.Series]:
    def of(frame: pd.DataFrame, column: str) -> pd.Series:
        values = texts(frame[column].iloc[np.maximum(row, 0)].array, row < 0) if len(frame) else np.full(len(row), None, object)
        return pd.Series(values, index=pieces.index, dtype=object)

    in_step = pieces["step"] != NONE
    return {
        "collective": of(collectives, "collective").fillna(UNKNOWN),
        "group": of(collectives, "group"),
        "op": of(by_whom, "op"),
        "annotation": of(by_whom, "annotation"),
        "step": pieces["step"].astype(object).where(in_step, OUTSIDE if in_step.any() else None),
        "cause": pieces["cause"].astype(object),
    }


def _cut_at(pieces: pd.DataFrame, row: Int64s, instant: Int64s) -> tuple[pd.DataFrame, Int64s]:
    start, end, share = (pieces[column].to_numpy() for column in ("start_ns", "end_ns", "exposed_ns"))
    waited = np.clip(instant, start, end) - start
    before = share * waited // np.maximum(end - start, 1)
    waits = pieces.assign(end_ns=start + waited, exposed_ns=before, cause=WAIT)[waited > 0]
    rest = pieces.assign(start_ns=start + waited, exposed_ns=share - before, cause=pieces["cause"].astype(object))[start + waited < end]
    return pd.concat([waits, rest]), np.concatenate([row[waited > 0], row[start + waited < end]])
