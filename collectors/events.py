"""Device times without a profiler: CUDA events around each step and each collective, read later, never waited for.

Per collective a ready event on the caller's stream before the call, a reached event before its wait, and an end event
on the stream of its future, which already waits for the collective. Per step one event on the current stream. Events
come from a pool and are read by query() at later steps; nothing is recorded while a graph is being captured. An anchor,
an event whose wall time is known to the host, maps device times to the wall clock; it moves along from step to step.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from c3prof.collectors.faults import Faults
from c3prof.collectors.lines import Lines
from c3prof.records import EVENTS_FILE, EventRecord, FileRecord
from c3prof.units import NS_PER_MS

MOST_PENDING = 8_192
LOOK_AHEAD = 64


@dataclass
class Timed:
    """The events of one collective, or of one step (group None), until they can be read."""

    step: int
    group: str | None
    seq: int | None
    ready: Any
    end: Any = None
    reached: Any = None


@dataclass(frozen=True)
class Anchor:
    """An event and the wall time at which it was recorded on an idle stream."""

    event: Any
    at_ns: int


class DeviceEvents:
    """The events of this rank. make_event and capturing are torch.cuda's, or a test's own."""

    name = "events"

    def __init__(
        self, path: Path, faults: Faults, make_event: Callable[[], Any] | None = None, capturing: Callable[[], bool] | None = None
    ) -> None:
        self._path, self._faults, self._make, self._capturing = path, faults, make_event, capturing
        self._lines: Lines | None = None
        self._pool: list[Any] = []
        self._pending: deque[Timed] = deque()
        self._by_call: dict[int, Timed] = {}
        self._done: deque[EventRecord] = deque()
        self._anchor: Anchor | None = None
        self._step_began: Any = None
        self._step = 0

    def probe(self) -> tuple[bool, str]:
        """Whether there is a device with events."""
        if self._make is not None:
            return True, ""
        torch = import_module("torch")
        if not torch.cuda.is_available():
            return False, "no CUDA or ROCm device"
        self._make = lambda: torch.cuda.Event(enable_timing=True)
        self._capturing = torch.cuda.is_current_stream_capturing
        return True, ""

    def start(self) -> None:
        """Opens the file and sets the anchor, the only place that waits for the device: nothing runs yet."""
        self._lines = Lines(self._path, self._faults.error)
        event = self._recorded()
        if event is not None:
            event.synchronize()
            self._anchor = Anchor(event, time.time_ns())
        self._step_began = self._recorded()

    def step(self, step: int, phase: str | None) -> None:
        """The step's events, and a look at which earlier events have come to pass."""
        del phase
        ends = self._recorded()
        if ends is not None and self._step_began is not None:
            self._pending.append(Timed(self._step, None, None, self._step_began, ends))
        self._step_began, self._step = ends, step
        self._by_call.clear()
        self._collect()

    def ready(self) -> Any:
        """The ready event of a collective that is about to be called, None while a graph is captured."""
        return self._recorded()

    def called(self, ready: Any, facts: dict[str, Any], work: Any) -> None:
        """A collective was called: its end event is recorded by its future, on a stream that waits for it."""
        if ready is None or len(self._pending) >= MOST_PENDING:
            return
        timed = Timed(facts["step"], facts["group"], facts["seq"], ready)
        self._pending.append(timed)
        self._by_call[id(facts)] = timed
        work.get_future().then(lambda _: self._end(timed))

    def reached(self, facts: dict[str, Any]) -> None:
        """The caller is about to wait for it."""
        timed = self._by_call.pop(id(facts), None)
        if timed is not None and timed.reached is None:
            timed.reached = self._recorded()

    def drain(self) -> None:
        """Writes the times that have been read."""
        if self._lines is not None:
            self._lines.write([self._done.popleft() for _ in range(len(self._done))])

    def stop(self) -> None:
        """Reads what has come to pass; what has not is written without times, never waited for."""
        self._collect()
        for timed in self._pending:
            self._done.append(EventRecord(timed.step, timed.group, timed.seq))
        self._pending.clear()
        self.drain()
        if self._lines is not None:
            self._lines.close()

    def files(self) -> list[FileRecord]:
        return [FileRecord("events", EVENTS_FILE, bytes=self._lines.bytes)] if self._lines else []

    def _end(self, timed: Timed) -> None:
        timed.end = self._recorded()

    def _recorded(self) -> Any:
        """An event of the pool recorded on the current stream, None while a graph is captured."""
        if self._make is None or (self._capturing is not None and self._capturing()):
            return None
        event = self._pool.pop() if self._pool else self._make()
        event.record()
        return event

    def _collect(self) -> None:
        """Reads what has come to pass, in order of recording. A collective that never ends holds back only LOOK_AHEAD others."""
        waiting: list[Timed] = []
        while self._pending and len(waiting) < LOOK_AHEAD:
            timed = self._pending.popleft()
            if timed.end is not None and timed.end.query():
                self._done.append(self._record(timed))
            else:
                waiting.append(timed)
        self._pending.extendleft(reversed(waiting))

    def _record(self, timed: Timed) -> EventRecord:
        ready_ns, reached_ns, end_ns = (self._wall_ns(event) for event in (timed.ready, timed.reached, timed.end))
        gpu_ns = round(timed.ready.elapsed_time(timed.end) * NS_PER_MS)
        used = [timed.ready, timed.reached, timed.end]
        if timed.group is None:
            # The end of a step is the beginning of the next, and the new anchor: elapsed_time is a float32 of milliseconds.
            used = [timed.ready]
            if self._anchor is not None and end_ns is not None:
                used = list({id(event): event for event in (timed.ready, self._anchor.event)}.values())
                self._anchor = Anchor(timed.end, end_ns)
        self._pool += [event for event in used if event is not None]
        return EventRecord(timed.step, timed.group, timed.seq, ready_ns, reached_ns, end_ns, gpu_ns)

    def _wall_ns(self, event: Any) -> int | None:
        if event is None or self._anchor is None:
            return None
        elapsed_ms: float = self._anchor.event.elapsed_time(event)
        return self._anchor.at_ns + round(elapsed_ms * NS_PER_MS)
