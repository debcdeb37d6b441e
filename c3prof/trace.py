"""Trace: what was recorded, as frames with declared columns.

Readers make it, analysis reads it. A Trace holds one rank or many: every frame has a `rank` column, and the
columns that point into another frame (`launch`, `op`, `parent`, `collective_id`, …) hold row positions, -1 for none.
Times are int64 nanoseconds, half-open spans [start_ns, end_ns), on one clock per rank.
A rank that the file does not name has a negative number (-1, -2, …), which is rendered as unknown.
"""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.table import Column, Schema

NONE = -1
"""What a position, a step or an id holds when there is none."""

CPU_DEVICE = -1
"""The device number of work that ran on a CPU thread (gloo)."""

_RANK = Column("rank", "int32", "", "global rank of the process; negative when the file does not name it")
_START = Column("start_ns", "int64", "ns", "start on the rank's clock")
_END = Column("end_ns", "int64", "ns", "end (exclusive) on the rank's clock")
_THREAD = Column("thread", "category", "", "pid/tid of the CPU thread")

ACTIVITIES = Schema(
    "activities",
    "Execution spans on device streams, sorted by rank, device, stream, start",
    (
        _RANK,
        Column("device", "int32", "", "device the span ran on"),
        Column("stream", "int64", "", "stream id; unsigned ids above int64 are wrapped"),
        _START,
        _END,
        Column("name", "category", "", "kernel or copy name as recorded"),
        Column("kind", "category", "", "kernel, memcpy or memset"),
        Column("class", "category", "", "compute, comm, fused or copy (docs/metrics.md §1)"),
        Column("evidence", "category", "", "what the class rests on: metadata, copy-engine, name, stream; none for the default"),
        Column("kernel_class", "category", "", "gemm, attention, convolution, …; the kind of collective for communication"),
        Column("suspected", "bool", "", "unknown name on a stream that otherwise runs only communication (evidence stream)"),
        Column("correlation", "int64", "", "correlation id, -1 for none"),
        Column("graph", "int64", "", "id of the replayed graph (executable), -1 for none"),
        Column("launch", "int32", "", "row in launches, -1 for none"),
        Column("op", "int32", "", "row in ops of the innermost CPU operator around the launch, -1 for none"),
        Column("annotation", "int32", "", "row in annotations of the innermost one around the launch, -1 for none"),
        Column("collective_id", "int32", "", "row in collectives, -1 for none"),
        Column("step", "int64", "", "step number of its launch, -1 for none"),
        Column("grid", "category", "", "launch grid [x,y,z]"),
        Column("block", "category", "", "thread block [x,y,z]"),
        Column("shared_memory", "int64", "B", "dynamic and static shared memory of a block, -1 unknown"),
        Column("registers", "int64", "", "registers per thread, -1 unknown"),
        Column("occupancy", "float64", "%", "estimated achieved occupancy as recorded"),
        Column("bytes", "int64", "B", "bytes of a copy or memset, -1 unknown"),
    ),
)

LAUNCHES = Schema(
    "launches",
    "Runtime and driver API calls, sorted by rank, thread, start",
    (
        _RANK,
        _THREAD,
        _START,
        _END,
        Column("name", "category", "", "API call"),
        Column("correlation", "int64", "", "correlation id, -1 for none"),
        Column("op", "int32", "", "row in ops of the innermost operator around it, -1 for none"),
        Column("annotation", "int32", "", "row in annotations of the innermost one around it, -1 for none"),
        Column("blocking", "bool", "", "a call that waits for the device (synchronize, event wait)"),
    ),
)

OPS = Schema(
    "ops",
    "CPU operators, sorted by rank, thread, start, longest first",
    (
        _RANK,
        _THREAD,
        _START,
        _END,
        Column("name", "category", "", "operator"),
        Column("external_id", "int64", "", "External id, -1 for none"),
        Column("parent", "int32", "", "row in ops of the enclosing operator on the thread, -1 for none"),
        Column("dims", "category", "", "Input Dims as compact JSON"),
        Column("types", "category", "", "Input type as compact JSON"),
        Column("strides", "category", "", "Input Strides as compact JSON"),
        Column("concrete", "category", "", "Concrete Inputs of communication operators as compact JSON"),
        Column("is_comm", "bool", "", "a communication operator or a wait for one (c10d::*, record_param_comms, wait_tensor, …)"),
        Column("step", "int64", "", "step number, -1 for none"),
    ),
)

