"""Clocks: offsets and drifts that were put in come out, within their bounds; nothing is made up where nothing ties ranks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis.clock import aligned
from c3prof.analysis.clock_fit import fitted_lines
from c3prof.analysis.joined import first_in_window, joined
from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.trace import Trace
from tests.collective_frames import column, record, trace


def shifted(run: Trace, rank: int, by_ns: int) -> Trace:
    """The run with one rank's clock ahead."""
    there = (run.collectives["rank"] == rank).to_numpy() * by_ns
    frame = run.collectives
    return replace(run, collectives=frame.assign(start_ns=frame["start_ns"] + there, end_ns=frame["end_ns"] + there))


def five_all_reduces(hosts: str | None = None) -> Trace:
    starts = {0: (0, 100, 230, 310, 420), 1: (3, 90, 236, 305, 424)}
    ends = (11, 112, 241, 322, 433)
    return trace([record(r, s, e, seq=k) for r, row in starts.items() for k, (s, e) in enumerate(zip(row, ends, strict=True))], hosts=hosts)


@pytest.mark.parametrize("hosts", [None, "one"])
def test_f12_clock_11_56_s_ahead(hosts: str | None) -> None:
    true = five_all_reduces(hosts)
    run = joined(shifted(true, 1, 11_560_000_000))
    row = run.clocks.frame.iloc[1]
    assert abs(row["offset_ns"] - 11_560_000_000) <= row["bound_ns"]
    with_shift, without = (across_ranks(t, {}, Settings())[0].frame for t in (shifted(true, 1, 11_560_000_000), true))
    for name in ("skew_ns", "wait_ns", "transfer_ns"):
        assert column(with_shift, name) == column(without, name)


def test_ranks_of_one_host_need_no_offset() -> None:
    run = joined(five_all_reduces("node0"))
    assert list(run.clocks.frame["offset_ns"]) == [0.0, 0.0]
    assert list(run.clocks.frame["note"]) == ["one host, one clock"] * 2


def two_long_all_reduces(ahead_ms: float) -> Trace:
    """Of 8 ms each on one host, as gloo does them: ends some ms apart, and too few of them to see that they scatter."""
    rows = [record(r, 10_000 * k, 10_000 * k + 8_000 + 3_000 * r, seq=k) for r in (0, 1) for k in range(2)]
    return shifted(trace(rows, hosts="vm"), 1, round(ahead_ms * 1e6))


def test_few_ends_a_little_apart_do_not_make_a_host_name_a_lie() -> None:
    assert list(joined(two_long_all_reduces(0)).clocks.frame["offset_ns"]) == [0, 0]


def test_few_ends_far_apart_do() -> None:
    found = joined(two_long_all_reduces(11_560)).clocks.frame
    assert found["offset_ns"].iloc[1] == 11_563e6
    assert "their clocks differ" in found["note"].iloc[1]


def test_without_synchronizing_collectives_there_is_no_offset_and_no_wait() -> None:
    pairs = [
        (record(0, 100 * k, 100 * k + 9, collective="send", peer=1), record(1, 100 * k + 3, 100 * k + 9, collective="recv", peer=0))
        for k in range(4)
    ]
    run = trace([r for pair in pairs for r in pair], hosts=None)
    ledger, *_, clocks = across_ranks(run, {}, Settings())
    assert column(clocks.frame, "offset_ns") == [0, None]
    assert "no synchronizing collective" in clocks.frame["note"].iloc[1]
    assert column(ledger.frame, "wait_ns") == [None] * 8
    assert ledger.frame["lower_bound"].all()
    assert ledger.frame["algbw_gb_s"].round(3).tolist() == [round(1e6 / 6e3, 3)] * 8  # the shortest duration of the two ranks


