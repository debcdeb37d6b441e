"""Waves, resident blocks and the table footprint."""

from pathlib import Path

import pytest

from c3prof.analysis.footprint import resident_blocks, waves
from c3prof.sample_traces.simulator import Collective, Kernel, Program, contended
from tests.analysis.contended_runs import table, trace_of

H100 = {"maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472}


def test_waves() -> None:
    """F9: 264 blocks, one resident, 132 SMs of which communication takes k."""
    expected = [2] + [3] * 44 + [4] * 22
    assert [waves(264, 132 - k, 1) for k in range(67)] == expected


def test_no_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one SM"):
        waves(264, 0, 1)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [
        (256, 32, 0, 8),  # 2048 / 256 threads
        (256, 128, 0, 2),  # 65536 / (128 · 256) registers
        (256, 64, 100_000, 2),  # shared memory
        (100, -1, -1, 16),  # 100 threads are 4 warps, nothing else known
        (1024, 255, 0, None),  # does not fit
    ],
)
def test_resident_blocks(threads: int, registers: int, shared: int, expected: int | None) -> None:
    assert resident_blocks(threads, registers, shared, H100) == expected
    assert resident_blocks(threads, registers, shared, {}) is None


def test_table(tmp_path: Path) -> None:
    """132 SMs, 4 blocks resident (64 registers · 256 threads); 528 blocks are one wave, two beside 16 channels."""
    kernels = [Kernel("full", 100.0, grid=(528, 1, 1)), Kernel("small", 100.0, grid=(64, 1, 1)), Kernel("gemm_stream_k", 100.0)]
    rows = table(trace_of(tmp_path, *contended(Program(kernels, [Collective(250)], steps=4), 0)), "footprint").set_index("kernel")
    columns = ["n", "workgroups", "sms", "blocks", "resident", "waves", "waves_beside", "likely_cause"]
    assert rows.loc["full", columns].tolist() == [4, 16, 132, 528, 4, 1, 2, "sm-bound"]
    assert rows.loc["small", columns].tolist() == [4, 16, 132, 64, 4, 1, 1, "bandwidth-bound"]
    assert rows.loc["full", "sm_share"] == pytest.approx(16 / 132)
    assert rows.loc["gemm_stream_k", "waves"] is None
    assert rows.loc["gemm_stream_k", "note"].startswith("persistent or stream-K kernel")
