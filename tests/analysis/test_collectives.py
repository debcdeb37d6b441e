"""Each rule of docs/metrics.md §5 as a case that can be checked by hand. Times in µs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c3prof.analysis.ranks import across_ranks, warnings
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.trace import Trace
from tests.collective_frames import column, record, trace


def tables(run: Trace) -> dict[str, pd.DataFrame]:
    return {table.schema.name: table.frame for table in across_ranks(run, {}, Settings())}


def ledger(run: Trace) -> pd.DataFrame:
    return tables(run)["collectives"]


# rank 0 ▕████████▏            8 ms of compute, then one all_reduce of 2 ms
# rank 3 ▕████████████▏        12 ms
def test_f8_three_ranks_wait_for_the_fourth() -> None:
    made = ledger(trace([record(rank, ready, 14_000, seq=1) for rank, ready in enumerate([8_000, 8_000, 8_000, 12_000])]))
    assert column(made, "wait_ns") == [4_000, 4_000, 4_000, 0]
    assert column(made, "transfer_ns") == [2_000] * 4
    assert column(made, "skew_ns") == [4_000] * 4
    assert list(made["last_rank"]) == [3] * 4


def test_rank_late_by_8_ms_is_named_not_the_ranks_with_long_kernels() -> None:
    made = ledger(trace([record(rank, 8_000 if rank == 2 else 0, 9_000, seq=0) for rank in range(4)]))
    assert column(made, "wait_ns") == [8_000, 8_000, 0, 8_000]
    assert set(made["last_rank"]) == {2}


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_who_takes_part_in_all_waits_for_the_last(kind: str) -> None:
    made = ledger(trace([record(0, 0, 10, collective=kind, seq=5), record(1, 3, 11, collective=kind, seq=5)]))
    assert column(made, "wait_ns") == [3, 0]
    assert column(made, "transfer_ns") == [7, 8]


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("all_to_all", 0.875), ("broadcast", 1), ("reduce", 1)],
)
def test_f7_bus_bandwidth_of_8_ranks(kind: str, factor: float) -> None:
    made = ledger(trace([record(rank, 0, 100, collective=kind, seq=0, size_bytes=1_000_000, peer=0, group_size=8) for rank in range(8)]))
    known = made[made["algbw_gb_s"].notna()]
    assert len(known) == {"broadcast": 7, "reduce": 1}.get(kind, 8)
    assert np.allclose(known["algbw_gb_s"], 10.0)  # 1 MB in 100 µs
    assert np.allclose(known["busbw_gb_s"], 10.0 * factor)
    assert not known["lower_bound"].any()


@pytest.mark.parametrize("kind", ["broadcast", "scatter"])
def test_receiver_waits_for_the_root_only(kind: str) -> None:
    starts, ends = [4, 0, 6], [9, 10, 11]  # rank 0 is the root
    made = ledger(trace([record(r, starts[r], ends[r], collective=kind, seq=0, peer=0) for r in range(3)]))
    assert column(made, "wait_ns") == [None, 4, 0]
    assert column(made, "transfer_ns") == [None, 6, 5]
    assert "the root waits for nobody" in made["note"].iloc[0]


def test_broadcast_without_a_named_root_is_null() -> None:
    made = ledger(trace([record(rank, rank, 9, collective="broadcast", seq=0) for rank in range(2)]))
    assert column(made, "wait_ns") == [None, None]
    assert all("root not known or not recorded" in note for note in made["note"])


@pytest.mark.parametrize("kind", ["reduce", "gather"])
def test_only_the_root_of_a_reduce_waits(kind: str) -> None:
    starts, ends = [0, 5, 2], [9, 8, 4]
    made = ledger(trace([record(r, starts[r], ends[r], collective=kind, seq=0, peer=0) for r in range(3)]))
    assert column(made, "wait_ns") == [5, None, None]
    assert column(made, "transfer_ns") == [4, None, None]


def test_root_written_as_the_rank_inside_its_group() -> None:
    members = {"group": "g", "group_size": 2, "group_ranks": "[4,6]", "collective": "broadcast", "seq": 0, "peer": 0}
    made = ledger(trace([record(4, 3, 9, **members), record(6, 0, 9, **members)]))
    assert column(made, "wait_ns") == [None, 3]


# send 0→1  ▕──────────▏       recv on 1   ▕───────▏
def test_send_and_recv_move_data_when_both_are_there() -> None:
    pair = {"group": "pp", "group_size": 2, "group_ranks": "[0,1]"}
    made = ledger(
        trace([record(0, 0, 10, collective="send", peer=1, seq=7, **pair), record(1, 6, 10, collective="recv", peer=0, seq=3, **pair)])
    )
    assert column(made, "wait_ns") == [6, 0]
    assert column(made, "transfer_ns") == [4, 4]
    assert list(made["last_rank"]) == [1, 1]
    assert list(made["busbw_gb_s"]) == list(made["algbw_gb_s"]) == [250.0, 250.0]


def test_transfer_of_a_send_ends_with_its_recv() -> None:
    made = ledger(trace([record(0, 0, 10, collective="send", peer=1), record(1, 4, 11, collective="recv", peer=0)]))
    assert column(made, "transfer_ns") == [7, 7]
    assert (made["wait_ns"] + made["transfer_ns"] == made["duration_ns"]).all()


def test_buffered_send_has_no_wait() -> None:
    made = ledger(trace([record(0, 0, 2, collective="send", peer=1), record(1, 5, 9, collective="recv", peer=0)]))
    assert column(made, "wait_ns") == [None, 0]
    assert column(made, "transfer_ns") == [None, 4]
    assert "buffered" in made["note"].iloc[0]


def test_kth_send_is_kth_recv_whatever_seq_says() -> None:
    sends = [record(0, 100 * k, 100 * k + 9, collective="send", peer=1, seq=40 + k) for k in range(3)]
    recvs = [record(1, 100 * k + 5, 100 * k + 9, collective="recv", peer=0, seq=2 * k) for k in range(3)]
    other = [record(1, 40, 41, collective="send", peer=2), record(2, 30, 41, collective="recv", peer=1)]
    made = ledger(trace([*sends, *recvs, *other]))
    assert column(made[made["rank"] == 0], "wait_ns") == [5, 5, 5]
    assert column(made[made["rank"] == 2], "wait_ns") == [10]


def test_first_recv_lost_shifts_nothing() -> None:
    sends = [record(0, 100 * k, 100 * k + 9, collective="send", peer=1) for k in range(4)]
    recvs = [record(1, 100 * k + 5, 100 * k + 9, collective="recv", peer=0) for k in range(1, 4)]
    made = ledger(trace([*sends, *recvs]))
    assert column(made[made["rank"] == 0], "wait_ns") == [None, 5, 5, 5]
    assert column(made[made["rank"] == 1], "wait_ns") == [0, 0, 0]


def test_batched_p2p_waits_for_its_own_peer() -> None:
    def exchange(rank: int, peer: int, start: float) -> dict[str, Any]:
        return record(rank, start, 20, collective="send_recv", peer=peer)

    made = ledger(trace([exchange(0, 1, 2), exchange(1, 0, 5), exchange(2, 3, 9), exchange(3, 2, 1)]))
    assert column(made, "wait_ns") == [3, 0, 0, 8]


def test_batched_p2p_without_peers_is_null() -> None:
    made = ledger(trace([record(rank, rank, 20, collective="send_recv", group_size=3) for rank in range(3)]))
    assert column(made, "wait_ns") == [None] * 3
    assert all("peer not recorded" in note for note in made["note"])


def test_unbalanced_all_to_all_is_null_and_balanced_is_not() -> None:
    def exchange(rank: int, sent: int, received: int, seq: int) -> dict[str, Any]:
        return record(rank, 100 * seq + rank, 100 * seq + 9, collective="all_to_all", seq=seq, in_elements=sent, out_elements=received)

    made = ledger(trace([exchange(0, 8, 8, 0), exchange(1, 8, 8, 0), exchange(0, 8, 4, 1), exchange(1, 4, 8, 1)]))
    assert column(made, "wait_ns") == [1, None, 0, None]
    assert "different amounts" in made["note"].iloc[1]


def test_skew_longer_than_transfer_makes_all_gather_an_upper_bound() -> None:
    made = ledger(trace([record(0, 0, 10, collective="all_gather", seq=0), record(1, 8, 10, collective="all_gather", seq=0)]))
    assert set(made["note"]) == {
        "partly done while waiting: busbw is an upper bound; first after the window opened: out of stragglers, fits and slowdown"
    }


def test_end_before_the_last_arrival_is_null_and_counted() -> None:
    made = ledger(trace([record(0, 0, 4, seq=0), record(1, 6, 10, seq=0)]))
    assert column(made, "wait_ns") == [None, 0]
    assert "contradict" in made["note"].iloc[0]


def test_one_rank_alone_gives_lower_bounds() -> None:
    made = ledger(trace([record(3, 0, 100, seq=0, group_size=8)], world=8))
    assert column(made, "wait_ns") == column(made, "transfer_ns") == column(made, "skew_ns") == [None]
    assert made["algbw_gb_s"].iloc[0] == 10.0
    assert made["busbw_gb_s"].iloc[0] == 17.5
    assert made["lower_bound"].iloc[0]
    assert "no other rank's record" in made["note"].iloc[0]


def test_missing_rank_makes_bandwidth_a_lower_bound() -> None:
    made = ledger(trace([record(rank, 0, 100, seq=0, group_size=3, group_ranks="[0,1,2]") for rank in (0, 2)], world=3))
    assert column(made, "transfer_ns") == [100, 100]
    assert made["lower_bound"].all()
    assert all("not recorded on all ranks" in note for note in made["note"])


def test_unknown_kind_is_null_with_the_reason() -> None:
    made = ledger(trace([record(rank, rank, 9, collective="unknown", seq=0) for rank in range(2)]))
    assert column(made, "wait_ns") == [None, None]
    assert "kind unknown" in made["note"].iloc[0]


def test_rows_keep_the_order_of_the_trace() -> None:
    run = simulated(Job(ranks=4, steps=2, window=2, seed=3)).trace
    made = ledger(run)
    assert (made["rank"].to_numpy() == run.collectives["rank"].to_numpy()).all()
    assert (made["duration_ns"] == run.collectives["end_ns"] - run.collectives["start_ns"]).all()


@pytest.mark.parametrize("seed", range(3))
def test_wait_and_transfer_sum_to_the_duration(seed: int) -> None:
    made = ledger(
        simulated(
            Job(ranks=16, tp=2, pp=2, layers=2, ep=1, steps=3, window=2, dropped=0.02, clock_ns=5_000_000, drift_ppm=20, seed=seed)
        ).trace
    )
    split = made[made["wait_ns"].notna()]
    assert len(split) > 0.9 * len(made)
    assert (split["wait_ns"] + split["transfer_ns"] == split["duration_ns"]).all()
    assert (split["wait_ns"] >= 0).all()
    assert made["wait_ns"].isna().equals(made["transfer_ns"].isna())


# The acceptance case: clocks ±5 ms and 20 ppm, windows shifted by 0 to 2 records, two ranks without a file.
@pytest.mark.parametrize("recorded_seq", [True, False])
@pytest.mark.parametrize("ranks_per_host", [0, 8])
def test_64_ranks_with_two_missing(ranks_per_host: int, *, recorded_seq: bool) -> None:
    job = Job(
        ranks=64, tp=4, pp=2, layers=3, ep=1, steps=10, clock_ns=5_000_000, drift_ppm=20, window=2,
        missing=(3, 17), ranks_per_host=ranks_per_host, recorded_seq=recorded_seq,
    )  # fmt: skip
    run = simulated(job)
    made = ledger(run.trace)
    whole = ~made["note"].astype(str).str.contains("not recorded on all ranks|no other rank").to_numpy()
    assert whole.mean() > 0.6
    for name in ("wait_ns", "transfer_ns"):
        error = (made[name] - run.truth[name])[whole]
        assert error.notna().all()
        assert error.abs().max() < 20_000


def test_by_kind_sums_the_ledger() -> None:
    made = tables(simulated(Job(ranks=8, steps=4, seed=1)).trace)
    by_kind, rows = made["collectives_by_kind"], made["collectives"]
    assert by_kind["n_records"].sum() == len(rows)
    assert by_kind["duration_ns"].sum() == rows["duration_ns"].sum()
    assert by_kind["wait_ns"].sum() == rows["wait_ns"].sum()
    assert ((by_kind["wait_ns"] + by_kind["transfer_ns"]) == by_kind["duration_ns"]).all()
    assert list(by_kind["n_operations"].sort_values()) == [4, 16]


def test_no_collectives_at_all_gives_empty_tables() -> None:
    made = tables(trace([], ranks=[0, 1], world=2))
    assert {name for name, frame in made.items() if len(frame)} == {"waits_by_rank", "clocks"}
    assert column(made["waits_by_rank"], "wait_ns") == [None, None]


def test_places_do_not_pass_for_numbers_where_others_have_numbers() -> None:
    numbered = [record(r, 100 * k, 100 * k + 5, seq=k) for r in (0, 1) for k in range(3)]
    bare = [record(r, 100 * k + 50, 100 * k + 55) for r in (0, 1) for k in range(3)]
    made = ledger(trace([*numbered, *bare]))
    assert list(made["seq"][:6]) == [0, None, 1, None, 2, None]
    assert made["wait_ns"].notna().all()


def test_ranks_that_nothing_ties_are_a_warning() -> None:
    run = trace(
        [record(0, 0, 9, collective="broadcast", peer=0, seq=0), record(1, 3, 9, collective="broadcast", peer=0, seq=0)], hosts=None
    )
    found = warnings({table.schema.name: table for table in across_ranks(run, {}, Settings())})
    assert [(warning.code, warning.count) for warning in found] == [("no-common-clock", 1)]
