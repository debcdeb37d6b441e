"""Trace and Report → a trace that ui.perfetto.dev and chrome://tracing open.

Beside the recorded spans it has, for each device, counter tracks of communication that is hidden and exposed and of the exposed time so
far, and in each kernel's arguments its class, the operator, the collective and its slowdown by co-runner.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import IO, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from isal import igzip

from c3prof.analysis.busy import busy
from c3prof.table import Report
from c3prof.trace import CPU_DEVICE, Trace
from c3prof.units import NS_PER_MS, NS_PER_US

Event = dict[str, Any]

_CHUNK = 4_096
_STEPS, _COLLECTIVES = 1_000_000, 1_000_001
"""Threads of the CPU process that stand for no thread."""
_EMPTY = (-1, "", None)


def write_perfetto(
    trace: Trace, report: Report | None, file: IO[bytes], *, window: tuple[int, int] | None = None, ranks: Sequence[int] | None = None
) -> int:
    """Writes the trace as gzipped JSON and returns the number of events written.

    window: first and last ns to keep, on the trace's clock, None for all; ranks: those to keep, None for all.
    Times are µs from the first span, exact to the ns.
    """
    begin = first_ns(trace)
    count = 0
    with igzip.IGzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as out:
        out.write(b'{"displayTimeUnit":"ns","otherData":{"producer":"c3prof"},"traceEvents":[\n')
        chunk: list[bytes] = []
        for event in _events(trace, report, window, ranks, begin):
            chunk.append(msgspec.json.encode(event))
            count += 1
            if len(chunk) == _CHUNK:
                out.write(b",\n".join(chunk) + b",\n")
                chunk.clear()
        chunk.append(b'{"ph":"M","name":"c3prof","pid":0,"tid":0,"args":{}}')
        out.write(b",\n".join(chunk) + b"\n]}\n")
    return count


def perfetto_bytes(trace: Trace, report: Report | None, *, window: tuple[int, int] | None, ranks: Sequence[int] | None) -> bytes:
    """The same in memory, for a window that is small."""
    buffer = BytesIO()
    write_perfetto(trace, report, buffer, window=window, ranks=ranks)
    return buffer.getvalue()


def chosen_ranks(text: str, known: Sequence[int]) -> list[int]:
    """The known ranks that 0-3,8 names; all for an empty text. ValueError when it cannot be read."""
    if not text.strip():
        return list(known)
    wanted: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-") if not part.strip().startswith("-") else (part.strip(), "", "")
        wanted += [rank for rank in known if int(low) <= rank <= int(high if dash else low)]
    return wanted


def first_ns(trace: Trace) -> int:
    """The earliest start of anything in the trace; 0 when it is empty."""
    frames = (trace.activities, trace.launches, trace.ops, trace.annotations, trace.collectives, trace.steps)
    return min((int(frame["start_ns"].min()) for frame in frames if len(frame)), default=0)


def _events(
    trace: Trace, report: Report | None, window: tuple[int, int] | None, ranks: Sequence[int] | None, begin: int
) -> Iterator[Event]:
    factors = _factors(report)
    for rank in trace.rank_numbers:
        if ranks is not None and rank not in ranks:
            continue
        one = trace.only_rank(rank)
        yield from _names(one, rank)
        yield from _activities(one, rank, factors, window, begin)
        yield from _cpu(one, rank, window, begin)
        yield from _counters(one, rank, window, begin)


def _pid(rank: int, device: int) -> int:
    """Perfetto sorts processes by number: a rank's devices, then its CPU."""
    return (rank + 1_000) * 64 + (63 if device == CPU_DEVICE else device % 63)


def _names(trace: Trace, rank: int) -> Iterator[Event]:
    name = f"rank {rank}" if rank >= 0 else "rank unknown"
    for device in trace.activities["device"].unique():
        yield {"ph": "M", "name": "process_name", "pid": _pid(rank, int(device)), "tid": 0, "args": {"name": f"{name} device {device}"}}
    yield {"ph": "M", "name": "process_name", "pid": _pid(rank, CPU_DEVICE), "tid": 0, "args": {"name": f"{name} CPU"}}
    for thread, number in _threads(trace).items():
        yield {"ph": "M", "name": "thread_name", "pid": _pid(rank, CPU_DEVICE), "tid": number, "args": {"name": thread}}


def _threads(trace: Trace) -> dict[str, int]:
    names = dict.fromkeys(str(t) for frame in (trace.launches, trace.annotations, trace.ops) for t in frame["thread"].dropna().unique())
    return {name: number for number, name in enumerate(names, 1)} | {"steps": _STEPS, "collectives": _COLLECTIVES}


def _inside(frame: pd.DataFrame, window: tuple[int, int] | None) -> pd.DataFrame:
    if window is None:
        return frame
    return frame[(frame["end_ns"].to_numpy() > window[0]) & (frame["start_ns"].to_numpy() < window[1])]


def _span(name: object, cat: str, pid: int, tid: int, start: int, end: int, begin: int, args: Mapping[str, Any]) -> Event:
    times = {"ts": (start - begin) / NS_PER_US, "dur": (end - start) / NS_PER_US}
    return {"ph": "X", "name": str(name), "cat": cat, "pid": pid, "tid": tid, **times, "args": args}


