"""What each collective shares with compute, in a form that other ranks' arrivals can be applied to (docs/metrics.md §3).

A collective is measured on its transfer window [last arrival, own end], and the last arrival is known only when all
ranks are together. So a rank keeps how much of the collective's last k/32 is shared, and no spans.
"""

import numpy as np
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.pairs import co_runners
from c3prof.analysis.samples import UNION_OF_COMPUTE, Samples
from c3prof.analysis.segments import FloatArray
from c3prof.analysis.signatures import signature_texts
from c3prof.analysis.steps import Lane
from c3prof.kernels import COMM, COMPUTE, FUSED
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
        Column("shared", "object", "", "by co-runner: ns shared from k/32 of the duration to the end, k = 0 … 32"),
    ),
)


def collective_samples(trace: Trace, lane: Lane, drawn: Samples, region: Int64s) -> pd.DataFrame:
    """Rows of COLLECTIVE_SAMPLES for the collectives of one device, indexed by their position in Trace.collectives.

    region: of each activity of the device, -1 for none.
    """
    rows = lane.rows
    known = np.flatnonzero(((rows["class"] == COMM) & (rows["collective_id"] != NONE)).to_numpy(dtype=bool))
    ids, first = np.unique(rows["collective_id"].to_numpy()[known], return_index=True)
    first = known[first]
    here = trace.collectives.iloc[ids]
    start, end = here["start_ns"].to_numpy(), here["end_ns"].to_numpy()
    codes, place = np.unique(drawn.marks.code[first], return_inverse=True)
    texts = signature_texts(trace, rows, drawn.marks, codes).iloc[place]
    return pd.DataFrame(
        {
            "rank": lane.rank,
            "kernel": texts["kernel"].to_numpy(),
            "signature": texts["signature"].to_numpy(),
            "input_dims": texts["input_dims"].to_numpy(),
            "region": region[first],
            "duration_ns": end - start,
            "shared": _shared(rows, start, end, rows["stream"].to_numpy()[first]),
        },
        index=ids,
    )


def no_samples(trace: Trace) -> pd.DataFrame:
    """Rows for collectives without device activity."""
    n = len(trace.collectives)
    nothing = np.full(n, None, object)
    return pd.DataFrame(
        {
            "rank": trace.collectives["rank"].to_numpy(),
            **dict.fromkeys(("kernel", "signature", "input_dims", "shared"), nothing),
            "region": np.full(n, NONE),
            "duration_ns": (trace.collectives["end_ns"] - trace.collectives["start_ns"]).to_numpy(),
        }
    )


def _shared(rows: pd.DataFrame, start: Int64s, end: Int64s, stream: Int64s) -> list[dict[str, FloatArray]]:
    """By co-runner the time from each of 33 instants of a collective to its end that it shares with other streams."""
    labels, label = co_runners(rows)
    low, high, on = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "stream"))
    computing = rows["class"].isin([COMPUTE, FUSED]).to_numpy(dtype=bool)
    choices = {UNION_OF_COMPUTE: computing, **{name: label == code for code, name in enumerate(labels)}}
    found: list[dict[str, FloatArray]] = [{} for _ in start]
    parts = np.arange(KNOTS + 1) / KNOTS
    for one in np.unique(stream):
        mine = np.flatnonzero(stream == one)
        instants = start[mine][:, None] + np.rint((end - start)[mine][:, None] * parts).astype(np.int64)
        for name, chosen in choices.items():
            there = chosen & (on != one)
            spans = intervals.union(low[there], high[there])
            covered = intervals.covered_before(spans, instants.ravel()).reshape(instants.shape)
            rest = (covered[:, -1:] - covered).astype(float)
            for place in np.flatnonzero(rest[:, 0] > 0):
                found[mine[place]][name] = rest[place]
    return found
