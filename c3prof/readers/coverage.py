"""What the numbers of one file rest on: counts, and a warning for each kind of damage."""

import re

import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.readers.classes import Classified
from c3prof.readers.file import File
from c3prof.readers.scan import Damage, Scan

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\s]+")
_ENQUEUES = re.compile(r"launch|memcpy|memset", re.IGNORECASE)


_LOSES = {"bad-event", "cut", "not-json", "deep"}


_DAMAGE = {
    "bad-escape": "illegal backslash in a string, kept as it stands, first",
    "control-byte": "raw control byte in a string, kept, first",
    "bad-utf8": "bytes that are not UTF-8, replaced, first",
    "bare-number": "nan or inf as a value, taken as unknown, first",
    "empty-value": "a key without a value, taken as unknown, first",
    "unquoted-key": "a key without its opening quote, repaired, first",
    "bad-event": "events that cannot be read were dropped, first",
    "cut": "the file ends in the middle, the last event is lost,",
    "nested": "traceEvents is nested a level too deep; read all the same,",
    "separator": "a comma too many or missing between events, read all the same, first",
    "trailing": "more data behind the end,",
    "deep": "values nested too deep were dropped, first",
    "not-json": "this is not JSON,",
    "empty": "no events,",
}


def damage(scan: Scan, name: str) -> list[DataWarning]:
    """One warning a kind of damage: what, where it begins, how often, and how many bytes are lost."""
    by_kind: dict[str, list[Damage]] = {}
    for entry in scan.damage:
        by_kind.setdefault(entry.kind, []).append(entry)
    return [_warning(kind, entries, scan.counts.get(f"damage:{kind}", len(entries)), name) for kind, entries in by_kind.items()]


def _warning(kind: str, entries: list[Damage], count: int, name: str) -> DataWarning:
    first, lost = entries[0], sum(entry.length for entry in entries)
    excerpt = _UNPRINTABLE.sub(" ", first.text).strip()
    bytes_lost = f" ({lost:,} bytes lost)" if kind in _LOSES and lost else ""
    return DataWarning(
        f"json-{kind}", f"{_DAMAGE.get(kind, kind)} at byte {first.offset:,}: {excerpt}{bytes_lost}", count, name, kind in _LOSES
    )


def coverage(
    file: File, activities: pd.DataFrame, launches: pd.DataFrame, collectives: pd.DataFrame, classes: Classified
) -> dict[str, int]:
    """What the numbers of this rank rest on (docs/metrics.md, Coverage)."""
    enqueues = launches["name"].str.contains(_ENQUEUES).to_numpy(dtype=bool) if len(launches) else np.zeros(0, bool)
    launched = np.zeros(len(launches), bool)
    launched[activities["launch"].to_numpy()[activities["launch"].to_numpy() >= 0]] = True
    counts = file.scan.counts
    comm = np.asarray(activities["class"].array == "comm")
    return {
        "events": counts.get("events", 0),
        "events_dropped": counts.get("dropped", 0),
        "events_repaired": counts.get("repaired", 0),
        "activities": len(activities),
        "activities_left_out": int(len(file.rows("kernel", "memcpy", "memset")) - len(activities)),
        "activities_without_launch": int((activities["launch"] < 0).sum()),
        "launches_without_activity": int((enqueues & ~launched).sum()),
        "comm_activities": int(comm.sum()),
        "comm_with_metadata": int((comm & np.asarray(activities["evidence"].array == "metadata")).sum()),
        "comm_without_record": int((comm & np.asarray(activities["evidence"].array == "name")).sum()),
        "comm_suspected": int(classes.suspected.sum()),
        "kind_differs_from_kernel_name": classes.renamed,
        "same_stream_overlaps": _same_stream_overlaps(activities),
        "collectives": len(collectives),
    }


def _same_stream_overlaps(activities: pd.DataFrame) -> int:
    if len(activities) < 2:
        return 0
    device, stream, start, end = (activities[c].to_numpy() for c in ("device", "stream", "start_ns", "end_ns"))
    same = (device[1:] == device[:-1]) & (stream[1:] == stream[:-1])
    return int((same & (start[1:] < end[:-1]) & (end[1:] > start[1:])).sum())
