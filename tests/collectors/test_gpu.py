"""On an accelerator: what the collectors assume about CUDA and NCCL, each checked on the device. One rank (NCCL, world 1).

A GPU cannot hold two NCCL ranks, so what needs a peer (skew, interference of two ranks) is not here.
"""

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the probes need torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA or ROCm device here"),
]

import c3prof  # noqa: E402  # the skip comes first
from c3prof.collectors.calibration import Switch  # noqa: E402  # as above
from c3prof.collectors.events import DeviceEvents  # noqa: E402  # as above
from c3prof.collectors.faults import Faults  # noqa: E402  # as above
from c3prof.collectors.internals import recorded_flight_text  # noqa: E402  # as above
from c3prof.collectors.power import Power  # noqa: E402  # as above
from c3prof.collectors.window import Calibration  # noqa: E402  # as above
from c3prof.readers import load  # noqa: E402  # as above
from tests.collectors.ranks import lines, manifest  # noqa: E402  # as above


@pytest.fixture(scope="module")
def group() -> Iterator[Any]:
    """A process group of one rank on NCCL, with timing on."""
    import torch.distributed as dist  # noqa: PLC0415  # only with a device

    os.environ.setdefault("TORCH_NCCL_ENABLE_TIMING", "1")
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=torch.device("cuda:0"))
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()
    yield dist
    dist.destroy_process_group()


def _kernels(path: Path) -> Any:
    return load(path).activities


def _traced(work: Any, path: Path) -> Any:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA], record_shapes=True
    ) as prof:
        work()
        torch.cuda.synchronize()
    prof.export_chrome_trace(str(path))
    return _kernels(path)


def test_light_mode_times_collectives_on_the_device(group: Any, tmp_path: Path) -> None:
    with c3prof.profile(tmp_path, kineto=None) as prof:
        for _ in range(6):
            work = group.all_reduce(torch.ones(1 << 24, device="cuda"), async_op=True)
            torch.mm(torch.ones(2048, 2048, device="cuda"), torch.ones(2048, 2048, device="cuda"))
            work.wait()
            prof.step()
            torch.cuda.synchronize()
    timed = [event for event in lines(tmp_path, 0, "events.jsonl") if "gpu_ns" in event]
    assert [event["step"] for event in timed if "group" not in event] == [0, 1, 2, 3, 4, 5]
    assert all(event["gpu_ns"] >= 0 for event in timed)
    trace = load(tmp_path)
    assert list(trace.collectives["collective"]) == ["all_reduce"] * 6
    assert (trace.collectives["end_ns"] >= trace.collectives["start_ns"]).all()
    assert manifest(tmp_path, 0)["errors"] == []


def test_event_durations_cover_the_kernels(group: Any, tmp_path: Path) -> None:
    """An end event recorded by the Work's future stands after the kernel; ready to end is at least as long as it."""
    events = DeviceEvents(tmp_path / "events.jsonl", Faults())
    assert events.probe()[0]
    events.start()
    tensor = torch.ones(1 << 26, device="cuda")
    facts = {"step": 0, "group": "0", "seq": 0}

    def run() -> None:
        ready = events.ready()
        work = group.all_reduce(tensor, async_op=True)
        events.called(ready, facts, work)
        work.wait()

    kernels = _traced(run, tmp_path / "trace.json")
    events.step(1, None)
    torch.cuda.synchronize()
    events.stop()
    (timed,) = [event for event in map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines()) if "group" in event]
    comm = kernels[kernels["class"] == "comm"]
    longest = int((comm["end_ns"] - comm["start_ns"]).max()) if len(comm) else 0
    assert timed["gpu_ns"] >= 0.9 * longest


def test_the_flight_recorder_has_durations(group: Any) -> None:
    for _ in range(4):
        group.all_reduce(torch.ones(1 << 20, device="cuda"))
    torch.cuda.synchronize()
    time.sleep(1.5)  # its thread looks now and then
    text = recorded_flight_text(only_active=False)
    assert text is not None
    entries = json.loads(text)["entries"]
    assert any("duration_ms" in entry for entry in entries)


def test_serialized_work_does_not_overlap_compute(group: Any, tmp_path: Path) -> None:
    """Stream waits alone keep them apart: no kernel of the side stream shares time with one of the other."""
    del group
    side, a = torch.cuda.Stream(), torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    big = torch.empty(1 << 28, device="cuda", dtype=torch.uint8)
    switch = Switch(Calibration(3), Faults(), on_device=True)
    switch.step = 1

    def one() -> None:
        torch.mm(a, a)
        switch.before()
        current = torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            torch.add(big, 1, out=big)
        assert switch.after(lambda: current.wait_stream(side), on_host=False)
        torch.mm(a, a)

    one()

    def ten() -> None:
        for _ in range(10):
            one()

    kernels = _traced(ten, tmp_path / "trace.json").sort_values("start_ns")
    assert kernels["stream"].nunique() == 2
    assert (kernels["start_ns"].to_numpy()[1:] >= kernels["end_ns"].to_numpy()[:-1]).all()


def test_nothing_is_recorded_into_a_graph(group: Any, tmp_path: Path) -> None:
    x = torch.ones(1 << 16, device="cuda")
    with c3prof.profile(tmp_path, kineto=None) as prof:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            group.all_reduce(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            group.all_reduce(x)
        for _ in range(3):
            graph.replay()
            prof.step()
        torch.cuda.synchronize()
    calls = lines(tmp_path, 0, "comm.jsonl")
    assert [call["captured"] for call in calls] == [False, True]  # replays do not pass through the dispatcher
    assert manifest(tmp_path, 0)["errors"] == []


def test_the_hook_costs_microseconds(group: Any, tmp_path: Path) -> None:
    x = torch.ones(1 << 10, device="cuda")

    def cost() -> float:
        samples = []
        for _ in range(300):
            start = time.thread_time_ns()
            work = group.all_reduce(x, async_op=True)
            samples.append(time.thread_time_ns() - start)
            work.wait()
        torch.cuda.synchronize()
        return statistics.median(samples)

    cost()
    off = cost()
    with c3prof.profile(tmp_path, kineto=None):
        on = cost()
    print(f"all_reduce: {off / 1e3:.1f} µs bare, {on / 1e3:.1f} µs with hook and events")  # noqa: T201  # the measurement is the point
    assert on - off < 1_000_000


def test_power_is_sampled(tmp_path: Path) -> None:
    power = Power(tmp_path / "power.jsonl", Faults(), period_s=0.05)
    works, reason = power.probe()
    if not works:
        pytest.skip(reason)
    power.start()
    a = torch.randn(8192, 8192, device="cuda")
    for _ in range(40):
        a @ a
    torch.cuda.synchronize()
    time.sleep(0.3)
    power.stop()
    assert "power_w" in (tmp_path / "power.jsonl").read_text()
