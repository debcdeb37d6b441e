"""A rank of a run folder → Trace: its profiler windows, its line files and its manifest (layout: c3prof/records.py)."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from c3prof.errors import DataWarning, UnreadableInput
from c3prof.readers.flight_recorder import flight_recorder
from c3prof.readers.kineto import with_rank
from c3prof.readers.line_files import counters, fits, lines, recorded_collectives, recorded_steps, with_device_times
from c3prof.readers.recorded import in_light_mode, joined, with_backend_durations
from c3prof.readers.windows import merged
from c3prof.records import (
    COMM_FILE,
    EVENTS_FILE,
    MANIFEST_FILE,
    POWER_FILE,
    RANK_SCHEMA,
    RANKS_FOLDER,
    SERIALIZED,
    STALL_FILE,
    STEPS_FILE,
    CollectiveRecord,
    EventRecord,
    PowerRecord,
    RankManifest,
    StepRecord,
)
from c3prof.trace import GROUPS, NONE, RANKS, STEPS, Trace
from c3prof.units import NS_PER_S

_SILENT_S = 60.0
_LISTED = 5


def is_rank_folder(folder: Path) -> bool:
    """Whether a folder is one that a rank's collectors wrote: ranks/rankNNNNN with a manifest or a line file."""
    named = folder.parent.name == RANKS_FOLDER and folder.name.startswith("rank")
    return named and any((folder / name).is_file() for name in (MANIFEST_FILE, STEPS_FILE, COMM_FILE))


def started_ns(folder: Path) -> int:
    """When the recording in a rank folder began, by its manifest; 0 when that is not readable."""
    return _manifest(folder, folder.name)[0].started_ns


def rank_trace(folder: Path, name: str, load_window: Callable[[Path, str], Trace]) -> Trace:
    """The Trace of one rank folder. load_window(path, name) reads a profiler window.

    UnreadableInput when there is nothing in it; what is damaged is left out with a warning.
    """
    manifest, warnings = _manifest(folder, name)
    steps = lines(folder / STEPS_FILE, StepRecord, f"{name}/{STEPS_FILE}")
    comm = lines(folder / COMM_FILE, CollectiveRecord, f"{name}/{COMM_FILE}")
    power = lines(folder / POWER_FILE, PowerRecord, f"{name}/{POWER_FILE}")
    events = lines(folder / EVENTS_FILE, EventRecord, f"{name}/{EVENTS_FILE}")
    windows, unreadable = _windows(folder, name, manifest.rank, load_window)
    if not windows and not steps.records and not comm.records and not manifest.started_ns:
        raise UnreadableInput(f"{name}: no window, step or communication record in this rank folder")
    records = recorded_collectives(comm.records, manifest.groups, manifest.rank)
    own = Recorded(name, manifest, recorded_steps(steps.records, manifest.rank), records, counters(power.records, manifest.rank))
    if windows:
        trace = own.with_windows(merged(windows))
    else:
        records = with_device_times(records, events.records, manifest.local_rank or 0)
        for dump in _dumps(folder, name, manifest.rank, unreadable):
            records = with_backend_durations(records, dump.recorded_collectives)
        own = replace(own, collectives=records)
        trace = own.in_light_mode()
    found = [*warnings, *steps.warnings, *comm.warnings, *power.warnings, *events.warnings, *unreadable, *_state(folder, own)]
    return replace(trace, recorded_steps=own.steps, recorded_collectives=records, warnings=(*trace.warnings, *found))


