"""A file of JSON lines that is readable at any moment: whole lines only, appended, safe against fork and a full disk."""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from c3prof.records import line_of

MOST_BYTES = 1 << 30
MOST_WAITING_BYTES = 4 << 20


class Lines:
    """An append-only file of records. A failure to write is reported once and ends it; nothing is raised."""

    def __init__(self, path: Path, report: Callable[[str, BaseException | str], None], most_bytes: int = MOST_BYTES) -> None:
        self.path, self.bytes, self._waiting = path, 0, b""
        self._report, self._most, self._pid, self._lock = report, most_bytes, os.getpid(), threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def write(self, records: Iterable[Any]) -> None:
        """Appends the records in one write. A child after fork writes nothing: the file is its parent's.

        On a full disk they wait for the next call: what filled it may be a profiler's export that is about to go away.
        """
        content = "".join(line_of(record) for record in records).encode()
        if self._file < 0 or os.getpid() != self._pid:
            return
        with self._lock:
            content, self._waiting = self._waiting + content, b""
            if not content:
                return
            if self.bytes + len(content) > self._most:
                self._give_up(f"{self.path.name} reached {self._most:,} bytes; what follows is not recorded")
                return
            try:
                self._append(content)
            except OSError as error:
                if error.errno != errno.ENOSPC or len(content) > MOST_WAITING_BYTES:
                    self._give_up(error)
                else:
                    self._waiting = content

    def close(self) -> None:
        """Tries once more to write what waits, and closes the file."""
        self.write(())
        if self._waiting:
            self._give_up(f"{len(self._waiting):,} bytes could not be written: no space left on the device")
        self._close()

    def _append(self, content: bytes) -> None:
        written = os.write(self._file, content)
        if written != len(content):
            os.ftruncate(self._file, self.bytes)  # a reader must never see a part of a line
            raise OSError(errno.ENOSPC, "short write, device full?")
        self.bytes += written

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _give_up(self, why: BaseException | str) -> None:
        self._report(f"write {self.path.name}", why)
        with contextlib.suppress(OSError):
            self._close()
