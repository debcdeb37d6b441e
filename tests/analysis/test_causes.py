"""What communication is exposed for, once all ranks are known."""

from pathlib import Path

import pandas as pd
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.causes import ADVICE, exposed_causes
from c3prof.analysis.exposed import EXPOSED
from c3prof.analysis.exposed_pieces import CAUSES
from c3prof.readers import load
from c3prof.sample_traces.rank_files import write_rank_files
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.table import Table

JOB = Job(ranks=4, tp=2, pp=2, layers=2, steps=4, clock_ns=5_000_000, drift_ppm=20, ranks_per_host=1, straggler=(1, 2_000_000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    write_rank_files(JOB, made, 900)
    return made


def test_files_of_a_job_hold_what_was_simulated(folder: Path) -> None:
    read, made = load(folder).collectives, simulated(JOB).trace.collectives
    for name in ("rank", "start_ns", "end_ns", "seq", "peer", "size_bytes", "group_size", "step", "launch_end_ns"):
        assert read[name].tolist() == made[name].tolist(), name
    for name in ("collective", "group", "group_desc"):
        assert read[name].astype(str).tolist() == made[name].astype(str).tolist(), name


def test_waits_and_transfers_of_files_are_those_simulated(folder: Path) -> None:
    ledger, truth = analyze(load(folder))["collectives"].frame, simulated(JOB).truth
    assert ledger["wait_ns"].notna().all()
    assert (ledger["wait_ns"] - truth["wait_ns"]).abs().max() < 3_000
    assert (ledger["exposed_ns"] == ledger["duration_ns"]).all()  # nothing computes beside it


def test_exposed_time_is_cut_at_the_last_arrival(folder: Path) -> None:
    made = analyze(load(folder))
    ledger, exposed = made["collectives"].frame, made["exposed"].frame
    by_cause = exposed[exposed["by"] == "cause"].pivot_table(
        index="rank", columns="cause", values="exposed_ns", aggfunc="sum", fill_value=0
    )
    assert by_cause.sum(axis=1).tolist() == ledger.groupby("rank")["exposed_ns"].sum().tolist()
    waits = ledger.groupby("rank")["wait_ns"].sum()
    assert by_cause["wait"].to_numpy() == pytest.approx(waits.to_numpy(), abs=len(ledger))  # 1 ns a record by rounding
    assert made["exposed_causes"].frame["cause"].iloc[0] == "wait"
    assert by_cause.loc[1, "wait"] < by_cause["wait"].max() / 10


def test_by_cause_over_ranks() -> None:
    def row(rank: int, cause: str, exposed: int, collective: str = "all_reduce") -> dict[str, object]:
        return {
            "rank": rank,
            "device": 0,
            "by": "combination",
            "collective": collective,
            "group": "0",
            "step": None,
            "op": "op",
            "cause": cause,
            "exposed_ns": exposed,
        }

    rows = [row(0, "wait", 30), row(1, "wait", 10, "all_gather"), row(1, "host", 60), row(0, "host", 0)]
    made = exposed_causes(Table.of(EXPOSED, pd.DataFrame(rows)[EXPOSED.names])).frame
    assert made.drop(columns=["advice", "op", "group"]).to_numpy().tolist() == [
        ["host", 60, 0.6, 1, "all_reduce"],
        ["wait", 40, 0.4, 2, "all_reduce"],
    ]


def test_every_cause_has_its_advice() -> None:
    assert set(ADVICE) == set(CAUSES)
