"""Device events with a device of our own: order, the pool, what never comes to pass, capture of graphs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from c3prof.collectors.events import LOOK_AHEAD, DeviceEvents
from c3prof.collectors.faults import Faults

START_NS = 1_000_000_000_000


class Device:
    """A stream with a clock in ms; an event has come to pass once its time is over."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.made = 0
        self.capturing = self.float32 = False
        self.synchronized = 0

    def event(self) -> "Event":
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device, self.at_ms = device, 0.0

    def record(self) -> None:
        assert not self.device.capturing
        self.at_ms = self.device.now_ms

    def query(self) -> bool:
        return self.at_ms <= self.device.now_ms

    def synchronize(self) -> None:
        self.device.synchronized += 1

    def elapsed_time(self, other: "Event") -> float:
        elapsed = other.at_ms - self.at_ms
        return float(struct.unpack("f", struct.pack("f", elapsed))[0]) if self.device.float32 else elapsed


class Work:
    """A collective that ends at a given time; its future runs a callback as it is called."""

    def __init__(self, device: Device, ends_ms: float | None) -> None:
        self.device, self.ends_ms = device, ends_ms

    def get_future(self) -> "Work":
        return self

    def then(self, callback: Any) -> None:
        if self.ends_ms is None:
            return
        now, self.device.now_ms = self.device.now_ms, self.ends_ms
        callback(self)
        self.device.now_ms = now


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def events(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceEvents:
    monkeypatch.setattr("time.time_ns", lambda: START_NS)
    collector = DeviceEvents(tmp_path / "events.jsonl", Faults(), device.event, lambda: device.capturing)
    assert collector.probe() == (True, "")
    collector.start()
    return collector


def call(events: DeviceEvents, device: Device, seq: int, ends_ms: float | None, step: int = 0) -> dict[str, Any]:
    facts = {"step": step, "group": "0", "seq": seq}
    events.called(events.ready(), facts, Work(device, ends_ms))
    return facts


def written(events: DeviceEvents) -> list[dict[str, Any]]:
    events.stop()
    return [json.loads(line) for line in events._path.read_text().splitlines()]


def test_a_collective_and_its_step_on_the_wall_clock(events: DeviceEvents, device: Device) -> None:
    device.now_ms = 2.0
    facts = call(events, device, 7, ends_ms=6.0)
    device.now_ms = 5.0
    events.reached(facts)
    device.now_ms = 10.0
    events.step(1, None)
    first, second = written(events)
    ms = 1_000_000
    assert first == {
        "step": 0,
        "group": "0",
        "seq": 7,
        "ready_ns": START_NS + 2 * ms,
        "reached_ns": START_NS + 5 * ms,
        "end_ns": START_NS + 6 * ms,
        "gpu_ns": 4 * ms,
    }
    assert second == {"step": 0, "ready_ns": START_NS, "end_ns": START_NS + 10 * ms, "gpu_ns": 10 * ms}


def test_nothing_waits_for_the_device_after_the_start(events: DeviceEvents, device: Device) -> None:
    call(events, device, 0, ends_ms=1e9)
    for step in range(1, 5):
        device.now_ms += 1
        events.step(step, None)
    events.stop()
    assert device.synchronized == 1


def test_events_come_from_a_pool(events: DeviceEvents, device: Device) -> None:
    for step in range(1, 50):
        for seq in range(4):
            events.reached(call(events, device, seq, ends_ms=device.now_ms + 0.5, step=step))
        device.now_ms += 1
        events.step(step, None)
    assert device.made < 30  # 49 steps of 13 events
    assert len(written(events)) == 49 * 5


def test_one_that_never_ends_holds_back_no_other_and_is_written_without_times(events: DeviceEvents, device: Device) -> None:
    call(events, device, 0, ends_ms=None)
    for step in range(1, LOOK_AHEAD):
        call(events, device, step, ends_ms=device.now_ms, step=step)
        device.now_ms += 1
        events.step(step, None)
    found = written(events)
    assert found[-1] == {"step": 0, "group": "0", "seq": 0}
    assert sum("gpu_ns" in one for one in found) == 2 * (LOOK_AHEAD - 1)


def test_nothing_is_recorded_while_a_graph_is_captured(events: DeviceEvents, device: Device) -> None:
    device.capturing = True
    call(events, device, 0, ends_ms=0.0)
    events.step(1, None)
    device.capturing = False
    device.now_ms = 3.0
    events.step(2, None)
    events.step(3, None)
    assert [one["step"] for one in written(events)] == [2]


def test_times_keep_their_precision_over_a_long_run(events: DeviceEvents, device: Device) -> None:
    """elapsed_time is a float32 of milliseconds: far from a fixed anchor it would lose microseconds."""
    device.float32 = True
    for step in range(1, 2_001):
        device.now_ms += 1_234.567
        events.step(step, None)
    last = written(events)[-1]
    assert abs(last["end_ns"] - START_NS - round(device.now_ms * 1e6)) < 200_000  # 0.2 ms in 41 minutes; a fixed anchor: 0.1 s
    assert abs(last["gpu_ns"] - 1_234_567_000) < 1_000
