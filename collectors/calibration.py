"""The switch of calibration: in serialized steps every collective is waited for at once.

Then communication and computation are each seen alone, in the same run and without a change to the model. The phase is
a pure function of the step, so all ranks switch together; waiting is local, so a rank that cannot wait harms no other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

from c3prof.collectors.faults import Faults
from c3prof.collectors.internals import coalescing
from c3prof.collectors.window import Calibration
from c3prof.records import CONCURRENT, SERIALIZED

WAIT_TIMEOUT_S = 60.0

_forced: list[str] = []


@contextmanager
def serialize() -> Iterator[None]:
    """A context in which an active profile() waits for every collective at once. Every rank must enter it at the same place."""
    _forced.append(SERIALIZED)
    try:
        yield
    finally:
        _forced.pop()


@contextmanager
def concurrent() -> Iterator[None]:
    """A context in which collectives run as the program asked, marked as the concurrent phase of calibration."""
    _forced.append(CONCURRENT)
    try:
        yield
    finally:
        _forced.pop()


class Switch:
    """The current step and phase, and how this device is made to wait. on_device: work runs on CUDA streams."""

    def __init__(
        self, calibration: Calibration | None, faults: Faults, *, on_device: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> None:
        self._calibration, self._faults, self._on_device = calibration, faults, on_device
        self._timeout = timedelta(seconds=timeout_s)
        self._streams: dict[int, Any] = {}
        self._broken = False
        self.step = 0

    @property
    def phase(self) -> str | None:
        """The phase in force now: a context's, else that of the step, None without calibration."""
        if _forced:
            return _forced[-1]
        return self._calibration.phase(self.step) if self._calibration else None

    def serializes(self) -> bool:
        """Whether a collective called now is to be waited for at once."""
        return self.phase == SERIALIZED and not self._broken and not coalescing()

    def before(self) -> None:
        """Before a serialized collective on a GPU: its stream waits for all others that called one."""
        if self._on_device and self.serializes():
            current = self._known_current()
            for stream in self._streams.values():
                if stream is not current:
                    current.wait_stream(stream)

    def after(self, wait: Callable[..., Any], *, on_host: bool) -> bool:
        """Waits for a collective; False if it could not be waited for, which ends calibration on this rank.

        wait: the Work's own wait. On a GPU it and what follows are stream waits, never host waits: a host that waits
        would add launch gaps to what is measured.
        """
        try:
            if on_host:
                wait(self._timeout)
                return True
            wait()
        except RuntimeError as error:
            self._broken = True
            self._faults.error("calibration stopped: a collective could not be waited for", error)
            return False
        current = self._known_current()
        for stream in self._streams.values():
            if stream is not current:
                stream.wait_stream(current)
        return True

    def _known_current(self) -> Any:
        current = import_module("torch").cuda.current_stream()
        return self._streams.setdefault(current.cuda_stream, current)
