"""How long each step took: wall time, and CPU time of the thread that runs the loop."""

import threading
import time
from collections import deque
from pathlib import Path

from c3prof.collectors.faults import Faults
from c3prof.collectors.lines import Lines
from c3prof.records import STEPS_FILE, FileRecord, StepRecord


class Steps:
    """The step clock. ended() is called at the end of each step; drain() writes."""

    name = "steps"

    def __init__(self, path: Path, faults: Faults) -> None:
        self._lines = Lines(path, faults.error)
        self._done: deque[StepRecord] = deque()
        self._mark: str | None = None

    def probe(self) -> tuple[bool, str]:
        return True, ""

    def start(self) -> None:
        """The first step begins."""
        self._thread = threading.get_ident()
        self._cpu_ns, self._start_ns = time.thread_time_ns(), time.time_ns()

    def step(self, step: int, phase: str | None) -> None:
        """The next step begins."""
        del step, phase
        self.start()

    def ended(self, step: int, phase: str | None, window: int | None) -> None:
        """Takes down the step that ends now."""
        end_ns, cpu_ns = time.time_ns(), time.thread_time_ns()
        same_thread = self._thread == threading.get_ident()
        cpu = cpu_ns - self._cpu_ns if same_thread else None
        self._done.append(StepRecord(step, self._start_ns, end_ns, cpu, phase, window, self._mark))

    def mark(self, text: str) -> None:
        """Labels the steps from the current one on."""
        self._mark = text or None

    def drain(self) -> None:
        """Writes the steps that have ended."""
        self._lines.write([self._done.popleft() for _ in range(len(self._done))])

    def stop(self) -> None:
        self.drain()
        self._lines.close()

    def files(self) -> list[FileRecord]:
        return [FileRecord("steps", STEPS_FILE, bytes=self._lines.bytes)]
