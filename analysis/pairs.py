"""How long each activity shares its device with each kind of co-runner (docs/metrics.md §3, Samples)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.busy import computing
from c3prof.analysis.intervals import Int64s, Spans
from c3prof.kernels import COMM, COPY, FUSED


@dataclass(frozen=True)
class SharedTime:
    """Time that each of n activities of one device shares with activities on other streams, ns.

    labels: the kinds of co-runner (comm:all_reduce, compute:gemm, fused, copy), label: of each activity its own;
    by_label: one array of n a label; compute: shared with the union of compute and fused; any_other: with the union
    of all kinds; own_stream: with the other activities of its own stream.
    """

    labels: list[str]
    label: npt.NDArray[np.int64]
    by_label: list[Int64s]
    compute: Int64s
    any_other: Int64s
    own_stream: Int64s


def shared_time(rows: pd.DataFrame) -> SharedTime:
    """The SharedTime of the activities of one device, in the order of rows. O(n log n) for a bounded number of labels."""
    start, end, stream = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "stream"))
    labels, label = co_runners(rows)
    own = _own_stream(start, end, stream)
    any_other = _other_streams(np.ones(len(rows), bool), start, end, stream, own)
    met = any_other > 0
    by_label = [_other_streams(label == code, start, end, stream, own, met) for code in range(len(labels))]
    return SharedTime(labels, label, by_label, _other_streams(computing(rows), start, end, stream, own, met), any_other, own)


def co_runners(rows: pd.DataFrame) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The kinds of co-runner among the activities, and the code of each activity: class and kernel class, or the class alone."""
    kind, detail = rows["class"].astype("category"), rows["kernel_class"].astype("category")
    names = [*map(str, detail.cat.categories), "other"]
    classes = [*map(str, kind.cat.categories)]
    codes = detail.cat.codes.to_numpy().astype(np.int64)
    pair = kind.cat.codes.to_numpy().astype(np.int64) * len(names) + np.where(codes < 0, len(names) - 1, codes)
    place, used = pd.factorize(pair)
    texts = [_text(classes[code // len(names)], names[code % len(names)]) for code in used]
    labels = sorted(set(texts))
    return labels, np.array([labels.index(text) for text in texts], np.int64)[place]


def _text(kind: str, detail: str) -> str:
    return kind if kind in (COPY, FUSED) else f"{kind}:{'unknown' if kind == COMM and detail == 'other' else detail}"


def _own_stream(start: Int64s, end: Int64s, stream: Int64s) -> Int64s:
    """Time that each activity shares with others of its own stream: where two or more of the stream run."""
    shared = np.zeros(len(start), np.int64)
    order = np.lexsort((start, stream))
    for of_stream in np.split(order, np.flatnonzero(np.diff(stream[order])) + 1):
        if np.any(start[of_stream][1:] < np.maximum.accumulate(end[of_stream])[:-1]):
            twice = intervals.at_least(2, start[of_stream], end[of_stream])
            shared[of_stream] = intervals.shared_ns(start[of_stream], end[of_stream], twice)
    return shared


def _other_streams(
    chosen: npt.NDArray[np.bool_],
    start: Int64s,
    end: Int64s,
    stream: Int64s,
    own: Int64s,
    asking: npt.NDArray[np.bool_] | None = None,
) -> Int64s:
    """Time that each activity shares with chosen activities on other streams than its own, ns.

    A chosen activity keeps its own stream busy all along, so it has company where two streams are; any other one where
    one is. The few that overlap with their own stream are asked stream by stream.
    """
    asking = np.ones(len(start), bool) if asking is None else asking
    _, low, high = intervals.union_by(stream[chosen], start[chosen], end[chosen])
    shared = np.zeros(len(start), np.int64)
    for asked, spans in ((asking & ~chosen, intervals.union(low, high)), (asking & chosen, intervals.at_least(2, low, high))):
        shared[asked] = intervals.shared_ns(start[asked], end[asked], spans)
    odd = asking & ~chosen & (own > 0)
    for one in np.unique(stream[odd]):
        others, asked = chosen & (stream != one), odd & (stream == one)
        shared[asked] = intervals.shared_ns(start[asked], end[asked], _union(others, start, end))
    return shared


def _union(chosen: npt.NDArray[np.bool_], start: Int64s, end: Int64s) -> Spans:
    return intervals.union(start[chosen], end[chosen])
