"""Parsed traces kept as parquet, so that a second command on the same run starts at once.

One folder an entry, named by what it depends on: path, size and modification time of the file, the reader's version and
the rules. An entry is written aside and moved into place whole; one that cannot be read is dropped and made again. The
oldest entries go when the cache outgrows its size. A cache that cannot be written is no cache: nothing fails for it.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.table import Schema
from c3prof.trace import SCHEMAS, Trace

SMALLEST = 1_000_000
"""Bytes below which a file is read as fast as its entry would be; such files are not kept."""

_META = "trace.json"


class Cache:
    """Traces by key in a folder, bounded to `limit_bytes`."""

    def __init__(self, folder: Path | None = None, limit_bytes: float = 10e9) -> None:
        self.folder = folder or default_folder()
        self.limit_bytes = limit_bytes

    def trace(self, key: str) -> Trace | None:
        """The Trace kept under the key, None when there is none or it is damaged."""
        entry = self.folder / key
        try:
            trace = _read(entry)
        except FileNotFoundError:
            return None
        except Exception:  # noqa: BLE001 - any damage (parquet, JSON, a missing column) has one cure: read the input again
            shutil.rmtree(entry, ignore_errors=True)
            return None
        with suppress(OSError):
            os.utime(entry)
        return trace

    def keep(self, key: str, trace: Trace) -> None:
        """Keep the Trace, and let the oldest go until the cache fits; does nothing when the disk does not allow it."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=self.folder))
            try:
                _write(trace, part)
                if _size(part) <= self.limit_bytes:
                    shutil.rmtree(self.folder / key, ignore_errors=True)
                    part.rename(self.folder / key)
            finally:
                shutil.rmtree(part, ignore_errors=True)
            self._evict()

    def _evict(self) -> None:
        entries = sorted((p for p in self.folder.iterdir() if (p / _META).is_file()), key=lambda p: p.stat().st_mtime_ns, reverse=True)
        total = 0
        for entry in entries:
            total += _size(entry)
            if total > self.limit_bytes:
                shutil.rmtree(entry, ignore_errors=True)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a home, as in many containers
        return Path(tempfile.gettempdir()) / f"c3prof-{os.getuid()}"


def default_folder() -> Path:
    """C3PROF_CACHE_DIR, else c3prof in the user's cache folder."""
    if given := os.environ.get("C3PROF_CACHE_DIR"):
        return Path(given).expanduser()
    home = _home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "c3prof"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "c3prof"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "c3prof"


def key(path: str, name: str, rules: str | None = None) -> str | None:
    """What the Trace of a local file depends on, as a name for it.

    name: how the file is shown, which the Trace holds; rules: a file with rules of one's own.
    None for what is not worth keeping or cannot be told to be the same: a small file, a URL, a file that is not there.
    """
    if "://" in path:
        return None
    try:
        stat = Path(path).stat()
        own = Path(rules).read_bytes() if rules else b""
    except OSError:
        return None
    if stat.st_size < SMALLEST:
        return None
    parts = (os.path.realpath(path), name, str(stat.st_size), str(stat.st_mtime_ns), reader_version(), hashlib.sha256(own).hexdigest())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:40]


@lru_cache(maxsize=1)
def reader_version() -> str:
    """A digest of all that turns bytes into a Trace: another reader, another Trace, without anybody counting versions."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(
        [*package.glob("readers/*.py"), *package.glob("*.toml"), package / "kernels.py", package / "trace.py", package / "table.py"]
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _size(entry: Path) -> int:
    return sum(file.stat().st_size for file in entry.iterdir())


def _write(trace: Trace, folder: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415 - a tenth of a second, only when a trace is kept

    for name, schema in SCHEMAS.items():
        parquet.write_table(_arrow(getattr(trace, name), schema), folder / f"{name}.parquet", compression="lz4", write_statistics=False)
    meta = {
        "devices": [[rank, device, dict(properties)] for (rank, device), properties in trace.devices.items()],
        "warnings": [[w.code, w.message, w.count, w.path, w.bears_on_numbers] for w in trace.warnings],
        "coverage": [[rank, dict(counts)] for rank, counts in trace.coverage.items()],
    }
    (folder / _META).write_bytes(msgspec.json.encode(meta, enc_hook=_number))


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot keep a {type(value).__name__}")


def _arrow(frame: pd.DataFrame, schema: Schema) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - see _write

    columns = {}
    for column in schema.columns:
        series = frame[column.name]
        if column.dtype == "category":
            codes = series.cat.codes.to_numpy()
            texts = pa.array(series.cat.categories.astype(object).tolist(), type=pa.string())
            columns[column.name] = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), texts)
        elif column.dtype == "object":
            columns[column.name] = pa.array([None if pd.isna(value) else str(value) for value in series.tolist()], type=pa.string())
        else:
            columns[column.name] = pa.array(series.to_numpy())
    return pa.table(columns)


def _read(folder: Path) -> Trace:
    meta = msgspec.json.decode((folder / _META).read_bytes())
    return Trace(
        **{name: _frame(folder / f"{name}.parquet", schema) for name, schema in SCHEMAS.items()},
        devices={(rank, device): properties for rank, device, properties in meta["devices"]},
        warnings=tuple(DataWarning(*fields) for fields in meta["warnings"]),
        coverage=dict(meta["coverage"]),
    )


def _frame(path: Path, schema: Schema) -> pd.DataFrame:
    from pyarrow import parquet  # noqa: PLC0415 - see _write

    table = parquet.read_table(path, memory_map=False)
    columns: Mapping[str, Any] = {c.name: _column(table.column(c.name), c.dtype) for c in schema.columns}
    return schema.frame(columns)


def _column(chunked: Any, dtype: str) -> Any:
    if dtype == "object":
        return chunked.to_pylist()
    if dtype != "category":
        return chunked.to_numpy()
    array = chunked.combine_chunks()
    if not len(array) and not hasattr(array, "indices"):
        return pd.Categorical([])
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes, categories=array.dictionary.to_pylist())
