"""Kineto trace files in a few lines: events as recorders write them, and the file around them."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def kernel(name: str, start: float, end: float, *, stream: int = 7, device: int = 0, correlation: int = 0, **args: Any) -> Event:
    """A kernel [start, end) in µs on a stream; more arguments by keyword or as ** {"Collective name": …}."""
    return _device("kernel", name, start, end, stream, device, correlation, args)


def memcpy(name: str, start: float, end: float, *, stream: int = 7, device: int = 0, correlation: int = 0, **args: Any) -> Event:
    """A copy [start, end) in µs."""
    return _device("gpu_memcpy", name, start, end, stream, device, correlation, args)


def memset(start: float, end: float, *, stream: int = 7, device: int = 0, correlation: int = 0, **args: Any) -> Event:
    """A memset [start, end) in µs."""
    return _device("gpu_memset", "Memset (Device)", start, end, stream, device, correlation, args)


def nccl(
    kind: str, start: float, end: float, *, stream: int = 20, group: str = "0", size: int = 2, elements: int = 1024, **args: Any
) -> Event:
    """An NCCL kernel with collective arguments, as torch ≥ 2.4 writes them."""
    arguments: dict[str, Any] = {
        "Collective name": kind,
        "Process Group Name": group,
        "Process Group Description": "default_pg",
        "Group size": size,
        "dtype": "Float",
        "In msg nelems": elements,
        "Out msg nelems": elements,
    }
    return kernel(f"ncclDevKernel_{kind}_RING_LL", start, end, stream=stream, **arguments, **args)


def launch(start: float, end: float, correlation: int, *, name: str = "cudaLaunchKernel", thread: int = 1, **args: Any) -> Event:
    """A runtime call on a CPU thread."""
    return _cpu("cuda_runtime", name, start, end, thread, {"correlation": correlation, **args})


def op(name: str, start: float, end: float, *, thread: Any = 1, **args: Any) -> Event:
    """A CPU operator."""
    return _cpu("cpu_op", name, start, end, thread, args)


def annotation(name: str, start: float, end: float, *, thread: Any = 1, **args: Any) -> Event:
    """A user annotation on a CPU thread (ProfilerStep#3, gloo:all_reduce, …)."""
    return _cpu("user_annotation", name, start, end, thread, args)


def launched(activity: Event, at: float, *, thread: int = 1, duration: float = 1) -> list[Event]:
    """A device activity with the runtime call that enqueued it; the correlation id is made from its start."""
    correlation = int(activity["ts"] * 1000) + 1
    activity["args"]["correlation"] = correlation
    return [launch(at, at + duration, correlation, thread=thread), activity]


def document(
    events: Sequence[Event], *, rank: int | None = 0, world_size: int = 1, base_ns: int | None = None, **top: Any
) -> dict[str, Any]:
    """The object form of a trace file."""
    head: dict[str, Any] = {"schemaVersion": 1, **top}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size, **top.get("distributedInfo", {})}
    if base_ns is not None:
        head["baseTimeNanoseconds"] = base_ns
    return {**head, "traceEvents": list(events)}


def written(path: Path, content: Mapping[str, Any] | Sequence[Event] | bytes | str) -> Path:
    """The path, with the content in it: JSON of a document or of bare events, or the bytes as they are; .gz is compressed."""
    data = content.encode() if isinstance(content, str) else content if isinstance(content, bytes) else json.dumps(content).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def _device(cat: str, name: str, start: float, end: float, stream: int, device: int, correlation: int, args: Mapping[str, Any]) -> Event:
    more = {"device": device, "stream": stream, "correlation": correlation, **args}
    return {"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "ts": start, "dur": _difference(start, end), "args": more}


def _cpu(cat: str, name: str, start: float, end: float, thread: int, args: Mapping[str, Any]) -> Event:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 1000,
        "tid": thread,
        "ts": start,
        "dur": _difference(start, end),
        "args": dict(args),
    }


def _difference(start: float, end: float) -> float:
    return round(end - start, 3)
