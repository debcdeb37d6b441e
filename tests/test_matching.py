"""Which records are the same operation: by number, by order, by peers; groups by name and members."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.matching import Matches, matches, peers, process_groups
from c3prof.ordering import common_order
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.trace import Trace
from tests.collective_frames import record, trace


def matched(run: Trace) -> Matches:
    return matches(run.collectives, process_groups(run.collectives, run.groups))


def partners(run: Trace) -> list[set[int]]:
    """For each operation the `in_elements` of its records, which the tests use to name them; by first record."""
    found = matched(run).operation
    names = run.collectives["in_elements"].to_numpy()
    return [set(names[found == number].tolist()) for number in pd.unique(found) if number >= 0]


def same_everywhere(run: Trace) -> bool:
    return all(len(names) == 1 for names in partners(run)) and len(partners(run)) == run.collectives["in_elements"].nunique()


def test_sequence_numbers_match_whatever_the_order_and_the_ids() -> None:
    rows = [record(0, 10 * k, 10 * k + 5, seq=k, in_elements=k) for k in range(5)]
    rows += [record(1, 10 * k, 10 * k + 5, seq=k, in_elements=k, op=99) for k in range(2, 5)]
    assert same_everywhere(trace(rows))


def test_equal_members_two_groups_two_counters() -> None:
    rows = [
        record(r, 10 * k, 10 * k + 5, group=g, group_ranks="[0,1]", seq=k, in_elements=k + 10 * int(g))
        for r in (0, 1)
        for g in ("1", "2")
        for k in range(3)
    ]
    assert same_everywhere(trace(rows))


def test_one_name_two_groups_of_other_members() -> None:
    rows = [
        record(r, 10 * k, 10 * k + 5, group="1", group_ranks=f"[{r // 2 * 2},{r // 2 * 2 + 1}]", seq=k, in_elements=k + 10 * (r // 2))
        for r in range(4)
        for k in range(3)
    ]
    run = trace(rows)
    assert same_everywhere(run)
    assert list(process_groups(run.collectives).table["label"]) == ["1 [0,1]", "1 [2,3]"]


def test_members_from_the_declaration_where_the_record_lacks_them() -> None:
    rows = [record(r, 10 * k, 10 * k + 5, group="1", seq=k, in_elements=k + 10 * (r // 2)) for r in range(4) for k in range(3)]
    assert same_everywhere(trace(rows, groups=[(r, "1", f"[{r // 2 * 2},{r // 2 * 2 + 1}]") for r in range(4)]))


def test_record_without_a_group_belongs_to_its_ranks_only_group() -> None:
    run = trace([record(r, 0, 5, group=None, seq=0) for r in (0, 1)], groups=[(r, "7", "[0,1]") for r in (0, 1)])
    table = process_groups(run.collectives, run.groups).table
    assert table[["name", "members", "size"]].to_numpy().tolist() == [["7", "[0,1]", 2]]


def test_cut_rank_list_takes_the_recorded_size() -> None:
    cut = "[" + ",".join(map(str, range(30))) + ",...]"
    run = trace([record(r, 0, 5, group_ranks=cut, group_size=64, seq=0) for r in (0, 50)])
    assert list(process_groups(run.collectives).table["size"]) == [64]
    assert list(matched(run).ranks) == [2, 2]


def test_coalesced_calls_share_a_number_and_keep_their_order() -> None:
    rows = [record(r, 10 * k, 10 * k + 5, seq=4, in_elements=k) for r in (0, 1) for k in range(3)]
    assert same_everywhere(trace(rows))


def test_a_contradicting_kind_is_unmatched_and_unknown_contradicts_nobody() -> None:
    rows = [record(r, 0, 5, seq=0, collective="broadcast" if r == 2 else "unknown" if r == 3 else "all_reduce") for r in range(4)]
    assert list(matched(trace(rows)).operation) == [0, 0, -1, 0]


def test_groups_by_name_and_members_with_ranks_as_peers() -> None:
    rows = [record(r, 0, 5, collective="send" if r == 4 else "recv", group="g", group_ranks="[4,6]", peer=-1) for r in (4, 6)]
    run = trace(rows)
    assert list(peers(run.collectives, process_groups(run.collectives))) == [6, 4]


ENDS = [11, 24, 39, 51, 67, 82, 90, 108]


def by_order(drops: dict[int, set[int]], kinds: str, ahead: dict[int, float] | None = None) -> Trace:
    """Ranks that record the same operations (a letter: a size) but for the dropped ones, without sequence numbers."""
    rows: list[dict[str, Any]] = []
    for rank in range(3):
        shift = (ahead or {}).get(rank, 0.0)
        kept = [k for k in range(len(kinds)) if k not in drops.get(rank, ())]
        rows += [record(rank, ENDS[k] - 5 + shift, ENDS[k] + shift, size_bytes=ord(kinds[k]), in_elements=k) for k in kept]
    return trace(rows)


@pytest.mark.parametrize(
    "drops",
    [{}, {1: {0}}, {1: {0, 1}, 2: {7}}, {0: {0}, 1: {7}, 2: {3}}, {1: {2}}, {2: {4, 5}}],
    ids=["none", "first", "windows", "each another", "one between", "two between"],
)
@pytest.mark.parametrize("kinds", ["abcdefgh", "abababab", "aaaaaaaa"])
@pytest.mark.parametrize("ahead", [{}, {1: 4.0}])
def test_without_numbers_missing_records_shift_nothing(drops: dict[int, set[int]], kinds: str, ahead: dict[int, float]) -> None:
    assert same_everywhere(by_order(drops, kinds, ahead))


def test_an_extra_operation_on_one_rank_is_unmatched() -> None:
    rows = [record(0, e - 5, e, size_bytes=7, in_elements=k) for k, e in enumerate(ENDS)]
    rows += [record(1, e - 4, e, size_bytes=7, in_elements=k) for k, e in enumerate(ENDS)] + [
        record(1, 70, 73, size_bytes=9, in_elements=99)
    ]
    run = trace(rows)
    assert same_everywhere(run)
    assert matched(run).unmatched == 1


def test_ranks_of_an_all_to_all_may_move_different_amounts() -> None:
    rows = [record(r, e - 5, e, collective="all_to_all", size_bytes=100 * r + k, in_elements=k) for r in (0, 1) for k, e in enumerate(ENDS)]
    assert same_everywhere(trace(rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dropped", [0.0, 0.01])
def test_numbers_and_order_find_the_same_operations(seed: int, dropped: float) -> None:
    job = Job(ranks=32, tp=4, pp=2, layers=3, ep=1, steps=6, clock_ns=5_000_000, drift_ppm=20, window=2, missing=(3,), ranks_per_host=0)
    job = replace(job, dropped=dropped, seed=seed)
    with_numbers, without = (simulated(replace(job, recorded_seq=recorded)).trace for recorded in (True, False))
    first, second = matched(with_numbers).operation, matched(without).operation
    p2p = with_numbers.collectives["collective"].isin(["send", "recv"]).to_numpy()
    pairs = pd.DataFrame({"a": first, "b": second})[~p2p].drop_duplicates()
    assert len(pairs) == pairs["a"].nunique() == pairs["b"].nunique()


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 40), st.integers(1, 4), st.integers(0, 2), st.integers(0, 2**31))
def test_windows_of_one_sequence_fall_on_their_places(n: int, kinds: int, missing: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    token, end = rng.integers(0, kinds, n), np.cumsum(rng.integers(1_000, 100_000, n))
    windows = [slice(int(rng.integers(0, missing + 1)), n - int(rng.integers(0, missing + 1))) for _ in range(3)]
    windows.append(slice(0, n))
    jitter = [rng.integers(0, 20, n) for _ in windows]
    places = common_order([token[w] for w in windows], [(end + j)[w] for w, j in zip(windows, jitter, strict=True)])
    assert [p.tolist() for p in places] == [list(range(n))[w] for w in windows]
