"""Scan of one Kineto file → Trace of one rank."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.kernels import Rules
from c3prof.readers.classes import classified
from c3prof.readers.coverage import coverage, damage
from c3prof.readers.cpu_side import cpu_side
from c3prof.readers.device_side import activities, device_annotations, step_of, usable
from c3prof.readers.file import File, Int, kinds_of, ranked
from c3prof.readers.header import Header, header_of
from c3prof.readers.links import links
from c3prof.readers.operations import collectives_on_cpu, collectives_on_devices
from c3prof.readers.scan import MISSING, Scan
from c3prof.readers.strings import Strings
from c3prof.trace import COUNTERS, GROUPS, RANKS, SCHEMAS, WINDOWS, Trace


def trace_of(scan: Scan, name: str, rules: Rules, rank: int) -> Trace:
    """The Trace of one file. `rank` is used when the file does not say its own; `name` is how the user knows it."""
    header = header_of(scan.header, name)
    strings = Strings(scan.strings)
    times, warnings = _times(scan, header, name)
    file = File(scan, strings, kinds_of(strings, scan.events["cat"]), *times, header.rank if header.rank is not None else rank, name)
    cpu = cpu_side(file)
    rows, left_out = usable(file)
    found = links(file, rows, cpu)
    classes = classified(file, rows, found, cpu.ops, rules)
    step = step_of(file, rows, found, cpu)
    if len(rows):
        collectives, collective_id = collectives_on_devices(file, rows, found, classes, cpu, step)
    else:
        collectives, collective_id = collectives_on_cpu(file, cpu), np.zeros(0, np.int32)
    on_device = activities(file, rows, found, classes, step, collective_id, collectives)
    return Trace(
        activities=on_device,
        launches=cpu.launches,
        ops=cpu.ops,
        annotations=cpu.annotations,
        device_annotations=device_annotations(file),
        collectives=collectives,
        steps=cpu.steps,
        ranks=_rank_row(file, header, on_device),
        groups=_group_rows(file, header),
        counters=_counters(file),
        windows=_window(file, (on_device, cpu.ops, cpu.annotations, cpu.launches)),
        devices={(file.rank, number): properties for number, properties in header.devices.items()},
        warnings=(*header.warnings, *warnings, *damage(scan, name), *left_out, *classes.warnings),
        coverage={file.rank: coverage(file, on_device, cpu.launches, collectives, classes)},
    )


def _times(scan: Scan, header: Header, name: str) -> tuple[tuple[Int, Int], list[DataWarning]]:
    """Start and end of each event on the rank's clock: baseTimeNanoseconds is added here and nowhere else."""
    begin, dur = scan.events["ts_ns"], scan.events["dur_ns"]
    base, warnings = header.base_ns, []
    absent = begin == MISSING
    if base and not absent.all():
        known = begin[~absent]
        if abs(int(known.max())) + base >= 2**62 or abs(int(known.min())) + base >= 2**62:
            warnings.append(
                DataWarning("base-time", "times and baseTimeNanoseconds together exceed what 64 bits hold; the base is ignored", path=name)
            )
            base = 0
    start = begin + base
    end = start + dur
    start[absent] = MISSING
    end[absent | (dur < 0) | (dur >= 2**62)] = MISSING  # a duration that is missing is negative too
    return (start, end), warnings


def _rank_row(file: File, header: Header, activities: pd.DataFrame) -> pd.DataFrame:
    events = file.scan.events
    names = {str(header.devices.get(device, {}).get("name") or "") for device in activities["device"].unique().tolist()} - {""}
    columns = {
        "path": [file.name],
        "world_size": [header.world_size],
        "host": [header.host],
        "backend": [header.backend],
        "rank_evidence": [header.rank_evidence],
        "base_ns": [header.base_ns],
        "tick_ns": [_tick(events["ts_ns"], events["dur_ns"])],
        "device_name": [", ".join(sorted(names)) or None],
        "events": [file.scan.counts.get("events", 0)],
    }
    return RANKS.frame(ranked(file, columns))


def _window(file: File, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The one window of a file: from the first start to the last end of what was recorded."""
    bounds = [(frame["start_ns"].min(), frame["end_ns"].max()) for frame in frames if len(frame)]
    if not bounds:
        return WINDOWS.frame()
    return WINDOWS.frame(ranked(file, {"start_ns": [min(low for low, _ in bounds)], "end_ns": [max(high for _, high in bounds)]}))


def _tick(*columns: Int) -> int:
    """The gcd of all times: what the recorder's clock resolves. A few thousand values settle it in almost every file."""
    tick = 0
    for times in columns:
        for block in (times[:4096], times[4096:]):
            if tick != 1:
                tick = int(np.gcd(np.gcd.reduce(block[block != MISSING], initial=0), tick))
    return tick or 1


def _group_rows(file: File, header: Header) -> pd.DataFrame:
    if not header.groups:
        return GROUPS.frame()
    name, description, size, ranks = zip(*header.groups, strict=True)
    return GROUPS.frame(ranked(file, {"group": name, "group_desc": description, "group_size": size, "group_ranks": ranks}))


def _counters(file: File) -> pd.DataFrame:
    """Counter samples with one number each; a sample of several series gives a row a series."""
    events, meta = file.scan.events, file.scan.meta
    is_counter = file.strings.lookup(events["ph"][meta["row"]], lambda ph: ph == "C", bool, absent=False).astype(bool)
    rows, args = meta["row"][is_counter], meta["args"][is_counter]
    if not len(rows):
        return COUNTERS.frame()
    names: list[str] = []
    values: list[float] = []
    at: list[int] = []
    for row, code in zip(rows.tolist(), args.tolist(), strict=True):
        series = json.loads(file.strings.texts[code]) if code >= 0 else {}
        numbers = {k: v for k, v in series.items() if isinstance(v, int | float) and abs(v) < 1e300} if isinstance(series, dict) else {}
        base = file.strings.texts[events["name"][row]] if events["name"][row] >= 0 else ""
        for key, value in numbers.items():
            names.append(base if len(numbers) == 1 else f"{base} {key}")
            values.append(float(value))
            at.append(int(file.start[row]))
    return COUNTERS.frame(ranked(file, {"at_ns": at, "name": names, "value": values})) if at else COUNTERS.frame()


def with_rank(trace: Trace, rank: int) -> Trace:
    """The Trace of one rank under another number."""
    old = trace.rank_numbers[0]
    frames = {name: getattr(trace, name).assign(rank=np.int32(rank)) for name in SCHEMAS}
    devices = {(rank, device): properties for (_, device), properties in trace.devices.items()}
    return replace(trace, **frames, devices=devices, coverage={rank: trace.coverage[old]})
