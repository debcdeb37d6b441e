"""Summary Traces of a few collectives, written by hand: times in µs, one line a record."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from c3prof.trace import COLLECTIVES, GROUPS, RANKS, STEPS, Trace

BASE_NS = 1_700_000_000_000_000_000

_DEFAULTS: dict[str, Any] = {
    "device": 0,
    "stream": 20,
    "collective": "all_reduce",
    "group": "0",
    "group_desc": "default_pg",
    "group_size": -1,
    "group_ranks": None,
    "seq": -1,
    "dtype": "Float",
    "in_elements": -1,
    "out_elements": -1,
    "size_bytes": 1_000_000,
    "peer": -1,
    "op": -1,
    "step": -1,
    "launch_end_ns": -1,
    "kernels": 1,
    "evidence": "metadata",
}


def record(rank: int, start_us: float, end_us: float, **columns: Any) -> dict[str, Any]:
    """A row of the collectives frame; launched_us instead of launch_end_ns where wanted."""
    row = {**_DEFAULTS, "rank": rank, "start_ns": BASE_NS + round(start_us * 1000), "end_ns": BASE_NS + round(end_us * 1000)}
    if "launched_us" in columns:
        row["launch_end_ns"] = BASE_NS + round(columns.pop("launched_us") * 1000)
    return {**row, **columns}


def trace(
    records: Sequence[dict[str, Any]],
    hosts: Sequence[str | None] | str | None = "one",
    world: int | None = None,
    ranks: Sequence[int] | None = None,
    groups: Sequence[tuple[int, str, str]] = (),
) -> Trace:
    """The summary Trace of the records; hosts: of each rank, or of all; groups: (rank, name, members) that files declare."""
    ordered = sorted(records, key=lambda row: (row["rank"], row["start_ns"]))
    places: dict[tuple[int, Any], int] = {}
    for row in ordered:
        key = (row["rank"], row["group"])
        row["order"] = places[key] = places.get(key, -1) + 1
    present = sorted({row["rank"] for row in ordered}) if ranks is None else list(ranks)
    named = [hosts] * len(present) if hosts is None or isinstance(hosts, str) else list(hosts)
    steps = sorted({(row["rank"], row["step"]) for row in ordered if row["step"] >= 0})
    n = len(present)
    return Trace(
        collectives=COLLECTIVES.frame(
            {name: [row[name] for row in ordered] for name in (*_DEFAULTS, "rank", "start_ns", "end_ns", "order")}
        ),
        steps=STEPS.frame(
            {"rank": [r for r, _ in steps], "step": [s for _, s in steps], "start_ns": [0] * len(steps), "end_ns": [0] * len(steps)}
        ),
        ranks=RANKS.frame(
            {
                "rank": present,
                "path": [f"rank{rank}.json" for rank in present],
                "world_size": [n if world is None else world] * n,
                "host": named,
                "backend": ["nccl"] * n,
                "rank_evidence": ["distributedInfo"] * n,
                "base_ns": [0] * n,
                "tick_ns": [1] * n,
                "device_name": [None] * n,
                "events": [0] * n,
            }
        ),
        groups=GROUPS.frame(
            {
                "rank": [r for r, _, _ in groups],
                "group": [g for _, g, _ in groups],
                "group_desc": [None] * len(groups),
                "group_size": [m.count(",") + 1 for _, _, m in groups],
                "group_ranks": [m for _, _, m in groups],
            }
        ),
    )


def column(frame: Any, name: str) -> list[float | None]:
    """Values of a column of ns as µs, None for null."""
    return [None if np.isnan(value) else value / 1000 for value in frame[name].astype(float)]
