"""Power, clocks and temperature of this rank's device, sampled in a thread of its own.

NVML (package nvidia-ml-py) or amdsmi, whichever is there; about ten samples a second, the rate at which drivers renew them.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from c3prof.collectors.faults import Faults
from c3prof.collectors.lines import Lines
from c3prof.records import POWER_FILE, FileRecord, PowerRecord

PERIOD_S = 0.1

_MILLIWATT = 1e-3


class Meter(Protocol):
    """A driver that measures one device."""

    def sample(self, at_ns: int) -> PowerRecord: ...

    def close(self) -> None: ...


class Power:
    """The sampler. meter() finds a driver and a device, or raises with the reason why there is none."""

    name = "power"

    def __init__(self, path: Path, faults: Faults, meter: Callable[[], Meter] | None = None, period_s: float = PERIOD_S) -> None:
        self._path, self._faults, self._period_s = path, faults, period_s
        self._find = meter or found_meter
        self._meter: Meter | None = None
        self._lines: Lines | None = None
        self._samples: deque[PowerRecord] = deque()
        self._ending = threading.Event()

    def probe(self) -> tuple[bool, str]:
        """Whether a driver answers."""
        try:
            self._meter = self._find()
            self._meter.sample(time.time_ns())
        except Exception as error:  # drivers raise whatever they like; all of it means: no power
            return False, f"no power driver ({type(error).__name__}: {error})"
        return True, ""

    def start(self) -> None:
        self._lines = Lines(self._path, self._faults.error)
        self._thread = threading.Thread(target=self._sample, name="c3prof-power", daemon=True)
        self._thread.start()

    def step(self, step: int, phase: str | None) -> None:
        """Nothing to do: samples are joined to steps by time."""

    def drain(self) -> None:
        """Writes the samples taken since the last call."""
        if self._lines is not None:
            self._lines.write([self._samples.popleft() for _ in range(len(self._samples))])

    def stop(self) -> None:
        self._ending.set()
        if self._lines is not None:
            self._thread.join(timeout=10 * self._period_s)
            self.drain()
            self._lines.close()
        if self._meter is not None:
            with contextlib.suppress(Exception):
                self._meter.close()

    def files(self) -> list[FileRecord]:
        return [FileRecord("power", POWER_FILE, bytes=self._lines.bytes)] if self._lines else []

    def _sample(self) -> None:
        while self._meter is not None and not self._ending.wait(self._period_s):
            try:
                self._samples.append(self._meter.sample(time.time_ns()))
            except Exception as error:  # as above
                self._faults.error("power", error)
                return


class Nvml:
    """NVIDIA's library. A quantity that a device does not have stays None."""

    def __init__(self, device: int, uuid: str | None) -> None:
        self._nvml = import_module("pynvml")
        self._nvml.nvmlInit()
        self._device = device
        self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid.encode()) if uuid else self._nvml.nvmlDeviceGetHandleByIndex(device)

    def sample(self, at_ns: int) -> PowerRecord:
        nvml, handle = self._nvml, self._handle
        milliwatt = self._asked(nvml.nvmlDeviceGetPowerUsage, handle)
        return PowerRecord(
            at_ns=at_ns,
            device=self._device,
            power_w=None if milliwatt is None else milliwatt * _MILLIWATT,
            sm_clock_mhz=self._asked(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._asked(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            temperature_c=self._asked(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        )

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _asked(self, query: Callable[..., Any], *args: Any) -> Any:
        try:
            return query(*args)
        except self._nvml.NVMLError:
            return None


class Amdsmi:
    """AMD's library."""

    def __init__(self, device: int) -> None:
        self._smi = import_module("amdsmi")
        self._smi.amdsmi_init()
        self._device, self._handle = device, self._smi.amdsmi_get_processor_handles()[device]

    def sample(self, at_ns: int) -> PowerRecord:
        power = self._smi.amdsmi_get_power_info(self._handle)
        clock = self._smi.amdsmi_get_clock_info(self._handle, self._smi.AmdSmiClkType.GFX)
        watt = _number(power.get("current_socket_power")) or _number(power.get("average_socket_power"))
        return PowerRecord(at_ns=at_ns, device=self._device, power_w=watt, sm_clock_mhz=_number(clock.get("clk")))

    def close(self) -> None:
        self._smi.amdsmi_shut_down()


def found_meter() -> Meter:
    """The meter of this process's device; an exception with the reason when there is none."""
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise RuntimeError("no device")
    device = torch.cuda.current_device()
    if torch.version.hip:
        return Amdsmi(device)
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return Nvml(device, None if uuid is None else f"GPU-{uuid}")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