ANNOTATIONS = Schema(
    "annotations",
    "User annotations and torch.nn modules on CPU threads, sorted by rank, thread, start, longest first",
    (
        _RANK,
        _THREAD,
        _START,
        _END,
        Column("name", "category", "", "text of the annotation, or nn.Module: name"),
        Column("parent", "int32", "", "row in annotations of the enclosing one on the thread, -1 for none"),
        Column("dims", "category", "", "Input Dims as compact JSON, where recorded"),
        Column("types", "category", "", "Input type as compact JSON, where recorded"),
    ),
)

DEVICE_ANNOTATIONS = Schema(
    "device_annotations",
    "Annotations as the device saw them (gpu_user_annotation); they cover kernels and are no activities",
    (
        _RANK,
        Column("device", "int32", "", "device"),
        Column("stream", "int64", "", "stream id"),
        _START,
        _END,
        Column("name", "category", "", "text"),
    ),
)

COLLECTIVES = Schema(
    "collectives",
    "Communication operations of each rank (one row an operation, whatever its kernels), sorted by rank, start",
    (
        _RANK,
        Column("device", "int32", "", "device; -1 when it ran on a CPU thread (gloo)"),
        Column("stream", "int64", "", "stream of its first kernel; -1 on CPU"),
        _START,
        _END,
        Column(
            "collective",
            "category",
            "",
            "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send, recv, send_recv, barrier, …; unknown",
        ),
        Column("group", "category", "", "process group name, missing when not recorded"),
        Column("group_desc", "category", "", "process group description"),
        Column("group_size", "int64", "", "ranks in the group, -1 unknown"),
        Column("group_ranks", "category", "", "member ranks as compact JSON; cut at 30 entries by the recorder"),
        Column("seq", "int64", "", "sequence number in the group, -1 when not recorded"),
        Column("order", "int64", "", "0, 1, … place of the operation in its (rank, group) in order of launch"),
        Column("dtype", "category", "", "element type as recorded"),
        Column("in_elements", "int64", "", "In msg nelems, -1 unknown"),
        Column("out_elements", "int64", "", "Out msg nelems, -1 unknown"),
        Column("size_bytes", "int64", "B", "message size as nccl-tests counts it (docs/metrics.md §5), -1 unknown"),
        Column("peer", "int64", "", "Dst Rank of a send, Src Rank of a recv, root of a rooted collective; -1 unknown"),
        Column("op", "int32", "", "row in ops of the operator that launched it, -1 for none"),
        Column("step", "int64", "", "step number, -1 for none"),
        Column("launch_end_ns", "int64", "ns", "end of the API call (or c10d operator) that enqueued it, -1 unknown"),
        Column("kernels", "int64", "", "activities that make up the operation"),
        Column("evidence", "category", "", "metadata, copy-engine, name, annotation (gloo), hook (recorded by c3prof) or flight-recorder"),
        Column("wait_start_ns", "int64", "ns", "when the host first waited for it, -1 not recorded", default=NONE),
        Column("blocked_ns", "int64", "ns", "time that the host was blocked in waits for it, -1 not recorded", default=NONE),
    ),
)

STEPS = Schema(
    "steps",
    "Training steps as the CPU saw them (ProfilerStep#n), sorted by rank, step",
    (
        _RANK,
        Column("step", "int64", "", "number in ProfilerStep#n"),
        _START,
        _END,
        Column("phase", "category", "", "of calibration: serialized, concurrent or discarded; missing without", default=None),
    ),
)

RANKS = Schema(
    "ranks",
    "Recorded ranks, one row an input file",
    (
        _RANK,
        Column("path", "object", "", "the file as the user named it, relative to what was given"),
        Column("world_size", "int64", "", "ranks of the job, -1 unknown"),
        Column("host", "object", "", "host name, None unknown"),
        Column("backend", "object", "", "nccl, gloo, …; None unknown"),
        Column("rank_evidence", "object", "", "distributedInfo, manifest, file name, or none"),
        Column("base_ns", "int64", "ns", "baseTimeNanoseconds that was added to the file's times, 0 for none"),
        Column("tick_ns", "int64", "ns", "gcd of all times and durations: what the clock resolves"),
        Column("device_name", "object", "", "name of the device it used, None unknown"),
        Column("events", "int64", "", "events in the file"),
        Column(
            "status", "object", "", "complete, running, killed, stalled, exception:X or signal:X; None without a manifest", default=None
        ),
    ),
)

GROUPS = Schema(
    "groups",
    "Process groups that the files declare (distributedInfo.pg_config), a row a rank and group",
    (
        _RANK,
        Column("group", "object", "", "name"),
        Column("group_desc", "object", "", "description"),
        Column("group_size", "int64", "", "ranks in the group, -1 unknown"),
        Column("group_ranks", "object", "", "member ranks as compact JSON, None unknown"),
    ),
)

