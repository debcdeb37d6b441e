"""Exposed communication and its causes (docs/metrics.md §2): which collective, group, step, operator pays, and why.

One rank alone cannot tell waiting for a late rank from the rest; once all ranks are known, `attributed` makes the table
again from `_exposed_pieces`, `_launchers` and the last arrivals.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.exposed_pieces import CAUSES, PIECES, WAIT, exposed_pieces
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.launchers import LAUNCHERS, launchers
from c3prof.analysis.overlap import OUTSIDE
from c3prof.analysis.rows import DEVICE, RANK, joined, texts
from c3prof.analysis.settings import Settings
from c3prof.analysis.steps import lanes
from c3prof.kernels import UNKNOWN
from c3prof.table import Column, Schema, Table
from c3prof.trace import CPU_DEVICE, NONE, Trace

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
    found = [exposed_pieces(lane, trace) for lane in lanes(trace, work(trace), settings)]
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
    shares = _shares(pieces, collectives)
    if last_arrival_ns is not None:
        shares = _cut_at(shares, np.append(np.asarray(last_arrival_ns, np.int64), _NEVER)[shares["row"]])
    sums = shares.groupby(["rank", "device", "row", "step", "cause"], sort=False)["exposed_ns"].sum().reset_index()
    words = _words(sums, collectives, by_whom)
    blocks = [_block(place, by, sums, words) for place, by in enumerate(BLOCKS)]
    rows = pd.concat(blocks).groupby(["rank", "device", "by", *_COLUMNS], sort=True)["exposed_ns"].sum().reset_index()
    rows = rows.sort_values(["rank", "device", "by", "exposed_ns"], ascending=[True, True, True, False], kind="stable")
    spelled = {name: _spelled(rows[name].to_numpy(), words[name].uniques) for name in _COLUMNS}
    return Table.of(
        EXPOSED,
        {
            "rank": rows["rank"].to_numpy(),
            "device": _devices(rows["device"].to_numpy()),
            "by": _spelled(rows["by"].to_numpy(), list(BLOCKS)),
            **spelled,
            "exposed_ns": rows["exposed_ns"].to_numpy(),
        },
    )


_COLUMNS = ("collective", "group", "step", "op", "cause")
_NEVER = np.iinfo(np.int64).min


def collective_rows(pieces: pd.DataFrame, collectives: pd.DataFrame) -> Int64s:
    """Row in `collectives` (one rank or many, sorted by rank) of each piece, -1 for none."""
    first = np.searchsorted(collectives["rank"].to_numpy(), pieces["rank"].to_numpy(), side="left")
    own = pieces["collective_id"].to_numpy()
    return np.where(own >= 0, first + own, NONE)


def _shares(pieces: pd.DataFrame, collectives: pd.DataFrame) -> pd.DataFrame:
    """The pieces as numbers: the cause by code, the row in collectives (-1 none)."""
    columns = {name: pieces[name].to_numpy() for name in ("rank", "device", "step", "start_ns", "end_ns", "exposed_ns")}
    cause = pieces["cause"].cat.set_categories(CAUSES).cat.codes.to_numpy()
    return pd.DataFrame({**columns, "cause": cause, "row": collective_rows(pieces, collectives)})


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


class _Coded(NamedTuple):
    """A column of words as codes into its distinct words, -1 for none."""

    codes: npt.NDArray[np.int64]
    uniques: Sequence[Any]


def _words(sums: pd.DataFrame, collectives: pd.DataFrame, by_whom: pd.DataFrame) -> dict[str, _Coded]:
    """The words for the keys of the sums. Operators and annotations share their words: they share a column."""
    row, step = sums["row"].to_numpy(), sums["step"].to_numpy()

    def of(frame: pd.DataFrame, column: str) -> npt.NDArray[np.object_]:
        return texts(frame[column].iloc[np.maximum(row, 0)].array, row < 0) if len(frame) else np.full(len(row), None, object)

    kind = of(collectives, "collective")
    kind[pd.isna(kind)] = UNKNOWN
    outside = OUTSIDE if (step != NONE).any() else None
    number = texts([outside if found == NONE else found for found in step.tolist()])
    launched = _coded(np.concatenate([of(by_whom, "op"), of(by_whom, "annotation")]))
    return {
        "collective": _coded(kind),
        "group": _coded(of(collectives, "group")),
        "step": _coded(number),
        "op": _Coded(launched.codes[: len(row)], launched.uniques),
        "annotation": _Coded(launched.codes[len(row) :], launched.uniques),
        "cause": _Coded(sums["cause"].to_numpy(np.int64), CAUSES),
    }


def _coded(values: npt.NDArray[np.object_]) -> _Coded:
    codes, uniques = pd.factorize(values)
    return _Coded(np.asarray(codes, np.int64), list(uniques))


def _block(place: int, by: str, sums: pd.DataFrame, words: Mapping[str, _Coded]) -> pd.DataFrame:
    """The sums with the codes of the columns that rows of `by` fill, -1 in the others."""
    source = {name: words["annotation" if by == "annotation" else name].codes for name in BLOCKS[by]}
    nothing = np.full(len(sums), -1)
    columns = {name: source.get(name, nothing) for name in _COLUMNS}
    return pd.DataFrame({"rank": sums["rank"], "device": sums["device"], "by": place, **columns, "exposed_ns": sums["exposed_ns"]})


def _devices(numbers: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    return np.array(["cpu" if number == CPU_DEVICE else number for number in numbers.tolist()], object)


def _spelled(codes: npt.NDArray[Any], uniques: Sequence[Any]) -> npt.NDArray[np.object_]:
    words = np.empty(len(uniques) + 1, object)
    words[:-1] = uniques
    return words[codes]