def test_two_groups_that_nothing_joins_keep_a_reference_each() -> None:
    def pair(ranks: tuple[int, int], group: str) -> list[dict[str, object]]:
        return [record(r, 100 * k + r, 100 * k + 20, group=group, group_ranks=str(list(ranks)), seq=k) for r in ranks for k in range(4)]

    run = trace([*pair((0, 1), "a"), *pair((2, 3), "b")], hosts=None)
    ledger, *_, clocks = across_ranks(run, {}, Settings())
    assert list(clocks.frame["reference"]) == [0, 0, 2, 2]
    assert column(ledger.frame[ledger.frame["rank"] == 2], "wait_ns") == [1, 1, 1, 1]


def test_ranks_are_tied_through_a_rank_of_both_groups() -> None:
    def rows(ranks: tuple[int, int], group: str, at: int) -> list[dict[str, object]]:
        return [
            record(r, 100 * k + at + r, 100 * k + at + 20, group=group, group_ranks=str(list(ranks)), seq=k)
            for r in ranks
            for k in range(6)
        ]

    run = trace([*rows((0, 1), "a", 0), *rows((1, 2), "b", 30), *rows((2, 3), "c", 60)], hosts=None)
    found = joined(shifted(shifted(run, 2, 5_000_000), 3, -7_000_000)).clocks.frame
    assert list(found["offset_ns"].round()) == [0, 0, 5_000_000, -7_000_000]


@pytest.mark.parametrize("seed", range(4))
def test_offsets_and_drifts_come_out_within_their_bounds(seed: int) -> None:
    job = Job(ranks=16, steps=40, clock_ns=5_000_000, drift_ppm=20, ranks_per_host=0, window=2, seed=seed)
    run = simulated(job)
    ends = run.trace.collectives["end_ns"].to_numpy()[(run.trace.collectives["rank"] == 0).to_numpy()]
    middle = (ends.min() + ends.max()) / 2 - 1_790_000_000_000_000_000
    found = joined(run.trace).clocks.frame
    true = run.clocks
    drift = true["drift_ppm"] - true["drift_ppm"].iloc[0]
    offset = true["offset_ns"] + true["drift_ppm"] * 1e-6 * middle
    offset -= offset.iloc[0]
    assert (np.abs(found["offset_ns"] - offset) <= found["bound_ns"]).all()
    assert (found["bound_ns"] < 2_000).all()
    assert np.abs(found["drift_ppm"] - drift).max() < 3  # one below 5 standard errors is reported as 0


def test_drift_too_small_to_be_told_is_zero() -> None:
    found = joined(simulated(Job(ranks=8, steps=5, clock_ns=5_000_000, ranks_per_host=0)).trace).clocks.frame
    assert (found["drift_ppm"] == 0).all()


def test_alignment_keeps_unknown_launch_times_unknown() -> None:
    run = shifted(five_all_reduces(), 1, 1_000_000)
    moved = aligned(run, joined(run).clocks)
    assert (moved.collectives["launch_end_ns"] == -1).all()
    assert list(moved.collectives["end_ns"]) == list(five_all_reduces().collectives["end_ns"])


def test_first_record_of_each_window() -> None:
    run = trace([record(0, 10 * k, 10 * k + 5, seq=k, step=step) for k, step in enumerate([3, 3, 4, 9, 9, 10])])
    assert list(first_in_window(run)) == [True, False, False, True, False, False]


@settings(max_examples=30, deadline=None)
@given(st.floats(-1e9, 1e9), st.floats(-1e-4, 1e-4), st.integers(8, 60), st.integers(0, 2**31))
def test_lines_without_noise_are_exact(offset: float, drift: float, n: int, seed: int) -> None:
    true = np.sort(np.random.default_rng(seed).uniform(-1e9, 1e9, n))
    shown = true + offset + drift * true
    lines = fitted_lines(np.zeros(n, np.int64), true, shown, 1)
    assert lines.true_time(np.zeros(n, np.int64), shown) == pytest.approx(true, abs=1.0)


def test_a_wild_end_does_not_move_the_line() -> None:
    true = np.arange(40.0) * np.float64(1e6)
    shown = true + 5_000.0
    shown[7] += 3e6
    assert fitted_lines(np.zeros(40, np.int64), true, shown, 1).offset[0] == pytest.approx(5_000.0, abs=1.0)
