"""Decompressed bytes of whole and damaged files."""

import gzip
import io
import random
import threading
import zlib

import pytest

from c3prof.readers.blocks import Blocks, read_ahead

TEXT = b"".join(b'{"ph": "X", "ts": %d}\n' % random.Random(0).randrange(10**9) for _ in range(1)) + bytes(
    random.Random(1).choices(b'{"ph": 0123456789}', k=3_000_000)
)
PACKED = gzip.compress(TEXT, 6, mtime=0)


def read(data: bytes) -> tuple[bytes, list[str]]:
    blocks = Blocks(io.BytesIO(data), "t.json.gz")
    out = b"".join(blocks)
    assert blocks.decompressed == len(out)
    return out, [w.code for w in blocks.warnings]


def test_plain_bytes_come_as_they_are():
    assert read(TEXT) == (TEXT, [])


def test_compression_is_told_by_content():
    assert read(PACKED) == (TEXT, [])


def test_empty_file():
    assert read(b"") == (b"", [])


def test_two_members_are_read_as_one():
    assert read(PACKED + gzip.compress(b"second", mtime=0)) == (TEXT + b"second", [])


@pytest.mark.parametrize("cut", [1, 4, 9, 1000, len(PACKED) // 2, len(PACKED) - 20])
def test_cut_gzip_gives_what_is_whole(cut):
    out, codes = read(PACKED[:-cut])
    assert codes == ["gzip-cut"]
    assert TEXT.startswith(out)
    reference = zlib.decompressobj(wbits=31).decompress(PACKED[:-cut])
    assert len(out) >= len(reference) - 64


def test_damage_in_the_middle_gives_what_lies_before_it():
    at = 3 * len(PACKED) // 4
    damaged = PACKED[:at] + bytes(b ^ 0xFF for b in PACKED[at : at + 400]) + PACKED[at + 400 :]
    blocks = Blocks(io.BytesIO(damaged), "t.json.gz")
    out = b"".join(blocks)
    [warning] = blocks.warnings
    assert warning.code in ("gzip-damaged", "gzip-cut")
    whole = zlib.decompressobj(wbits=31).decompress(PACKED[:at])
    assert len(out) > 0.95 * len(whole)
    assert out[: len(whole) - 70_000] == TEXT[: len(whole) - 70_000]


def test_wrong_checksum_keeps_the_data():
    out, codes = read(PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:])
    assert (out, codes) == (TEXT, ["gzip-damaged"])


@pytest.mark.parametrize(("rest", "codes"), [(b"\0" * 512, []), (b"garbage", ["gzip-trailing"])])
def test_bytes_behind_the_data(rest, codes):
    assert read(PACKED + rest) == (TEXT, codes)


def test_progress_counts_the_bytes_of_the_file():
    seen = []
    b"".join(Blocks(io.BytesIO(PACKED), "t", seen.append))
    assert sum(seen) == len(PACKED)


def test_reading_ahead_gives_the_same_blocks():
    assert list(read_ahead(iter([b"a", b"b", b"c"] * 10))) == [b"a", b"b", b"c"] * 10
    assert list(read_ahead([])) == []


def test_an_error_while_reading_ahead_comes_where_the_blocks_are_asked_for():
    def blocks():
        yield b"a"
        raise OSError("gone")

    ahead = read_ahead(blocks())
    assert next(ahead) == b"a"
    with pytest.raises(OSError, match="gone"):
        next(ahead)


def test_nobody_reads_on_when_the_blocks_are_no_longer_wanted():
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield b"x"

    ahead = read_ahead(endless(), depth=2)
    next(ahead)
    ahead.close()
    assert len(taken) <= 5
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("(read)")]