@dataclass(frozen=True)
class Recorded:
    """What the collectors of one rank wrote beside the profiler windows."""

    name: str
    manifest: RankManifest
    steps: pd.DataFrame
    collectives: pd.DataFrame
    counters: pd.DataFrame

    def with_windows(self, windows: Trace) -> Trace:
        """The windows' Trace with groups, sizes and sequence numbers of its collectives, phases of its steps, and counters."""
        collectives, both = joined(windows.collectives, self.collectives)
        found = {"collectives_with_hook_record": both, "collectives_without_hook_record": len(collectives) - both}
        phase = windows.steps["step"].map(self.steps.drop_duplicates("step").set_index("step")["phase"].astype(object))
        rows = windows.ranks.iloc[0]
        return replace(
            windows,
            collectives=collectives,
            steps=STEPS.frame({**{column: windows.steps[column].array for column in STEPS.names}, "phase": phase.to_numpy()}),
            ranks=self._ranks(int(rows["base_ns"]), int(rows["tick_ns"]), rows["device_name"], int(rows["events"])),
            groups=self._groups() if self.manifest.groups else windows.groups,
            counters=self.counters if len(self.counters) else windows.counters,
            coverage={self.manifest.rank: {**windows.coverage[self.manifest.rank], **self._counts(), **found}},
        )

    def in_light_mode(self) -> Trace:
        """A Trace without activities and operators: collectives as the host saw them."""
        collectives = in_light_mode(self.collectives)
        return Trace(
            collectives=collectives,
            ranks=self._ranks(0, 1, None, len(self.collectives) + len(self.steps)),
            groups=self._groups(),
            counters=self.counters,
            coverage={self.manifest.rank: {"events": 0, "activities": 0, "collectives": len(collectives), **self._counts()}},
        )

    def _counts(self) -> dict[str, int]:
        ends = self.collectives["end_ns"].to_numpy()
        counts = {"hook_records": len(ends), "hook_records_without_end": int((ends < 0).sum()), "recorded_steps": len(self.steps)}
        if self.manifest.status == "killed":
            return counts  # its costs were to be written at the end
        cost = self.manifest.overhead
        counts |= {"hook_calls": cost.hook_calls, "hook_ns": cost.hook_ns, "collector_step_ns": cost.step_ns - cost.window_ns}
        return counts | {"window_ns": cost.window_ns, "watcher_cpu_ns": cost.watcher_cpu_ns}

    def _ranks(self, base_ns: int, tick_ns: int, device_name: str | None, events: int) -> pd.DataFrame:
        m = self.manifest
        row = {
            "rank": m.rank,
            "path": self.name,
            "world_size": m.world_size,
            "host": m.host or None,
            "backend": m.backend,
            "rank_evidence": "manifest",
        }
        row |= {"base_ns": base_ns, "tick_ns": tick_ns, "device_name": m.device_name or device_name, "events": events, "status": m.status}
        return RANKS.frame({column: [value] for column, value in row.items()})

    def _groups(self) -> pd.DataFrame:
        groups = self.manifest.groups
        columns = {
            "rank": np.full(len(groups), self.manifest.rank, np.int32),
            "group": [group.name for group in groups],
            "group_desc": [group.desc for group in groups],
            "group_size": [group.size or NONE for group in groups],
            "group_ranks": [json.dumps(list(group.ranks), separators=(",", ":")) for group in groups],
        }
        return GROUPS.frame(columns)


def _manifest(folder: Path, name: str) -> tuple[RankManifest, list[DataWarning]]:
    """The manifest with its status as it stands now; a stand-in by the folder's name when it is missing or broken."""
    digits = folder.name.removeprefix("rank")[:5]
    stand_in = RankManifest(rank=int(digits) if digits.isdigit() else -1, world_size=NONE, status="killed")
    path = folder / MANIFEST_FILE
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=RankManifest)
        if not (0 <= manifest.rank < 2**31 and all(map(fits, (manifest, *manifest.groups)))):
            raise ValueError("a number in it cannot be what it stands for")  # noqa: TRY301 - one way for all that makes a manifest broken
    except FileNotFoundError:
        return stand_in, [
            DataWarning(
                "no-manifest", f"no {MANIFEST_FILE}: killed before it was written; the rank is taken from the folder's name", path=name
            )
        ]
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return stand_in, [
            DataWarning("bad-manifest", f"{MANIFEST_FILE} cannot be read ({error}); the rank is taken from the folder's name", path=name)
        ]
    if manifest.schema != RANK_SCHEMA:
        warning = DataWarning(
            "schema", f"{MANIFEST_FILE} has schema {manifest.schema}, this version knows {RANK_SCHEMA}: update c3prof", path=name
        )
        return replace(manifest, status=_present_status(manifest)), [warning]
    return replace(manifest, status=_present_status(manifest)), []


