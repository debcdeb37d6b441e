"""Shared time, against sets of instants."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis.pairs import co_runners, shared_time

SPAN = st.tuples(
    st.integers(0, 40),
    st.integers(0, 12),
    st.integers(0, 2),
    st.sampled_from([("compute", "gemm"), ("compute", "norm"), ("comm", "all_reduce"), ("copy", None)]),
)


def rows_of(spans: list[tuple[int, int, int, tuple[str, str | None]]]) -> pd.DataFrame:
    start, length, stream, kind = zip(*spans, strict=True)
    frame = pd.DataFrame({"start_ns": np.array(start, np.int64), "stream": np.array(stream, np.int64)})
    frame = frame.assign(end_ns=frame["start_ns"] + np.array(length, np.int64))
    frame["class"] = pd.Categorical([name for name, _ in kind])
    frame["kernel_class"] = pd.Categorical([name for _, name in kind])
    return frame.sort_values(["stream", "start_ns"], kind="stable", ignore_index=True)


def test_by_hand() -> None:
    """gemm [0, 10) | all_reduce [4, 20) and copy [8, 12) on streams of their own."""
    shared = shared_time(rows_of([(0, 10, 0, ("compute", "gemm")), (4, 16, 1, ("comm", "all_reduce")), (8, 4, 2, ("copy", None))]))
    assert shared.labels == ["comm:all_reduce", "compute:gemm", "copy"]
    assert [times.tolist() for times in shared.by_label] == [[6, 0, 4], [0, 6, 2], [2, 4, 0]]
    assert shared.any_other.tolist() == [6, 8, 4]
    assert shared.compute.tolist() == [0, 6, 2]
    assert shared.own_stream.tolist() == [0, 0, 0]


@settings(max_examples=150, deadline=None)
@given(st.lists(SPAN, min_size=1, max_size=14))
def test_against_instants(spans: list[tuple[int, int, int, tuple[str, str | None]]]) -> None:
    rows = rows_of(spans)
    shared, (labels, label) = shared_time(rows), co_runners(rows)
    instants = [set(range(start, end)) for start, end in zip(rows["start_ns"], rows["end_ns"], strict=True)]
    stream = rows["stream"].tolist()
    for i, mine in enumerate(instants):
        for code in range(len(labels)):
            others = [instants[j] for j in range(len(rows)) if stream[j] != stream[i] and label[j] == code]
            assert shared.by_label[code][i] == len(mine & set().union(*others))
        elsewhere = [instants[j] for j in range(len(rows)) if stream[j] != stream[i]]
        assert shared.any_other[i] == len(mine & set().union(*elsewhere))
        own = [instants[j] for j in range(len(rows)) if stream[j] == stream[i] and j != i]
        assert shared.own_stream[i] == len(mine & set().union(*own))


def test_nothing() -> None:
    shared = shared_time(rows_of([(0, 1, 0, ("copy", None))]).iloc[:0])
    assert [len(times) for times in (shared.any_other, shared.own_stream, shared.compute)] == [0, 0, 0]
