"""busy_elsewhere against the union of the other streams' spans, row by row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from c3prof.analysis import intervals
from c3prof.analysis.collective_samples import busy_elsewhere

FAR = 2**61  # as damaged times are: streams times ns do not fit into 64 bits
SPAN = st.tuples(st.integers(-2, 2), st.integers(0, 40) | st.just(FAR), st.integers(0, 15))


@given(
    st.lists(SPAN, max_size=12),
    st.lists(st.tuples(st.integers(-3, 3), st.lists(st.integers(-5, 60) | st.just(FAR + 5), min_size=3, max_size=3)), max_size=4),
)
def test_busy_elsewhere_is_the_union_of_the_other_streams(spans: list[tuple[int, int, int]], rows: list[tuple[int, list[int]]]) -> None:
    stream, start, length = np.array(spans, np.int64).reshape(-1, 3).T
    own, instants = np.array([one for one, _ in rows], np.int64), np.array([at for _, at in rows], np.int64).reshape(-1, 3)
    found = busy_elsewhere(stream, start, start + length, own, instants)
    assert found.shape == instants.shape
    for row, one in enumerate(own):
        others = stream != one
        expected = intervals.covered_before(intervals.union(start[others], (start + length)[others]), instants[row])
        assert (found[row] - found[row, 0]).tolist() == (expected - expected[0]).tolist()