COUNTERS = Schema(
    "counters",
    "Counter samples (ph C), if the file has any",
    (
        _RANK,
        Column("at_ns", "int64", "ns", "time of the sample"),
        Column("name", "category", "", "counter"),
        Column("value", "float64", "", "value"),
    ),
)

WINDOWS = Schema(
    "windows",
    "Recording windows of the profiler, sorted by rank, start; between two of a rank nothing was recorded",
    (_RANK, _START, _END),
)

RECORDED_STEPS = Schema(
    "recorded_steps",
    "Every step that the collectors counted, inside and outside of profiler windows, sorted by rank, step",
    (
        _RANK,
        Column("step", "int64", "", "step number"),
        _START,
        _END,
        Column("cpu_ns", "int64", "ns", "CPU time of the thread that runs the loop, -1 unknown"),
        Column("phase", "category", "", "of calibration: serialized, concurrent or discarded; missing without"),
        Column("window", "int64", "", "profiler window that was open, -1 for none"),
    ),
)

RECORDED_COLLECTIVES = Schema(
    "recorded_collectives",
    "Every operation that the c10d hook saw, inside and outside of profiler windows, sorted by rank, start",
    (
        *(column for column in COLLECTIVES.columns if column.name not in {"op", "kernels", "stream", "order"}),
        Column("asynchronous", "object", "", "async_op of the call; None when torch does not say"),
        Column("phase", "category", "", "of calibration: serialized, concurrent or discarded; missing without"),
    ),
)

NCCL_CHOICES = Schema(
    "nccl_choices",
    "Channels, algorithm and protocol that NCCL chose (its debug log), a row a rank and choice",
    (
        _RANK,
        Column("collective", "object", "", "kind of collective; None in the row that only tells the channels of the communicator"),
        Column("size_bytes", "int64", "B", "message size, -1 unknown"),
        Column("algorithm", "object", "", "RING, TREE, NVLS, …"),
        Column("protocol", "object", "", "LL, LL128 or SIMPLE"),
        Column("channels", "int64", "", "channels: workgroups of the communication kernel; -1 unknown"),
        Column("n", "int64", "", "collectives with this choice"),
    ),
)

SCHEMAS: dict[str, Schema] = {
    schema.name: schema
    for schema in (
        ACTIVITIES,
        LAUNCHES,
        OPS,
        ANNOTATIONS,
        DEVICE_ANNOTATIONS,
        COLLECTIVES,
        STEPS,
        RANKS,
        GROUPS,
        COUNTERS,
        WINDOWS,
        RECORDED_STEPS,
        RECORDED_COLLECTIVES,
        NCCL_CHOICES,
    )
}

POINTERS = {
    "activities": {"launch": "launches", "op": "ops", "annotation": "annotations", "collective_id": "collectives"},
    "launches": {"op": "ops", "annotation": "annotations"},
    "ops": {"parent": "ops"},
    "annotations": {"parent": "annotations"},
    "collectives": {"op": "ops"},
}

Each = Callable[[Callable[[str], pd.DataFrame], Sequence[str]], Iterable[pd.DataFrame]]
"""A function of each frame's name, in order: map, or one that uses threads."""


