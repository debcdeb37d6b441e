"""The power sampler with a meter of our own, and what it says without a driver."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from c3prof.collectors.faults import Faults
from c3prof.collectors.power import Nvml, Power
from c3prof.records import PowerRecord


class Meter:
    """A device that draws 100 W, 101 W, …"""

    def __init__(self, fails_after: int = 10**9) -> None:
        self.samples, self.fails_after, self.closed = 0, fails_after, False

    def sample(self, at_ns: int) -> PowerRecord:
        self.samples += 1
        if self.samples > self.fails_after:
            raise RuntimeError("the device fell off the bus")
        return PowerRecord(at_ns, 0, power_w=99.0 + self.samples, sm_clock_mhz=1700.0)

    def close(self) -> None:
        self.closed = True


def test_samples_are_written_until_the_end(tmp_path: Path) -> None:
    meter = Meter()
    power = Power(tmp_path / "power.jsonl", Faults(), lambda: meter, period_s=0.005)
    assert power.probe() == (True, "")
    power.start()
    while meter.samples < 6:
        time.sleep(0.005)
    power.stop()
    found = [json.loads(line) for line in (tmp_path / "power.jsonl").read_text().splitlines()]
    assert [one["power_w"] for one in found][:3] == [101.0, 102.0, 103.0]  # the first was the probe's
    assert [one["at_ns"] for one in found] == sorted(one["at_ns"] for one in found)
    assert "temperature_c" not in found[0]
    assert meter.closed


def test_a_meter_that_fails_ends_the_sampling_with_one_error(tmp_path: Path) -> None:
    faults, meter = Faults(), Meter(fails_after=3)
    power = Power(tmp_path / "power.jsonl", faults, lambda: meter, period_s=0.002)
    assert power.probe()[0]
    power.start()
    power._thread.join(timeout=5)
    power.stop()
    assert faults.errors == ["power: RuntimeError: the device fell off the bus"]
    assert len((tmp_path / "power.jsonl").read_text().splitlines()) == 2


def test_no_driver_is_a_reason(tmp_path: Path) -> None:
    def missing() -> Meter:
        raise ImportError("No module named 'pynvml'")

    works, reason = Power(tmp_path / "power.jsonl", Faults(), missing).probe()
    assert not works
    assert "No module named 'pynvml'" in reason


def test_nvml_gives_what_the_device_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    class NvmlError(Exception):
        """What pynvml raises."""

    def no_sensor(*_: object) -> int:
        raise NvmlError

    library = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: ("handle", uuid),
        nvmlDeviceGetPowerUsage=lambda _: 412_500,
        nvmlDeviceGetClockInfo=lambda _, kind: {1: 1980, 2: 2619}[kind],
        nvmlDeviceGetTemperature=no_sensor,
    )
    monkeypatch.setattr("c3prof.collectors.power.import_module", lambda _: library)
    meter = Nvml(2, "GPU-1234")
    assert meter._handle == ("handle", b"GPU-1234")
    assert meter.sample(5) == PowerRecord(5, 2, power_w=412.5, sm_clock_mhz=1980, memory_clock_mhz=2619, temperature_c=None)
