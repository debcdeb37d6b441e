"""What each collective shares with compute, in a form that other ranks' arrivals can be applied to (docs/metrics.md §3).

A collective is measured on its transfer window [last arrival, own end], and the last arrival is known only when all
ranks are together. So a rank keeps how much of the collective's last k/32 is shared, and no spans.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import computing
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.pairs import co_runners
from c3prof.analysis.samples import UNION_OF_COMPUTE, Samples
from c3prof.analysis.segments import FloatArray
from c3prof.analysis.signatures import signature_texts
from c3prof.analysis.steps import Lane
from c3prof.kernels import COMM
from c3prof.table import Column, Schema
from c3prof.trace import NONE, Trace

KNOTS = 32

COLLECTIVE_SAMPLES = Schema(
    "_collective_samples",
    "What each collective shares with other work, a row a row of Trace.collectives, in its order",
    (
        Column("rank", "int32", "", "global rank"),
        Column("kernel", "object", "", "name of its first kernel, None without device activity"),
        Column("signature", "object", "", "signature of the collective"),
        Column("input_dims", "object", "", "its message size as text"),
        Column("region", "int64", "", "region of the device that its first kernel is part of, -1 for none"),
        Column("duration_ns", "int64", "ns", "from its first start to its last end"),
    ),
)

_RESTS = tuple(f"rest_{k}" for k in range(KNOTS + 1))

COLLECTIVE_SHARED = Schema(
    "_collective_shared",
    "What each collective shares with each co-runner, by how much of the collective is still to come",
    (
        Column("rank", "int32", "", "global rank"),
        Column("record", "int64", "", "row among the collectives of the rank"),
        Column("co_runner", "object", "", "what ran on other streams: a class of work, or the union of compute"),
        *(Column(name, "float64", "ns", f"shared from {k}/{KNOTS} of the duration to the end") for k, name in enumerate(_RESTS)),
    ),
)


@dataclass(frozen=True)
class Shared:
    """What records share with other work, a row a record and co-runner that share any.

    record: row of the collectives of the run; co_runner: position in names; rest: rows × 33, as in COLLECTIVE_SHARED.
    """

    record: Int64s
    co_runner: Int64s
    names: npt.NDArray[np.object_]
    rest: FloatArray

    @classmethod
    def of(cls, rows: pd.DataFrame, begins: pd.Series) -> "Shared":
        """The Shared of rows of COLLECTIVE_SHARED. begins: by rank the row at which its collectives begin."""
        code, names = pd.factorize(rows["co_runner"].to_numpy(), sort=True)
        begin = rows["rank"].map(begins).to_numpy(dtype=np.int64)
        return cls(begin + rows["record"].to_numpy(), code.astype(np.int64), np.asarray(names, object), rows[list(_RESTS)].to_numpy())

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Shared":
        """The rows that are chosen."""
        return Shared(self.record[chosen], self.co_runner[chosen], self.names, self.rest[chosen])

    def after(self, part: FloatArray) -> FloatArray:
        """ns that each row shares from `part` of the duration (0 … 1, a value a row) to the end, linear between the 33 instants."""
        at = KNOTS * np.clip(part, 0.0, 1.0)
        low = np.minimum(at.astype(np.int64), KNOTS - 1)
        row, share = np.arange(len(low)), at - low
        return np.asarray(self.rest[row, low] * (1 - share) + self.rest[row, low + 1] * share)


def collective_samples(trace: Trace, lane: Lane, drawn: Samples, region: Int64s) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of COLLECTIVE_SAMPLES and of COLLECTIVE_SHARED for the collectives of one device.

    The first are indexed by their position in Trace.collectives. region: of each activity of the device, -1 for none.
    """
    rows = lane.rows
    known = np.flatnonzero(((rows["class"] == COMM) & (rows["collective_id"] != NONE)).to_numpy(dtype=bool))
    ids, first = np.unique(rows["collective_id"].to_numpy()[known], return_index=True)
    first = known[first]
    here = trace.collectives.iloc[ids]
    start, end = here["start_ns"].to_numpy(), here["end_ns"].to_numpy()
    codes, place = np.unique(drawn.marks.code[first], return_inverse=True)
    texts = signature_texts(trace, rows, drawn.marks, codes).iloc[place]
    found = pd.DataFrame(
        {
            "rank": lane.rank,
            "kernel": texts["kernel"].to_numpy(),
            "signature": texts["signature"].to_numpy(),
            "input_dims": texts["input_dims"].to_numpy(),
            "region": region[first],
            "duration_ns": end - start,
        },
        index=ids,
    )
    return found, _shared(rows, ids, start, end, rows["stream"].to_numpy()[first]).assign(rank=lane.rank)


def no_samples(trace: Trace) -> pd.DataFrame:
    """Rows of COLLECTIVE_SAMPLES for collectives without device activity."""
    n = len(trace.collectives)
    return pd.DataFrame(
        {
            "rank": trace.collectives["rank"].to_numpy(),
            **dict.fromkeys(("kernel", "signature", "input_dims"), np.full(n, None, object)),
            "region": np.full(n, NONE),
            "duration_ns": (trace.collectives["end_ns"] - trace.collectives["start_ns"]).to_numpy(),
        }
    )


def _shared(rows: pd.DataFrame, ids: Int64s, start: Int64s, end: Int64s, stream: Int64s) -> pd.DataFrame:
    """By collective and co-runner the time from each of 33 instants to its end that it shares with other streams."""
    labels, label = co_runners(rows)
    low, high, on = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "stream"))
    choices = {UNION_OF_COMPUTE: computing(rows), **{name: label == code for code, name in enumerate(labels)}}
    instants = start[:, None] + np.rint((end - start)[:, None] * (np.arange(KNOTS + 1) / KNOTS)).astype(np.int64)
    record, co_runner, rests = [ids[:0]], [np.array([], object)], [np.zeros((0, KNOTS + 1))]
    for name, chosen in choices.items():
        covered = busy_elsewhere(on[chosen], low[chosen], high[chosen], stream, instants)
        some = covered[:, -1] > covered[:, 0]
        record.append(ids[some])
        co_runner.append(np.full(int(some.sum()), name, object))
        rests.append((covered[:, -1:] - covered)[some].astype(float))
    rest = np.concatenate(rests)
    columns = {name: rest[:, k] for k, name in enumerate(_RESTS)}
    return pd.DataFrame({"record": np.concatenate(record), "co_runner": np.concatenate(co_runner), **columns})


def busy_elsewhere(stream: Int64s, start: Int64s, end: Int64s, own: Int64s, instants: Int64s) -> Int64s:
    """How long streams other than a row's own were busy before each of its instants, ns but for a constant a row.

    n spans with their streams; m rows with an own stream and k instants each; shape (m, k). The time in which any stream
    is busy, less that in which the own one is busy alone. O((n + m k) log n), however many streams.
    """
    streams = intervals.distinct(np.concatenate([stream, own]))
    code, low, high = intervals.union_by(np.searchsorted(streams, stream), start, end)
    if not len(low):
        return np.zeros(instants.shape, np.int64)
    several = intervals.at_least(2, low, high)
    row, begin, stop = intervals.pieces(low, high, np.concatenate([several.starts, several.ends]))
    alone = ~intervals.contains(several, begin)
    own_alone = intervals.covered_before_by(code[row][alone], begin[alone], stop[alone], np.searchsorted(streams, own)[:, None], instants)
    return intervals.covered_before(intervals.union(low, high), instants) - own_alone
