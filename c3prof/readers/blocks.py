"""Bytes of a file or URL, decompressed, in blocks: what is whole of a damaged gzip file, and what was lost."""

import queue
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, cast

from c3prof.errors import DataWarning

_GZIP_MAGIC = b"\x1f\x8b"
_BITE = 256
_READ = 1 << 14
"""Bytes a read. What they decompress to stays in the processor's cache until it is scanned, and in memory that malloc uses
again at once: a block that it maps afresh costs more in page faults than decompressing it."""
_REPORT = 1 << 18
"""Bytes from one call of progress to the next."""

Progress = Callable[[int], None]
"""Called with the number of (compressed) bytes that were just read."""


class Blocks:
    """Iterable of decompressed blocks of one open file; `warnings` is complete after the last block.

    A gzip file may be cut anywhere, hold several members, or have zeros or other bytes behind the last one.
    """

    def __init__(self, file: IO[bytes], path: str, progress: Progress | None = None) -> None:
        self.path = path
        self.warnings: list[DataWarning] = []
        self.decompressed = 0
        self._file = file
        self._progress = progress
        self._unreported = 0

    def __iter__(self) -> Iterator[bytes]:
        first = self._read()
        source = self._members(first) if first.startswith(_GZIP_MAGIC) else self._plain(first)
        for block in source:
            self.decompressed += len(block)
            yield block

    def _read(self) -> bytes:
        data = self._file.read(_READ)
        self._unreported += len(data)
        if self._progress is not None and (self._unreported >= _REPORT or not data):
            self._progress(self._unreported)
            self._unreported = 0
        return data

    def _plain(self, data: bytes) -> Iterator[bytes]:
        while data:
            yield data
            data = self._read()

    def _members(self, data: bytes) -> Iterator[bytes]:
        offset = 0  # of `data` in the file
        while data:
            member = _Member(offset)
            while data and not member.done:
                piece = member.decompress(data, self._file)
                if piece:
                    yield piece
                if member.error:
                    self._warn(
                        "gzip-damaged", f"gzip data is damaged at byte {member.error_at:,} ({member.error}); what lies behind it is lost"
                    )
                    return
                offset += len(data)
                data = self._read() if not member.done else b""
            if not member.done:
                self._warn("gzip-cut", f"the gzip file ends early at byte {offset:,}, without its trailer; copy it again for the rest")
                return
            offset -= len(member.rest)
            data = member.rest or self._read()
            if data and not data.startswith(_GZIP_MAGIC):
                if data.strip(b"\0"):
                    self._warn("gzip-trailing", f"bytes behind the gzip data at byte {offset:,} are not gzip; they were ignored")
                return

    def _warn(self, code: str, message: str) -> None:
        self.warnings.append(DataWarning(code, message, path=self.path))


def read_ahead(blocks: Iterable[bytes], depth: int = 2) -> Iterator[bytes]:
    """The same blocks, read and decompressed by a second thread, `depth` of them ahead of who asks for them.

    Decompressing and the native scan both release the interpreter's lock, so they run side by side.
    """
    waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(depth)
    unwanted = threading.Event()

    def put(item: bytes | BaseException | None) -> None:
        while not unwanted.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                return

    def read() -> None:
        try:
            for block in blocks:
                put(block)
                if unwanted.is_set():
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the blocks are asked for
            put(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        unwanted.set()
        reader.join()


class _Member:
    """One gzip member being decompressed."""

    def __init__(self, start: int) -> None:
        from isal import isal_zlib  # noqa: PLC0415 - a C extension, loaded when a file is read

        self._error = cast("type[Exception]", isal_zlib.IsalError)  # its stub calls it an instance
        self._decoder = isal_zlib.decompressobj(wbits=31)
        self._start = start
        self._fed = 0
        self.error = ""
        self.error_at = 0

    @property
    def done(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def rest(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, file: IO[bytes]) -> bytes:
        """The next decompressed bytes; on damage the bytes before it, with `error` set."""
        try:
            piece = self._decoder.decompress(data)
        except self._error as error:
            self.error = str(error)
            return self._salvage(file, len(data))
        self._fed += len(data)
        return piece

    def _salvage(self, file: IO[bytes], length: int) -> bytes:
        """What the block that failed still gives: the member is decompressed again, the last block in small bites.

        A decoder that raises keeps nothing of its call, so the bites show how far the data is whole.
        """
        back = file.tell()
        file.seek(self._start)
        decoder, left, salvaged = zlib.decompressobj(wbits=31), self._fed, []
        while left > 0:
            data = file.read(min(left, _READ))
            decoder.decompress(data)
            left -= len(data)
        whole = 0
        for size in (_BITE, 1):  # a decoder that raised is of no use: its copy from before goes on in single bytes
            file.seek(self._start + self._fed + whole)
            while whole < length:
                before = decoder.copy()
                try:
                    salvaged.append(decoder.decompress(file.read(size)))
                except zlib.error:
                    decoder = before
                    break
                whole += size
        self.error_at = self._start + self._fed + whole
        file.seek(back)
        return b"".join(salvaged)
