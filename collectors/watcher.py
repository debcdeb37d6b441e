"""The thread that writes what was recorded, hears signals and notices a loop that no longer moves."""

import threading
import time
from typing import Protocol

from c3prof.collectors.signals import Signals


class Watched(Protocol):
    """What the watcher calls; none of these may raise."""

    def flush(self) -> None: ...

    def signalled(self, number: int, *, fatal: bool) -> None: ...

    def stalled(self, seconds: float) -> None: ...


class Watcher:
    """Calls flush() each `flush_s` seconds, and stalled() once for each pause of beat() that exceeds `stall_s`."""

    def __init__(self, watched: Watched, signals: Signals, flush_s: float, stall_s: float) -> None:
        self._watched, self._signals, self._flush_s, self._stall_s = watched, signals, flush_s, stall_s
        self._last_beat = time.monotonic()
        self._stalled = self._ending = False
        self._thread = threading.Thread(target=self._watch, name="c3prof-watcher", daemon=True)
        self.cpu_ns = 0

    def start(self) -> None:
        self._thread.start()

    def beat(self) -> None:
        """The loop moves."""
        self._last_beat = time.monotonic()
        self._stalled = False

    def stop(self) -> None:
        """Ends the thread; it is not waited for when it stops itself."""
        self._ending = True
        self._signals.ring()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def _watch(self) -> None:
        while not self._ending:
            numbers = self._signals.heard(min(self._flush_s, self._stall_s / 4 if self._stall_s > 0 else self._flush_s))
            if self._ending:
                return
            self._watched.flush()
            for number in sorted(numbers):
                fatal = self._signals.fatal(number)
                self._watched.signalled(number, fatal=fatal)
                if fatal:
                    self._signals.die(number)
            self._look_for_stall()
            self.cpu_ns = time.thread_time_ns()

    def _look_for_stall(self) -> None:
        pause = time.monotonic() - self._last_beat
        if not self._stalled and 0 < self._stall_s < pause:
            self._stalled = True
            self._watched.stalled(pause)
