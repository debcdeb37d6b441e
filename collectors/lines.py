"""A file of JSON lines that is readable at any moment: whole lines only, appended, safe against fork and a full disk."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from c3prof.records import line_of

MOST_BYTES = 1 << 30


class Lines:
    """An append-only file of records. A failure to write turns it off and is reported once; nothing is raised."""

    def __init__(self, path: Path, report: Callable[[str, BaseException | str], None], most_bytes: int = MOST_BYTES) -> None:
        self.path, self.bytes = path, 0
        self._report, self._most, self._pid, self._lock = report, most_bytes, os.getpid(), threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def write(self, records: Iterable[Any]) -> None:
        """Appends the records in one write. A child after fork writes nothing: the file is its parent's."""
        content = "".join(line_of(record) for record in records).encode()
        if not content or self._file < 0 or os.getpid() != self._pid:
            return
        with self._lock:
            if self.bytes + len(content) > self._most:
                self._give_up(f"{self.path.name} reached {self._most:,} bytes; what follows is not recorded")
                return
            try:
                written = os.write(self._file, content)
                if written == len(content):
                    self.bytes += written
                else:
                    os.ftruncate(self._file, self.bytes)
                    self._give_up("only a part could be written; is the disk full?")
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _give_up(self, why: BaseException | str) -> None:
        self._report(f"write {self.path.name}", why)
        with contextlib.suppress(OSError):
            self.close()