def _activities(trace: Trace, rank: int, factors: "_Factors", window: tuple[int, int] | None, begin: int) -> Iterator[Event]:
    op_names, op_dims = trace.ops["name"].astype(object).to_numpy(), trace.ops["dims"].astype(object).to_numpy()
    collectives = trace.collectives[["collective", "group", "seq", "size_bytes", "dtype"]].astype(object).to_dict("records")
    columns = ["device", "stream", "start_ns", "end_ns", "name", "class", "kernel_class", "evidence", "op", "collective_id", "step", "grid"]
    for row in _inside(trace.activities, window)[[*columns, "block", "launch"]].itertuples(index=False):
        device, stream, start, end, name, cls, kind, evidence, op, collective, step, grid, block, launch = row
        args = {"class": cls, "kernel class": kind, "evidence": evidence, "step": step, "grid": grid, "block": block}
        dims = op_dims[op] if op >= 0 else None
        if op >= 0:
            args |= {"op": op_names[op], "input dims": dims}
        if collective >= 0:
            args |= {str(key): value for key, value in collectives[collective].items()}
        args |= factors.of(rank, name, dims)
        event = _span(name, str(cls), _pid(rank, device), _tid(stream), start, end, begin, _known(args))
        yield event
        if launch >= 0:
            yield {"ph": "f", "bp": "e", "id": f"{rank}.{launch}", "name": "launch", "cat": "launch"} | {
                k: event[k] for k in ("pid", "tid", "ts")
            }


def _tid(stream: int) -> int:
    """Streams are 64-bit numbers, of which JavaScript keeps 53 bits; the low ones are enough to tell them apart."""
    return int(stream) & 0x7FFFFFFF


def _known(args: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in args.items() if not (value is pd.NA or value != value or value in _EMPTY)}  # noqa: PLR0124 - NaN


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _cpu(trace: Trace, rank: int, window: tuple[int, int] | None, begin: int) -> Iterator[Event]:
    pid, threads = _pid(rank, CPU_DEVICE), _threads(trace)
    for frame, cat in ((trace.annotations, "annotation"), (trace.ops, "op"), (trace.launches, "launch")):
        columns = ["thread", "start_ns", "end_ns", "name"] + (["dims"] if cat == "op" else [])
        part = _inside(frame, window)[columns]
        for position, (thread, start, end, name, *dims) in zip(part.index, part.itertuples(index=False), strict=True):
            event = _span(name, cat, pid, threads.get(str(thread), 0), start, end, begin, _known({"input dims": dims[0]}) if dims else {})
            yield event
            if cat == "launch":
                yield {"ph": "s", "id": f"{rank}.{position}", "name": "launch", "cat": "launch"} | {
                    k: event[k] for k in ("pid", "tid", "ts")
                }
    for start, end, step in _inside(trace.steps, window)[["start_ns", "end_ns", "step"]].itertuples(index=False):
        yield _span(f"ProfilerStep#{step}", "step", pid, _STEPS, start, end, begin, {})
    on_cpu = _inside(trace.collectives[trace.collectives["device"] == CPU_DEVICE], window)
    for start, end, name, group, size in on_cpu[["start_ns", "end_ns", "collective", "group", "size_bytes"]].itertuples(index=False):
        yield _span(name, "comm", pid, _COLLECTIVES, start, end, begin, _known({"group": group, "size_bytes": size}))


def _counters(trace: Trace, rank: int, window: tuple[int, int] | None, begin: int) -> Iterator[Event]:
    """Counter tracks of each device: communication hidden and exposed now (0 or 1), exposed time so far."""
    for device, rows in trace.activities.groupby("device"):
        edges, hidden, exposed = overlap_edges(rows)
        total = np.concatenate([[0], np.cumsum(np.where(exposed[:-1], np.diff(edges), 0))]) if len(edges) else edges
        pid = _pid(rank, int(device))
        for at, hides, shows, so_far in zip(edges.tolist(), hidden.tolist(), exposed.tolist(), total.tolist(), strict=True):
            if window is None or window[0] <= at < window[1]:
                ts = (at - begin) / NS_PER_US
                yield {"ph": "C", "name": "communication", "pid": pid, "ts": ts, "args": {"hidden": int(hides), "exposed": int(shows)}}
                yield {"ph": "C", "name": "exposed ms so far", "pid": pid, "ts": ts, "args": {"ms": so_far / NS_PER_MS}}


def overlap_edges(activities: pd.DataFrame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Instants at which communication of one device becomes hidden, exposed or ends, ascending, and what holds from each on."""
    now = busy(activities)
    compute, comm = now.p, now.q
    edges = np.unique(np.concatenate([*compute, *comm]))
    in_comm, in_compute = (np.searchsorted(s.starts, edges, "right") > np.searchsorted(s.ends, edges, "right") for s in (comm, compute))
    hidden, exposed = in_comm & in_compute, in_comm & ~in_compute
    differs = (hidden[1:] != hidden[:-1]) | (exposed[1:] != exposed[:-1])
    changes = np.flatnonzero(np.concatenate([np.ones(min(len(edges), 1), np.bool_), differs]))
    return edges[changes], hidden[changes], exposed[changes]


class _Factors:
    """Slowdowns by rank, kernel and input dims, as arguments of an event."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], list[tuple[Any, str, float]]] = defaultdict(list)

    def of(self, rank: int, kernel: str, dims: Any) -> dict[str, float]:
        rows = self.rows.get((rank, kernel), ())
        return {f"slowdown beside {co_runner}": factor for own, co_runner, factor in rows if own == dims or own in _EMPTY or own != own}  # noqa: PLR0124 - NaN


def _factors(report: Report | None) -> _Factors:
    made = _Factors()
    table = report.get("slowdown") if report else None
    if table is not None:
        columns = ["rank", "kernel", "input_dims", "co_runner", "slowdown"]
        for rank, kernel, dims, co_runner, factor in table.frame[columns].astype(object).itertuples(index=False):
            if factor is not None and factor == factor:  # noqa: PLR0124 - NaN
                made.rows[int(rank), str(kernel)].append((dims, str(co_runner), round(float(factor), 4)))
    return made
