"""Records of communication alone (flight recorder, NCCL Inspector) → Trace: collectives with durations, no activities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.readers.recorded import in_light_mode
from c3prof.trace import CPU_DEVICE, GROUPS, NONE, RANKS, RECORDED_COLLECTIVES, Trace

_TEXTS = ("collective", "group", "group_desc", "group_ranks", "dtype", "phase", "asynchronous")


@dataclass(frozen=True)
class Source:
    """Where the records come from: the file's name, the rank (negative unknown) and how it is known, the world size."""

    name: str
    rank: int
    rank_evidence: str
    world_size: int
    backend: str
    host: str | None = None


def comm_only(rows: Sequence[Mapping[str, Any]], source: Source, evidence: str, warnings: Sequence[DataWarning] = ()) -> Trace:
    """The Trace of records given as columns of RECORDED_COLLECTIVES; a missing column is unknown. Sorted by start."""
    rows = sorted(rows, key=lambda row: row["start_ns"])
    fixed = {"rank": source.rank, "device": CPU_DEVICE, "evidence": evidence}
    columns = {
        name: [fixed[name]] * len(rows) if name in fixed else [row.get(name, None if name in _TEXTS else NONE) for row in rows]
        for name in RECORDED_COLLECTIVES.names
    }
    records = RECORDED_COLLECTIVES.frame(columns)
    collectives = in_light_mode(records)
    without_end = int((records["end_ns"] < 0).sum())
    rank_row = {"rank": source.rank, "path": source.name, "world_size": source.world_size, "host": source.host, "backend": source.backend}
    rank_row |= {"rank_evidence": source.rank_evidence, "base_ns": 0, "tick_ns": 1, "device_name": None, "events": len(rows)}
    counts = {"events": len(rows), "activities": 0, "collectives": len(collectives), "hook_records_without_end": without_end}
    return Trace(
        collectives=collectives,
        recorded_collectives=records,
        ranks=RANKS.frame({name: [value] for name, value in rank_row.items()}),
        groups=_groups(records, source.rank),
        warnings=tuple(warnings),
        coverage={source.rank: counts},
    )


def _groups(records: pd.DataFrame, rank: int) -> pd.DataFrame:
    known = records[records["group"].notna()].drop_duplicates("group")
    columns = {name: known[name].astype(object).to_numpy() for name in ("group", "group_desc", "group_size", "group_ranks")}
    return GROUPS.frame({"rank": np.full(len(known), rank, np.int32), **columns})
