"""Who encloses whom, against a search that looks at every pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from c3prof.readers.nesting import innermost, nesting

# A thread is a list of (gap before, own length, children); spans nest by construction and may touch.
tree: st.SearchStrategy[object] = st.recursive(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.just([])),
    lambda children: st.tuples(st.integers(0, 3), st.integers(0, 4), st.lists(children, max_size=3)),
    max_leaves=12,
)


def spans(forest, at, parent, out):
    """Appends (start, end, parent position) of a forest that begins at `at`; returns where it ends."""
    for gap, length, children in forest:
        start, place = at + gap, len(out)
        out.append([start, 0, parent])
        end = spans(children, start, place, out) + length
        end = max(end + bool(children), start + 1)  # longer than its children: which of two equal spans encloses is open
        out[place][1] = end
        at = end
    return at


@given(st.lists(st.lists(tree, max_size=3), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_parents_and_innermost_spans(threads, random):
    thread, start, end, parent = [], [], [], []
    for code, forest in enumerate(threads):
        out = []
        spans(forest, 10, -1, out)
        base = len(start)
        thread += [code] * len(out)
        start += [s for s, _, _ in out]
        end += [e for _, e, _ in out]
        parent += [p if p < 0 else p + base for _, _, p in out]
    shuffled = list(range(len(start)))
    random.shuffle(shuffled)
    thread, start, end = (np.array([column[i] for i in shuffled], np.int64) for column in (thread, start, end))
    place = {old: new for new, old in enumerate(shuffled)}

    nest = nesting(thread, start, end)
    for position, given_row in enumerate(nest.order.tolist()):
        expected = parent[shuffled[given_row]]
        found = nest.parent[position]
        assert (nest.order[found] if found >= 0 else -1) == (place[expected] if expected >= 0 else -1)

    at = np.arange(0, 40)
    for code in range(len(threads) + 1):
        found = innermost(nest, np.full(len(at), code), at, thread[nest.order])
        for instant, position in zip(at.tolist(), found.tolist(), strict=True):
            open_spans = [i for i in range(len(start)) if thread[i] == code and start[i] <= instant < end[i]]
            shortest = min(open_spans, key=lambda i: end[i] - start[i], default=-1)
            if shortest < 0:
                assert position == -1
            else:
                row = nest.order[position]
                assert (start[row], end[row]) == (start[shortest], end[shortest])


def test_spans_that_cross_have_the_last_open_one_as_parent():
    # a 0───────10
    # b     5───────15
    # c          12 13
    nest = nesting(np.zeros(3, np.int64), np.array([0, 5, 12]), np.array([10, 15, 13]))
    assert nest.parent.tolist() == [-1, 0, 1]


def test_many_spans_open_at_once_take_no_quadratic_time():
    count = 20_000
    start = np.arange(count)
    nest = nesting(np.zeros(count, np.int64), start, start + count)
    assert nest.parent.tolist() == [-1, *range(count - 1)]


def test_damaged_times_do_not_overflow():
    nest = nesting(np.array([0, 1, 1]), np.array([-(2**61), 0, 2**61]), np.array([-(2**61) + 5, 10, 2**61 + 5]))
    assert nest.parent[0] == -1  # what lies beyond the edge is squeezed into it; nothing raises
