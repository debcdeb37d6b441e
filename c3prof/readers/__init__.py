"""Files → Trace. A new reader is one file here and one line in `loaded`."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

from c3prof.errors import DataWarning, UnreadableInput
from c3prof.kernels import rules as rules_of
from c3prof.readers import flight_recorder, nccl_inspector, nccl_log
from c3prof.readers.blocks import Blocks, read_ahead
from c3prof.readers.kineto import trace_of
from c3prof.readers.run_folder import rank_trace
from c3prof.readers.scan import scan
from c3prof.readers.sources import Found, Source, comm_only, found, opened
from c3prof.readers.windows import one_rank
from c3prof.run import joined
from c3prof.tasks import in_threads
from c3prof.trace import Trace

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

Progress = Callable[[int], None]
"""Called with the number of bytes of the input (compressed) that were just read."""


def load(paths: Paths, *, rules: str | None = None, progress: Progress | None = None) -> Trace:
    """The Trace of a file, several files, a folder, a glob or an fsspec URL.

    rules: a TOML file with rules of one's own (docs/rules.md). Several files are read in threads side by side.
    UnreadableInput when nothing usable is found; damage that leaves something is a warning on the Trace.
    """
    inputs = found(paths)
    return together(inputs, partial(loaded, rules=rules, ahead=len(inputs.sources) == 1), progress)


def together(inputs: Found, read: Callable[..., Trace], progress: Progress | None = None) -> Trace:
    """The Trace of all inputs: read(source, place, progress=…) of each, in threads, joined.

    What cannot be read is a warning; UnreadableInput when nothing else is left. progress is called by one thread at a time.
    """
    lock = Lock()

    def told(count: int) -> None:
        with lock:
            if progress is not None:
                progress(count)

    def one(numbered: tuple[int, Source]) -> Trace | DataWarning:
        place, source = numbered
        try:
            return read(source, place, progress=told)
        except UnreadableInput as error:
            return DataWarning("unreadable", str(error), path=source.name)

    results = in_threads(one, list(enumerate(inputs.sources)))
    traces = [result for result in results if isinstance(result, Trace)]
    failures = [result for result in results if isinstance(result, DataWarning)]
    if not traces:
        raise UnreadableInput(failures[0].message)
    return joined(traces, in_threads).with_warnings([*failures, *inputs.warnings])


_COMM_ONLY = {
    "flight recorder": flight_recorder.flight_recorder,
    "NCCL Inspector": nccl_inspector.nccl_inspector,
    "NCCL log": nccl_log.nccl_log,
}


def _comm_only(source: Source) -> Trace | None:
    """The Trace of a file that holds records of communication alone, None for any other file."""
    with opened(source.path) as file:
        content = b"".join(Blocks(file, source.name))
    kind = comm_only(content)
    return None if kind is None else _COMM_ONLY[kind](content, source.name)


def loaded(source: Source, place: int = 0, *, rules: str | None = None, progress: Progress | None = None, ahead: bool = False) -> Trace:
    """The Trace of one file or rank folder; `place` tells files without a rank apart. UnreadableInput when nothing in it is usable.

    ahead: a second thread decompresses, for who has a core to spare.
    """
    if source.windows:
        return one_rank([loaded(window, place, rules=rules, progress=progress, ahead=ahead) for window in source.windows])
    if "://" not in source.path and Path(source.path).is_dir():
        return rank_trace(
            Path(source.path),
            source.name,
            lambda path, name: loaded(Source(str(path), name, path.stat().st_size), rules=rules, progress=progress, ahead=ahead),
        )
    try:
        with opened(source.path) as file:
            blocks = Blocks(file, source.name, progress)
            columns = scan(read_ahead(blocks) if ahead or "://" in source.path else blocks)
    except OSError as error:
        raise UnreadableInput(f"{source.name}: cannot be read ({error.strerror or error})") from error
    if not blocks.decompressed:
        raise UnreadableInput(f"{source.name}: {blocks.warnings[0].message if blocks.warnings else 'empty file'}; expected a Kineto trace")
    trace = trace_of(columns, source.name, rules_of(rules), -1 - place)
    if not columns.counts.get("events", 0) and (other := _comm_only(source)) is not None:
        return other
    if not len(trace.activities) and not len(trace.ops) and not len(trace.annotations) and not len(trace.launches):
        seen = columns.counts.get("events", 0)
        why = trace.warnings[0].message if trace.warnings and not seen else f"{seen:,} events, none of which is device or CPU work"
        raise UnreadableInput(f"{source.name}: no usable events ({why}); expected a Kineto trace with traceEvents")
    return trace.with_warnings(blocks.warnings)
