"""Signals that reach the watcher thread even while the main thread sits inside a collective.

Python runs a signal handler only when the main thread is back in Python code, which a blocked collective never is. The
interpreter's wakeup descriptor is written to by the C-level handler at once, so another thread can save the data.
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import threading
import time
from typing import Any

_ENDING = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)  # Windows has no SIGHUP
_WATCHED = {*_ENDING, signal.SIGINT}
_LAST_WAIT_S = 5.0


class Signals:
    """A bell for the watcher: rung by signals and by ring(). Handlers of the program are left alone.

    Only where the default action (to die) is in force, a handler is put in its place, since the wakeup descriptor
    needs one; die() then restores the default and dies of the same signal.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._replaced: list[int] = []
        self._old_wakeup = -1
        self._installed = False

    def install(self) -> bool:
        """Takes the wakeup descriptor; False outside of the main thread, where Python does not allow it."""
        if threading.current_thread() is not threading.main_thread():
            return False
        self._old_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in _ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
                self._replaced.append(number)
        self._installed = True
        return True

    def fatal(self, number: int) -> bool:
        """Whether this signal would have ended the process without us."""
        return number in self._replaced

    def ring(self) -> None:
        """Wakes the watcher."""
        with contextlib.suppress(OSError):
            self._writer.send(b"\0")

    def heard(self, timeout_s: float) -> set[int]:
        """The signals that came within the time; an old owner of the wakeup descriptor gets its bytes too."""
        ready, _, _ = select.select([self._reader], [], [], timeout_s)
        if not ready:
            return set()
        told = self._reader.recv(4096)
        if self._old_wakeup >= 0:
            with contextlib.suppress(OSError):
                os.write(self._old_wakeup, told.replace(b"\0", b""))
        return set(told) & _WATCHED

    def restore(self) -> None:
        """Gives back what install() took, unless the program has put its own in place meanwhile."""
        if not self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._installed = False
        current = signal.set_wakeup_fd(-1)
        ours = current == self._writer.fileno()
        signal.set_wakeup_fd(self._old_wakeup if ours else current, warn_on_full_buffer=False)
        for number in self._replaced:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)
        self._replaced = []

    def die(self, number: int) -> None:
        """Ends the process by the signal's default action, from any thread."""
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).signal(number, None)  # SIG_DFL; Python's own signal() works in the main thread only
            os.kill(os.getpid(), number)
            time.sleep(_LAST_WAIT_S)
        os._exit(128 + number)

    def _on_signal(self, number: int, _frame: Any) -> None:
        # The wakeup descriptor has told the watcher already, unless the program took the descriptor over.
        with contextlib.suppress(OSError):
            self._writer.send(bytes([number]))