def _present_status(manifest: RankManifest) -> str:
    """The status; running or stalled by a process that is gone (or silent, on another host) is killed."""
    if manifest.status not in {"running", "stalled"}:
        return manifest.status
    if manifest.host == socket.gethostname():
        return manifest.status if _alive(manifest.pid) else "killed"
    silent_s = time.time() - manifest.updated_ns / NS_PER_S
    return "killed" if silent_s > max(_SILENT_S, 10 * manifest.flush_s) else manifest.status


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _windows(folder: Path, name: str, rank: int, load_window: Callable[[Path, str], Trace]) -> tuple[list[Trace], list[DataWarning]]:
    windows: list[Trace] = []
    warnings: list[DataWarning] = []
    for path in sorted(folder.glob("trace-w*.json.gz")):
        try:
            window = load_window(path, f"{name}/{path.name}")
        except UnreadableInput as error:
            warnings.append(DataWarning("unreadable", str(error), path=f"{name}/{path.name}"))
        else:
            windows.append(window if window.rank_numbers == [rank] else with_rank(window, rank))
    return windows, warnings


def _dumps(folder: Path, name: str, rank: int, unreadable: list[DataWarning]) -> Iterable[Trace]:
    """The flight recorder's dumps; those that cannot be read are added to `unreadable`."""
    for path in sorted(folder.glob("fr-*.json")):
        try:
            yield flight_recorder(path.read_bytes(), f"{name}/{path.name}", rank)
        except UnreadableInput as error:
            unreadable.append(DataWarning("unreadable", str(error), path=f"{name}/{path.name}"))


def _state(folder: Path, own: Recorded) -> Iterable[DataWarning]:
    """How far the rank came, when it did not simply complete, and what its collectors reported."""
    manifest, steps = own.manifest, own.steps["step"].to_numpy()
    if manifest.status != "complete":
        last = f"last whole step {steps.max()}" if len(steps) else "no whole step"
        yield DataWarning("rank-status", f"{manifest.status}; {last}{_open_collectives(own)}", path=own.name)
    if n := int((own.steps["phase"] == SERIALIZED).sum()):
        message = f"{n} steps were serialized for calibration; overlap tables leave them out, table calibration compares them"
        yield DataWarning("calibration", message, n, own.name, bears_on_numbers=False)
    if (folder / STALL_FILE).is_file():
        yield DataWarning("stall", _stall(folder / STALL_FILE), path=own.name)
    for error in manifest.errors:
        yield DataWarning("collector", error, path=own.name, bears_on_numbers=False)


def _open_collectives(own: Recorded) -> str:
    unended = own.collectives[own.collectives["end_ns"].to_numpy() < 0]
    return (
        f", {len(unended)} collectives not ended: {_listed(zip(unended['collective'], unended['group'], unended['seq'], strict=True))}"
        if len(unended)
        else ""
    )


def _stall(path: Path) -> str:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        open_ = [(one["collective"], one["group"], one.get("seq", NONE)) for one in report["open"]]
        return f"no step for {report['seconds_without_step']:.0f} s in step {report['step']}; open collectives: {_listed(open_) or 'none'}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return f"{path.name} cannot be read ({error})"


def _listed(operations: Iterable[Sequence[object]]) -> str:
    texts = [f"{kind} {group}:{seq}" for kind, group, seq in operations]
    return ", ".join(texts[:_LISTED]) + (", …" if len(texts) > _LISTED else "")