@dataclass(frozen=True)
class Trace:
    """One run, or part of it: frames as declared above, device properties, warnings and coverage.

    devices: properties of each device by (rank, device), as recorded (numSms, maxThreadsPerMultiprocessor, …);
    coverage: counts per rank of what was read, dropped and linked (docs/metrics.md §6), {rank: {name: count}}.
    """

    activities: pd.DataFrame = field(default_factory=ACTIVITIES.frame)
    launches: pd.DataFrame = field(default_factory=LAUNCHES.frame)
    ops: pd.DataFrame = field(default_factory=OPS.frame)
    annotations: pd.DataFrame = field(default_factory=ANNOTATIONS.frame)
    device_annotations: pd.DataFrame = field(default_factory=DEVICE_ANNOTATIONS.frame)
    collectives: pd.DataFrame = field(default_factory=COLLECTIVES.frame)
    steps: pd.DataFrame = field(default_factory=STEPS.frame)
    ranks: pd.DataFrame = field(default_factory=RANKS.frame)
    groups: pd.DataFrame = field(default_factory=GROUPS.frame)
    counters: pd.DataFrame = field(default_factory=COUNTERS.frame)
    windows: pd.DataFrame = field(default_factory=WINDOWS.frame)
    recorded_steps: pd.DataFrame = field(default_factory=RECORDED_STEPS.frame)
    recorded_collectives: pd.DataFrame = field(default_factory=RECORDED_COLLECTIVES.frame)
    nccl_choices: pd.DataFrame = field(default_factory=NCCL_CHOICES.frame)
    devices: Mapping[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    warnings: Sequence[DataWarning] = ()
    coverage: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, schema in SCHEMAS.items():
            found = list(getattr(self, name).columns)
            if found != schema.names:
                raise KeyError(f"frame {name}: columns {found}, expected {schema.names}")

    @classmethod
    def concat(cls, traces: Sequence["Trace"], each: Each = map) -> "Trace":
        """One Trace of all: rows one after another in order of rank, positions moved along.

        each: may use threads, since the frames of the traces are only read.
        """
        if len(traces) == 1:
            return traces[0]
        traces = sorted(traces, key=lambda trace: min(trace.rank_numbers, default=0))
        shifts = {name: np.cumsum([0] + [len(getattr(t, name)) for t in traces[:-1]]) for name in SCHEMAS}

        def frame(name: str) -> pd.DataFrame:
            parts = [_shifted(getattr(t, name), POINTERS.get(name, {}), shifts, i) for i, t in enumerate(traces)]
            return _concat_frames(parts, SCHEMAS[name])

        return cls(
            **dict(zip(SCHEMAS, each(frame, list(SCHEMAS)), strict=True)),
            devices={key: value for t in traces for key, value in t.devices.items()},
            warnings=tuple(w for t in traces for w in t.warnings),
            coverage={rank: counts for t in traces for rank, counts in t.coverage.items()},
        )

    @property
    def rank_numbers(self) -> list[int]:
        """The ranks that were recorded, ascending."""
        return sorted(int(rank) for rank in self.ranks["rank"].unique())

    def each_rank(self) -> Iterator["Trace"]:
        """A Trace of one rank each, in order of rank."""
        if len(self.rank_numbers) <= 1:
            yield self
            return
        for rank in self.rank_numbers:
            yield self.only_rank(rank)

    def only_rank(self, rank: int) -> "Trace":
        """The Trace of one rank. Rows of a rank are neighbours in every frame, so this only slices."""
        frames, starts = {}, {}
        for name in SCHEMAS:
            frame = getattr(self, name)
            ranks = frame["rank"].to_numpy()
            low, high = np.searchsorted(ranks, [rank, rank + 1]) if len(ranks) else (0, 0)
            frames[name], starts[name] = frame.iloc[low:high].reset_index(drop=True), -int(low)
        for name, pointers in POINTERS.items():
            frames[name] = _shifted(frames[name], pointers, {target: [starts[target]] for target in starts}, 0)
        return replace(
            self,
            **frames,
            devices={key: value for key, value in self.devices.items() if key[0] == rank},
            coverage={key: value for key, value in self.coverage.items() if key == rank},
        )

    def with_warnings(self, warnings: Sequence[DataWarning]) -> "Trace":
        """The same Trace with more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings)) if warnings else self

    def summary(self) -> "Trace":
        """The same Trace without what grows with the events: collectives, steps, ranks and groups stay."""
        kept: dict[str, Any] = {
            name: SCHEMAS[name].frame() for name in ("activities", "launches", "ops", "annotations", "device_annotations", "counters")
        }
        collectives = self.collectives.assign(op=np.full(len(self.collectives), NONE, np.int32))
        return replace(self, **kept, collectives=collectives)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{len(getattr(self, name)):,}</td></tr>" for name in SCHEMAS)
        ranks = ", ".join("?" if rank < 0 else str(rank) for rank in self.rank_numbers[:16])
        return f"<h4>Trace of rank {ranks or 'none'}</h4><table><tr><th>frame</th><th>rows</th></tr>{rows}</table>"

    def __repr__(self) -> str:
        sizes = ", ".join(f"{f.name}={len(getattr(self, f.name)):,}" for f in fields(self) if f.name in SCHEMAS)
        return f"Trace({sizes})"


def _shifted(frame: pd.DataFrame, pointers: Mapping[str, str], shifts: Mapping[str, Any], i: int) -> pd.DataFrame:
    moves = {column: int(shifts[target][i]) for column, target in pointers.items() if int(shifts[target][i])}
    if not moves or not len(frame):
        return frame
    columns: dict[str, npt.NDArray[np.int32]] = {}
    for column, move in moves.items():
        positions = frame[column].to_numpy()
        columns[column] = np.where(positions >= 0, positions + move, NONE).astype(np.int32)
    return frame.assign(**columns)


def _concat_frames(parts: Sequence[pd.DataFrame], schema: Schema) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for column in schema.columns:
        pieces = [part[column.name].array for part in parts if len(part)] or [parts[0][column.name].array]
        if column.dtype == "category":
            columns[column.name] = pd.api.types.union_categoricals(pieces, ignore_order=True)
        else:
            columns[column.name] = np.concatenate([piece.to_numpy() for piece in pieces])
    return schema.frame(columns)
