"""Which files are traces: a file, several, a folder, a glob or any fsspec URL → inputs, told by content, and what was left out."""

import glob
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from c3prof.errors import DataWarning, UnreadableInput
from c3prof.readers import flight_recorder, nccl_inspector, nccl_log
from c3prof.readers.blocks import Blocks
from c3prof.readers.run_folder import is_rank_folder, started_ns

_SNIFFED = 1 << 20
_DISTRIBUTED_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*"?(\d{1,9})\b')
_TRACE = re.compile(rb'"traceEvents"|"ph"\s*:')
COMM_ONLY = {"flight recorder": flight_recorder.MARK, "NCCL Inspector": nccl_inspector.MARK, "NCCL log": nccl_log.MARK}
"""What else can be read, by what its first bytes hold: records of communication alone."""

_OTHER = ((re.compile(rb'"schema"\s*:\s*"[\d.]+.*?"nodes"|"nodes"\s*:\s*\['), "an execution trace, not a Kineto trace"),)


@dataclass(frozen=True)
class Source:
    """One rank's input: `path` is what to open (a file, or a rank folder of our collectors), `name` how it is shown.

    The name is relative to what the user gave. windows: when several files name the same rank, a Source each, in order
    of name; then path and name are the first's.
    """

    path: str
    name: str
    size: int
    windows: "tuple[Source, ...]" = ()

    def __post_init__(self) -> None:
        # A name that is not UTF-8 has half surrogates, which no output can hold; they only say which bytes to open.
        object.__setattr__(self, "name", os.fsencode(self.name).decode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class Skipped:
    """A file that was looked at and not read."""

    name: str
    reason: str


@dataclass(frozen=True)
class Found:
    """What a user's paths lead to, in order of name."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def warnings(self) -> list[DataWarning]:
        """One warning a file that was left out, with the reason."""
        return [DataWarning("skipped-file", f"not read: {s.reason}", path=s.name, bears_on_numbers=False) for s in self.skipped]


def found(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Found:
    """The inputs that the paths lead to: files as they are, folders and globs by what the files in them hold.

    UnreadableInput when a path does not exist or nothing in it looks like a trace.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    parts = [_found_one(os.fspath(path)) for path in given]
    sources = _by_rank(list(dict.fromkeys(s for part in parts for s in part.sources)))
    skipped = tuple(dict.fromkeys(s for part in parts for s in part.skipped))
    if not sources:
        raise UnreadableInput(f"{', '.join(map(str, given)) or 'no path'}: {_nothing(skipped)}")
    return Found(tuple(sources), skipped)


def _by_rank(sources: list[Source]) -> list[Source]:
    """The sources, those that name the same rank as one: torch's trace handler writes a file a window."""
    if len(sources) == 1:
        return sources
    groups: dict[object, list[Source]] = {}
    for source in sources:
        named = None if _is_folder(source.path) else _DISTRIBUTED_RANK.search(_head(source, _DISTRIBUTED_RANK))
        groups.setdefault(int(named[1]) if named else source, []).append(source)
    return [
        same[0] if len(same) == 1 else Source(same[0].path, same[0].name, sum(s.size for s in same), tuple(same))
        for same in groups.values()
    ]


def _is_folder(path: str) -> bool:
    return "://" not in path and Path(path).is_dir()


def opened(path: str) -> IO[bytes]:
    """The file or URL opened for reading, as stored (not decompressed)."""
    if "://" not in path:
        return Path(path).open("rb")
    return cast("IO[bytes]", _fsspec().open(path, "rb", compression=None).open())


def _nothing(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return "no file here; expected a Kineto trace (JSON, .gz or not), a folder of them, or a run folder"
    listed = "; ".join(f"{s.name}: {s.reason}" for s in skipped[:3])
    return f"no Kineto trace among {len(skipped)} files ({listed}{'; …' if len(skipped) > 3 else ''})"


def _found_one(path: str) -> Found:
    if "://" in path:
        return _found_remote(path)
    if not path:
        raise UnreadableInput("a path is empty (an unset variable?); give . for the current folder")
    try:
        local = Path(path).expanduser()
    except RuntimeError:
        raise UnreadableInput(f"{path}: no such user") from None
    if local.is_file():
        return Found((Source(str(local), local.name, local.stat().st_size),))
    if local.is_dir():
        return _found_in_folder(local)
    if glob.has_magic(path):
        matches = glob.glob(str(local), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        files = sorted(Path(p) for p in matches if Path(p).is_file())
        root = os.path.commonpath([p.parent for p in files]) if files else ""
        return _sorted_out([Source(str(p), Path(os.path.relpath(p, root)).as_posix(), p.stat().st_size) for p in files])
    if not local.exists():
        raise UnreadableInput(f"{path}: no such file or folder")
    raise UnreadableInput(f"{path}: neither a file nor a folder")


def _found_in_folder(folder: Path) -> Found:
    """Rank folders of our collectors, one source each, and every other file in the folder by what it holds."""
    if is_rank_folder(folder):
        return Found((_rank_source(folder, folder.parent),))
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    ranks = sorted({p.parent for p in files if is_rank_folder(p.parent)})
    runs = {rank.parent.parent for rank in ranks}
    others = [p for p in files if p.parent not in ranks and p.parent not in runs and p.parent.parent not in ranks]
    kept, replaced = _latest(ranks)
    rest = _sorted_out([Source(str(p), p.relative_to(folder).as_posix(), p.stat().st_size) for p in others])
    skipped = [
        Skipped(p.relative_to(folder).as_posix(), "an earlier recording of this rank in the same folder; give its path to read it")
        for p in replaced
    ]
    return Found((*(_rank_source(rank, folder) for rank in kept), *rest.sources), (*skipped, *rest.skipped))


def _rank_source(rank: Path, root: Path) -> Source:
    return Source(str(rank), rank.relative_to(root).as_posix(), sum(p.stat().st_size for p in rank.iterdir() if p.is_file()))


def _latest(ranks: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Of rank folders that stand for the same rank of the same run (a restart, a reused folder) the one begun last, and the others."""
    by_rank: dict[tuple[Path, str], list[Path]] = {}
    for rank in ranks:
        by_rank.setdefault((rank.parent, rank.name.partition(".")[0]), []).append(rank)
    for same in by_rank.values():
        if len(same) > 1:
            same.sort(key=started_ns)
    return [same[-1] for same in by_rank.values()], [rank for same in by_rank.values() for rank in same[:-1]]


def _found_remote(url: str) -> Found:
    try:
        filesystem, inner = _fsspec().core.url_to_fs(url)
        if filesystem.isfile(inner):
            return Found((Source(url, inner.rsplit("/", 1)[-1], int(filesystem.size(inner) or 0)),))
        files = filesystem.glob(inner) if glob.has_magic(inner) else filesystem.find(inner)
        files = sorted(f for f in files if filesystem.isfile(f))
        root = os.path.commonpath([posixpath.dirname(f) for f in files]) if files else ""
        return _sorted_out([Source(filesystem.unstrip_protocol(f), os.path.relpath(f, root), int(filesystem.size(f) or 0)) for f in files])
    except ImportError as error:
        raise UnreadableInput(f"{url}: {error}") from error
    except (OSError, ValueError) as error:
        raise UnreadableInput(f"{url}: cannot be listed ({error})") from error


def _fsspec() -> Any:
    import fsspec  # noqa: PLC0415 - only URLs need it

    return fsspec


def _sorted_out(candidates: Sequence[Source]) -> Found:
    reasons = [_reason_against(source) for source in candidates]
    if not all(reasons):
        # Beside traces of the same ranks they would stand for these ranks twice.
        also = "records of communication alone; there are traces of these ranks, give its path to read it"
        reasons = [also if reason == _COMM_ONLY else reason for reason in reasons]
    reasons = ["" if reason == _COMM_ONLY else reason for reason in reasons]
    return Found(
        tuple(s for s, reason in zip(candidates, reasons, strict=True) if not reason),
        tuple(Skipped(s.name, reason) for s, reason in zip(candidates, reasons, strict=True) if reason),
    )


def _reason_against(source: Source) -> str:
    """Why a file found in a folder is not read; empty when it looks like a trace."""
    name = source.name.rsplit("/", 1)[-1]
    if name.startswith(".") or name.endswith((".tmp", ".part", ".partial", "~")):
        return "hidden or half-written by its name"
    if source.size == 0:
        return "empty file"
    try:
        head = _head(source, _TRACE)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if _TRACE.search(head):
        return ""
    other = next((what for pattern, what in _OTHER if pattern.search(head)), "not a Kineto trace (no traceEvents)")
    return _COMM_ONLY if comm_only(head) else other


_COMM_ONLY = "comm-only"


def comm_only(head: bytes) -> str | None:
    """Which of COMM_ONLY a file is, by its first bytes; None for every other file."""
    return next((kind for kind, mark in COMM_ONLY.items() if mark.search(head)), None)


def _head(source: Source, wanted: re.Pattern[bytes]) -> bytes:
    """The first bytes of a file, decompressed: up to what is wanted, a megabyte at most."""
    head = b""
    with opened(source.path) as file:
        for block in Blocks(file, source.name):
            head += block
            if len(head) >= _SNIFFED or wanted.search(head):
                break
    return head
