"""All ranks of real runs."""

from pathlib import Path

import numpy as np
import pytest

from c3prof.analysis import analyze
from c3prof.readers import load
from c3prof.table import Report


@pytest.fixture(scope="module")
def dlrm(shared_traces: Path) -> Report:
    return analyze(load(shared_traces / "v100_dlrm_8ranks"))


def test_every_collective_is_matched_on_8_ranks(dlrm: Report) -> None:
    group = dlrm["process_groups"].frame.iloc[0]
    assert (group["operations"], group["matched_ranks"], group["unmatched"], group["group_size"]) == (8, 8.0, 0, 8)


def test_ends_agree_to_microseconds_and_starts_differ_by_7_6_ms(dlrm: Report) -> None:
    ledger = dlrm["collectives"].frame
    ends = ledger.groupby("seq")["end_ns"].agg(np.ptp)
    starts = ledger.groupby("seq")["arrival_ns"].agg(np.ptp)
    assert ends.max() < 7_000
    assert starts.max() == pytest.approx(7_624_000, abs=2_000)
    assert (dlrm["clocks"].frame["offset_ns"].abs() < 3_000).all()
    assert (dlrm["clocks"].frame["bound_ns"] < 7_000).all()


def test_ranks_that_wait_and_ranks_that_are_waited_for(dlrm: Report) -> None:
    ledger, waits = dlrm["collectives"].frame, dlrm["waits_by_rank"].frame.set_index("rank")
    assert ledger["wait_ns"].notna().all()
    assert (ledger["wait_ns"] + ledger["transfer_ns"] == ledger["duration_ns"]).all()
    assert ledger.groupby("seq")["last_rank"].first().tolist() == [7, 7, 7, 7, 7, 5, 5, 4]
    assert waits["caused_wait_ns"].idxmax() == 7
    assert set(waits.index[waits["n_last"] > 0]) == {4, 5, 7}


def test_exposed_time_keeps_its_sums_and_is_mostly_waiting(dlrm: Report) -> None:
    exposed = dlrm["exposed"].frame
    by_cause = exposed[exposed["by"] == "cause"].groupby("rank")["exposed_ns"].sum()
    assert by_cause.to_list() == [5_537_000, 11_056_000, 3_217_000, 9_450_000, 6_550_000, 6_211_000, 3_289_000, 1_580_000]
    causes = dlrm["exposed_causes"].frame
    assert causes["exposed_ns"].sum() == by_cause.sum()
    assert causes.iloc[0]["cause"] == "wait"
    assert causes["share"].sum() == pytest.approx(1.0)


def test_two_of_128_ranks_with_records_left_out(shared_traces: Path) -> None:
    """The files are sub-sampled; the ends that both kept agree, so the clocks do."""
    made = analyze(load(shared_traces / "sendrecv_128ranks"))
    clock = made["clocks"].frame.iloc[1]
    assert abs(clock["offset_ns"]) < clock["bound_ns"] < 1_000_000
    assert made["process_groups"].frame["group_size"].tolist() == [None]
    assert made["collectives"].frame["busbw_gb_s"].isna().all()


def test_gloo_ranks_of_one_host_share_a_clock(shared_traces: Path) -> None:
    made = analyze(load([shared_traces / "gloo" / f"ddp_4r_rank{rank}.json.gz" for rank in range(4)]))
    assert (made["clocks"].frame["offset_ns"] == 0).all()
    assert made["process_groups"].frame[["group_size", "matched_ranks", "link"]].to_numpy().tolist() == [[4, 4.0, "intra-node"]]
    ledger = made["collectives"].frame
    assert (ledger["wait_ns"] + ledger["transfer_ns"] == ledger["duration_ns"]).all()


def test_gloo_pipeline_of_two_ranks_pairs_sends_and_recvs(shared_traces: Path) -> None:
    made = analyze(load([shared_traces / "gloo" / f"pp_2r_rank{rank}.json.gz" for rank in range(2)]))
    group = made["process_groups"].frame.iloc[0]
    assert (group["dimension"], group["operations"], group["matched_ranks"], group["unmatched"]) == ("pp", 16, 2.0, 0)
    recv = made["collectives"].frame.query("collective == 'recv'")
    assert recv["transfer_ns"].notna().all()
