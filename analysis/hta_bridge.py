"""HolisticTraceAnalysis' own analyses on our Trace, without its parser: critical path, idle time, queue length.

Its Trace object is filled from our frames, in ns (its parser rounds to µs or less), its step filter is applied as it does
itself, and its answers become Tables with source = "hta". Its definitions are its own: idle time is per stream, and without
CUDA synchronization events, which a Trace does not keep, its critical path has no edges for them.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning, MissingExtra, UnreadableInput, WrongSettings
from c3prof.table import Column, Report, Schema, Table
from c3prof.trace import Trace

_RANK = Column("rank", "int64", "", "global rank")
_STREAM = Column("stream", "int64", "", "device stream")

IDLE = Schema(
    "hta_idle",
    "Idle time of each stream by cause, as HolisticTraceAnalysis counts it",
    (
        _RANK,
        _STREAM,
        Column("idle_category", "category", "", "host_wait, kernel_wait (gaps below 30 µs) or other"),
        Column("idle_ns", "float64", "ns", "sum of the gaps between neighbours on the stream; overlapping neighbours count negative"),
        Column("idle_ratio", "float64", "ratio", "share of the stream's idle time"),
    ),
)
QUEUE = Schema(
    "hta_queue",
    "Outstanding launches of each stream, as HolisticTraceAnalysis counts them",
    (
        _RANK,
        _STREAM,
        Column("changes", "int64", "", "changes of the queue length"),
        *(
            Column(name, "float64", "", f"{name} of the queue length over its changes")
            for name in ("mean", "std", "min", "p25", "p50", "p75", "max")
        ),
    ),
)
CRITICAL_PATH = Schema(
    "hta_critical_path",
    "The critical path of the first recorded step, as HolisticTraceAnalysis finds it",
    (
        _RANK,
        Column(
            "bound_by", "category", "", "what bounds this part: CPU, compute or communication on the device, launches, gaps between kernels"
        ),
        Column("name", "category", "", "operator, call or kernel"),
        Column("edges", "int64", "", "parts of the path"),
        Column("path_ns", "float64", "ns", "their time on the path"),
        Column("path_ratio", "float64", "ratio", "share of the path"),
    ),
)

_TOO_NEW = 3  # of pandas: its critical path calls DataFrame.drop(axis=…, columns=…), which pandas 3 refuses
_GAP_NS = 30_000


def hta(parts: Iterator[Trace], what: str) -> Report:
    """The Report of one of ANALYSES on each rank.

    MissingExtra when HolisticTraceAnalysis is not installed; WrongSettings when the analysis does not exist or the
    installed pandas is too new for it. A rank that it fails on is a warning, UnreadableInput when it fails on all.
    """
    _check(what)
    schema, compute = ANALYSES[what]
    frames, found, inputs = [], [], []
    for trace in parts:
        inputs += list(trace.ranks["path"])
        for rank in trace.rank_numbers:
            try:
                with _quiet():
                    frames.append(compute(its_trace(trace.only_rank(rank), rank), rank))
            except Exception as error:  # noqa: BLE001 - foreign code fails in its own ways; the other ranks still count
                found.append(
                    DataWarning(
                        "hta-failed", f"HolisticTraceAnalysis fails on rank {rank}: {type(error).__name__}: {error}", path=inputs[-1]
                    )
                )
    if not frames:
        raise UnreadableInput(found[0].message if found else "no rank was given")
    rows = pd.concat(frames, ignore_index=True)
    return Report({schema.name: Table.of(schema, rows, source="hta")}, tuple(found), inputs=tuple(inputs), settings={"analysis": what})


def _check(what: str) -> None:
    if what not in ANALYSES:
        raise WrongSettings(f"{what}: expected one of {', '.join(ANALYSES)}")
    try:
        with _quiet():
            import_module("hta.trace_analysis")
    except ImportError as error:
        missing = "HolisticTraceAnalysis" if error.name == "hta" else f"{error.name} (for HolisticTraceAnalysis)"
        raise MissingExtra(missing, "hta", f"c3prof hta {what}") from error
    if what == "critical-path" and int(pd.__version__.split(".")[0]) >= _TOO_NEW:
        raise WrongSettings(
            f"HolisticTraceAnalysis' critical path needs pandas below {_TOO_NEW}, found {pd.__version__}: pip install 'pandas<{_TOO_NEW}'"
        )


def its_trace(trace: Trace, rank: int) -> Any:
    """The Trace of one rank as hta.common.trace.Trace, as its load_traces leaves it."""
    from hta.common.trace import Trace as ItsTrace  # noqa: PLC0415 - an optional package that loads slowly
    from hta.common.trace_symbol_table import TraceSymbolTable  # noqa: PLC0415 - see above

    events = _events(trace)
    symbols = TraceSymbolTable()
    for column in ("cat", "name"):
        codes, texts = pd.factorize(events[column])
        symbols.add_symbols([str(text) for text in texts])
        ids = np.array([symbols.get_sym_id_map()[str(text)] for text in texts], np.int64)
        events[column] = ids[codes]
    made = ItsTrace.__new__(ItsTrace)  # its constructor opens files
    made.trace_files, made.trace_path, made.meta_data, made.min_ts = {}, "", {rank: {}}, 0
    made.symbol_table, made.traces, made.is_parsed = symbols, {rank: events}, True
    made.align_and_filter_trace(include_last_profiler_step=True)
    filtered = made.traces[rank].set_index("index", drop=False)
    filtered.index.names = [None]
    made.traces[rank] = filtered
    return made


def _events(trace: Trace) -> pd.DataFrame:
    """All events of a rank in its columns: index (from 1), cat, name, pid, tid, ts, dur, end (ns), stream, correlation, index_correlation, iteration."""
    activities, launches = trace.activities, trace.launches
    annotations = trace.annotations[~trace.annotations["name"].astype(str).str.startswith("nn.Module: ")]
    kinds = activities["kind"].astype(str).map({"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"})
    first_launch = 1 + len(activities)
    launch = activities["launch"].to_numpy()
    linked = np.full(len(launches), -1, np.int64)
    linked[launch[launch >= 0]] = 1 + np.flatnonzero(launch >= 0)
    device = _rows(activities, kinds, activities["device"].astype(str), activities["stream"].astype(str)).assign(
        stream=activities["stream"].to_numpy(),
        correlation=activities["correlation"].to_numpy(),
        index_correlation=np.where(launch >= 0, launch + first_launch, 0),
        iteration=activities["step"].to_numpy(),
    )
    calls = _rows(launches, "cuda_runtime", *_thread(launches)).assign(
        correlation=launches["correlation"].to_numpy(), index_correlation=linked
    )
    ops = _rows(trace.ops, "cpu_op", *_thread(trace.ops)).assign(iteration=trace.ops["step"].to_numpy())
    marks = _rows(annotations, "user_annotation", *_thread(annotations))
    events = pd.concat([device, calls, ops, marks, _steps(trace)], ignore_index=True)
    numbers = {name: events[name].fillna(-1).astype(np.int64) for name in ("stream", "correlation", "index_correlation", "iteration")}
    return events.assign(**numbers, index=np.arange(1, len(events) + 1), end=events["ts"] + events["dur"])


def _rows(frame: pd.DataFrame, cat: Any, pid: Any, tid: Any) -> pd.DataFrame:
    start, end = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    columns = {"cat": cat, "name": frame["name"].astype(str).to_numpy(), "pid": pid, "tid": tid, "ts": start, "dur": end - start}
    rows = pd.DataFrame(
        {name: value if isinstance(value, str) else np.asarray(value) for name, value in columns.items()}, index=range(len(frame))
    )
    return rows.assign(stream=-1, correlation=-1, index_correlation=-1, iteration=-1)


def _steps(trace: Trace) -> pd.DataFrame:
    """The steps as the annotations that they were, on the thread with most operators, which a Trace does not keep."""
    pid, tid = (pd.Series(part).mode() for part in _thread(trace.ops))
    steps = trace.steps.assign(name="ProfilerStep#" + trace.steps["step"].astype(str))
    return _rows(steps, "user_annotation", *(np.full(len(steps), part.iloc[0] if len(part) else "") for part in (pid, tid)))


def _thread(frame: pd.DataFrame) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """pid and tid of the threads, which a Trace writes pid/tid."""
    parts = frame["thread"].astype(str).str.partition("/")
    return parts[0].to_numpy(dtype=object), parts[2].to_numpy(dtype=object)


def _idle(its: Any, rank: int) -> pd.DataFrame:
    from hta.analyzers.breakdown_analysis import BreakdownAnalysis  # noqa: PLC0415 - see its_trace

    found = BreakdownAnalysis.get_idle_time_breakdown(its, _GAP_NS, rank, visualize=False)[0]
    exact = found.groupby("stream")["idle_time"].transform("sum")
    return IDLE.frame(found.assign(idle_ns=found["idle_time"], idle_ratio=found["idle_time"] / exact.where(exact > 0))[IDLE.names])


def _queue(its: Any, rank: int) -> pd.DataFrame:
    from hta.analyzers.trace_counters import TraceCounters  # noqa: PLC0415 - see its_trace

    found = TraceCounters.get_queue_length_summary(its, [rank])
    if found is None:
        return QUEUE.frame()
    found.columns = [name[-1] for name in found.columns]
    return QUEUE.frame(found.reset_index().rename(columns={"count": "changes", "25%": "p25", "50%": "p50", "75%": "p75"})[QUEUE.names])


def _critical_path(its: Any, rank: int) -> pd.DataFrame:
    from hta.analyzers.critical_path_analysis import CriticalPathAnalysis  # noqa: PLC0415 - see its_trace

    steps = any("ProfilerStep" in name for name in its.symbol_table.get_sym_id_map())
    answer = CriticalPathAnalysis.critical_path_analysis(its, rank, "ProfilerStep" if steps else "", 0)
    edges = answer[0].get_critical_path_breakdown() if answer else None
    if edges is None:
        return CRITICAL_PATH.frame()
    edges = edges[edges["bound_by"] != ""]
    sums = edges.assign(name=edges["s_name"].fillna("")).groupby(["bound_by", "name"])["duration"].agg(["size", "sum"]).reset_index()
    sums = sums.rename(columns={"size": "edges", "sum": "path_ns"}).sort_values(
        "path_ns", ascending=False, kind="stable", ignore_index=True
    )
    return CRITICAL_PATH.frame(sums.assign(rank=rank, path_ratio=sums["path_ns"] / sums["path_ns"].sum())[CRITICAL_PATH.names])


ANALYSES: dict[str, tuple[Schema, Callable[[Any, int], pd.DataFrame]]] = {
    "critical-path": (CRITICAL_PATH, _critical_path),
    "idle": (IDLE, _idle),
    "queue": (QUEUE, _queue),
}


@contextmanager
def _quiet() -> Iterator[None]:
    """Its log lines and the warnings of its pandas calls are not for the user."""
    logger = logging.getLogger("hta")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
