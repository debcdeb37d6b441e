"""Slowdown of GEMMs beside a memory-bound kernel on a side stream: c3prof on the Kineto trace against CUDA events."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c3prof.readers import load
from tests.analysis.contended_runs import table

torch: Any = pytest.importorskip("torch")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")]

STEPS, PRODUCTS = 24, 4


class Work:
    """GEMMs on the main stream, and an addition over 1 GB again and again on a side stream."""

    def __init__(self) -> None:
        self.a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        self.big = torch.ones(1 << 28, device="cuda")
        self.side = torch.cuda.Stream()

    def step(self, *, beside: bool) -> None:
        torch.cuda.synchronize()
        if beside:
            with torch.cuda.stream(self.side):
                for _ in range(8):
                    self.big.add_(1)
        for _ in range(PRODUCTS):
            self.a @ self.a
        torch.cuda.synchronize()

    def timed(self, *, beside: bool) -> float:
        """ms of the products of a step by CUDA events."""
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        if beside:
            with torch.cuda.stream(self.side):
                for _ in range(8):
                    self.big.add_(1)
        first.record()
        for _ in range(PRODUCTS):
            self.a @ self.a
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last))


def test_gemm_beside_a_memory_bound_kernel(tmp_path: Path) -> None:
    work = Work()
    for beside in (False, True) * 5:
        work.step(beside=beside)
    profiler = torch.profiler
    activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
    with profiler.profile(
        activities=activities, record_shapes=True, schedule=profiler.schedule(wait=0, warmup=1, active=STEPS)
    ) as recorded:
        for _ in range(STEPS + 1):
            for beside in (False, True):
                work.step(beside=beside)
            recorded.step()
    path = tmp_path / "gemm_beside_add.json"
    recorded.export_chrome_trace(str(path))
    times = np.array([[work.timed(beside=False), work.timed(beside=True)] for _ in range(40)])
    rows = table(load(path), "slowdown")
    row = rows[rows["op"].eq("aten::mm") & rows["co_runner"].str.startswith("compute:")].iloc[0]
    rounds = np.random.default_rng(0).integers(0, len(times), (1000, len(times)))
    ratios = np.median(times[rounds, 1], axis=1) / np.median(times[rounds, 0], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert row["slowdown_low"] <= high * 1.02
    assert low * 0.98 <= row["slowdown_high"], (low, high, row.to_dict())
