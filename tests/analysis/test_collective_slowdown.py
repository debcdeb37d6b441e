"""The other direction: collectives slowed by compute, measured on their transfers over all ranks."""

from pathlib import Path

import pandas as pd
import pytest

from c3prof.analysis.collective_samples import COLLECTIVE_SHARED, Shared
from c3prof.analysis.collective_slowdown import transfers
from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.simulator import Collective, Kernel, Noise, Program, contended
from tests.analysis.contended_runs import table, trace_of
from tests.collective_frames import record
from tests.collective_frames import trace as hand_written


@pytest.mark.parametrize("slowdown", [1.0, 1.4])
def test_collectives_slowed_by_compute(tmp_path: Path, slowdown: float) -> None:
    """Two ranks with random arrivals: all_reduces beside compute, and others after the last kernel, alone."""
    kernels = [Kernel(f"k{i}", 150.0, 1.2, dims=((i + 1, 2),)) for i in range(8)]
    beside = [Collective(400, after=after, slowdown=slowdown, delay=40) for after in (1, 4)]
    alone = Collective(400, after=8, slowdown=slowdown, delay=40)
    program = Program(kernels, [*beside, alone], steps=20, ranks=2, noise=Noise(0.02, 0.01))
    trace = trace_of(tmp_path, *contended(program, 3))
    rows = table(trace, "slowdown")
    found = rows[(rows["op"] == "all_reduce") & (rows["co_runner"] == "compute")]
    assert len(found) == 1
    row = found.iloc[0]
    assert row["slowdown"] == pytest.approx(slowdown, rel=0.05)
    assert row["slowdown_low"] < slowdown < row["slowdown_high"]
    assert row["interference"] == (slowdown > 1)
    assert row["clean_ns"] == pytest.approx(400_000, rel=0.03)
    assert min(row["n_clean"], row["n_overlapped"]) >= 10
    classes = table(trace, "interference")
    rolled_up = classes[(classes["kernel_class"] == "comm:all_reduce") & (classes["co_runner"] == "compute")]
    assert len(rolled_up) == 1
    assert rolled_up.iloc[0][["rank", "n_signatures", "n_clean", "n_overlapped"]].tolist() == [0, 1, row["n_clean"], row["n_overlapped"]]
    assert rolled_up["slowdown"].iloc[0] == pytest.approx(row["slowdown"])


def test_classes_that_always_come_together(tmp_path: Path) -> None:
    """gemm and norm in turn under every all_reduce: the union has a number, the classes are not separable."""
    kernels = [Kernel(name, 50.0, dims=((i + 1, 2),)) for i, name in enumerate(["ampere_gemm", "layer_norm"] * 6)]
    beside, alone = Collective(200, after=1, slowdown=1.4, delay=5), Collective(200, after=12, slowdown=1.4, delay=5)
    program = Program(kernels, [beside, alone], steps=20, ranks=2, noise=Noise(0.02))
    rows = table(trace_of(tmp_path, *contended(program, 3)), "slowdown")
    found = rows[rows["op"] == "all_reduce"].set_index("co_runner")
    assert found.loc["compute", "slowdown"] == pytest.approx(1.4, rel=0.05)
    assert "classes not separable" in str(found.loc["compute", "note"])
    assert set(found.index) == {"compute"}


def test_sends_of_one_number_are_operations_of_their_own() -> None:
    """0 → 1 takes 10 µs and 2 → 3 takes 30 µs; both are number 7 of their ranks. The all_reduce opens the window."""
    records = [record(rank, 0, 5, seq=0) for rank in range(4)]
    for source, time in ((0, 10), (2, 30)):
        records += [record(source, 20, 20 + time, collective="send", peer=source + 1, seq=7)]
        records += [record(source + 1, 20, 20 + time, collective="recv", peer=source, seq=7)]
    run = hand_written(records)
    tables = {made.schema.name: made.frame for made in across_ranks(run, {}, Settings())}
    rows = pd.DataFrame({"signature": "s", "duration_ns": tables["collectives"]["duration_ns"]})
    nothing = Shared.of(COLLECTIVE_SHARED.frame(), pd.Series(dtype="int64"))
    found = transfers(tables["collectives"], tables["_operations"], rows, nothing)
    assert found.transfer_ns.tolist() == [10_000, 30_000]
    assert tables["collectives"]["rank"].iloc[found.row].tolist() == [0, 2]
