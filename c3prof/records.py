"""What the collectors write and the run-folder reader reads; standard library only.

A run folder holds run.json, and per rank manifest.json and line files (one JSON object a line, whole lines only).
The schema name in run.json and manifest.json covers the line files beside it. A reader ignores fields that it does
not know and fills those that are missing with the defaults here, so that a newer writer's files stay readable.
Times are wall-clock nanoseconds (time.time_ns), the clock that Kineto's files use too.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

RUN_SCHEMA = "c3prof.run/1"
RANK_SCHEMA = "c3prof.rank/1"

RUN_FILE = "run.json"
RANKS_FOLDER = "ranks"
MANIFEST_FILE = "manifest.json"
COMM_FILE = "comm.jsonl"
STEPS_FILE = "steps.jsonl"
EVENTS_FILE = "events.jsonl"
POWER_FILE = "power.jsonl"
STALL_FILE = "stall.json"
STACKS_FILE = "stacks.txt"

SERIALIZED, CONCURRENT, DISCARDED = "serialized", "concurrent", "discarded"
"""Phases of calibration. A discarded step separates the phases and the opening of a window from what is measured."""


@dataclass(frozen=True)
class RunRecord:
    """run.json: the job as rank 0 saw it."""

    schema: str = RUN_SCHEMA
    created_ns: int = 0
    world_size: int = 1
    backend: str | None = None
    job: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    topology: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FileRecord:
    """A file beside the manifest. last_step: the last one that is whole in it; sha256 is None for line files, which grow."""

    kind: str
    path: str
    first_step: int | None = None
    last_step: int | None = None
    bytes: int = 0
    sha256: str | None = None


@dataclass(frozen=True)
class GroupRecord:
    """A process group as this rank knows it; ranks are global."""

    name: str
    desc: str | None = None
    backend: str | None = None
    size: int = 0
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class OverheadRecord:
    """What the collectors cost this rank, measured by themselves (profiler windows are judged by step times)."""

    hook_calls: int = 0
    hook_ns: int = 0
    step_calls: int = 0
    step_ns: int = 0
    window_ns: int = 0
    watcher_cpu_ns: int = 0


@dataclass(frozen=True)
class RankManifest:
    """manifest.json of one rank, replaced whole at each change of state.

    status: running, complete, stalled, exception:X, signal:X; a running one whose process is gone was killed.
    notes: what a reader must know (a collector that is off and why); errors: what failed, in order.
    """

    schema: str = RANK_SCHEMA
    rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    host: str = ""
    pid: int = 0
    job: str | None = None
    restart: int = 0
    backend: str | None = None
    device_name: str | None = None
    status: str = "running"
    steps: int = 0
    started_ns: int = 0
    updated_ns: int = 0
    monotonic_ns: int = 0
    flush_s: float = 1.0
    files: tuple[FileRecord, ...] = ()
    groups: tuple[GroupRecord, ...] = ()
    collectors: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    overhead: OverheadRecord = field(default_factory=OverheadRecord)


@dataclass(frozen=True)
class CollectiveRecord:
    """A line of comm.jsonl: one c10d operation of this rank.

    seq: 0, 1, … in the group's order of calls; for send and recv in the order of that pair (sender, receiver).
    end_ns: end of the execution; end_from: what it rests on: future (the backend's completion), wait (the return of
    the wait, an upper bound) or None when the host cannot know it. blocked_ns: time that the host spent in waits.
    """

    op: str
    collective: str
    group: str
    step: int
    call_ns: int
    return_ns: int
    seq: int | None = None
    end_ns: int | None = None
    end_from: str | None = None
    wait_start_ns: int | None = None
    blocked_ns: int | None = None
    phase: str | None = None
    serialized: bool = False
    asynchronous: bool | None = None
    dtype: str | None = None
    itemsize: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    peer: int | None = None
    thread: int = 0
    captured: bool = False


@dataclass(frozen=True)
class StepRecord:
    """A line of steps.jsonl: one call of step(). cpu_ns: CPU time of the thread that called it."""

    step: int
    start_ns: int
    end_ns: int
    cpu_ns: int | None = None
    phase: str | None = None
    window: int | None = None
    mark: str | None = None


@dataclass(frozen=True)
class EventRecord:
    """A line of events.jsonl: device times of a step (group None) or of a collective, on the wall clock.

    ready_ns: the caller's stream reached the call; reached_ns: it reached the wait; end_ns: the collective (the step)
    ended on the device; gpu_ns = end_ns - ready_ns as the device measured it. None: never came to pass.
    """

    step: int
    group: str | None = None
    seq: int | None = None
    ready_ns: int | None = None
    reached_ns: int | None = None
    end_ns: int | None = None
    gpu_ns: int | None = None


@dataclass(frozen=True)
class PowerRecord:
    """A line of power.jsonl: one sample of one device; None for what the driver does not tell."""

    at_ns: int
    device: int
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None


Record = TypeVar("Record")


def line_of(record: Any) -> str:
    """The JSON line of a flat record, without None and ending in a newline."""
    kept = {f.name: value for f in fields(record) if (value := getattr(record, f.name)) is not None}
    return json.dumps(kept, separators=(",", ":")) + "\n"


def document_of(record: Any) -> str:
    """The JSON document of a record that holds other records."""
    return json.dumps(asdict(record), indent=1) + "\n"


def record_of(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """The record of a kind from decoded JSON; ValueError names the fields that it must have and lacks."""
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]  # every kind given here is one of the dataclasses above
    needed = {name for name, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
    if missing := sorted(needed - set(values)):
        raise ValueError(f"{kind.__name__} without {', '.join(missing)}")
    return kind(**{name: value for name, value in values.items() if name in known})


def manifest_of(values: Mapping[str, Any]) -> RankManifest:
    """The manifest from decoded JSON, with the records inside it."""
    inner = {
        "files": tuple(record_of(FileRecord, file) for file in values.get("files", ())),
        "groups": tuple(record_of(GroupRecord, {**group, "ranks": tuple(group.get("ranks", ()))}) for group in values.get("groups", ())),
        "notes": tuple(values.get("notes", ())),
        "errors": tuple(values.get("errors", ())),
        "overhead": record_of(OverheadRecord, values.get("overhead", {})),
    }
    return record_of(RankManifest, {**values, **inner})
