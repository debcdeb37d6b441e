"""Run folders made by hand: line files, manifests and Kineto windows in a few lines."""

import gzip
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from c3prof.records import CollectiveRecord, GroupRecord, RankManifest, StepRecord, document_of, line_of

MS = 1_000_000
T0 = 1_796_000_000_000_000_000
DEAD_PID = 2**22 + 12345
"""A process number that no process has: above the kernel's largest."""

MANIFEST = RankManifest(world_size=2, host=socket.gethostname(), pid=os.getpid(), backend="gloo", status="complete", started_ns=T0)
GROUP = GroupRecord("0", "default_pg", "gloo", 2, (0, 1))


def step(number: int, start_ms: float, end_ms: float, **more: Any) -> StepRecord:
    return StepRecord(number, T0 + round(start_ms * MS), T0 + round(end_ms * MS), **more)


def call(seq: int, call_ms: float, end_ms: float | None, *, step: int = 0, kind: str = "all_reduce", **more: Any) -> CollectiveRecord:
    """A float32 operation of 1000 elements on group 0, whose call returns 0.1 ms after it began."""
    start = T0 + round(call_ms * MS)
    told: dict[str, Any] = {"group": "0"}
    told |= {"end_ns": None if end_ms is None else T0 + round(end_ms * MS), "end_from": None if end_ms is None else "future"}
    sizes = {"dtype": "float32", "itemsize": 4, "in_bytes": 4000, "out_bytes": 4000}
    fields = {"op": f"{kind}_", "collective": kind, "step": step, "call_ns": start, "return_ns": start + MS // 10, "seq": seq}
    return CollectiveRecord(**{**fields, **told, **sizes, **more})


def rank_folder(
    root: Path,
    rank: int,
    steps: Sequence[StepRecord] = (),
    calls: Sequence[CollectiveRecord] = (),
    manifest: RankManifest | None = MANIFEST,
    name: str = "",
) -> Path:
    """Writes ranks/rankNNNNN of a run folder; manifest None leaves it out."""
    folder = root / "ranks" / (name or f"rank{rank:05d}")
    folder.mkdir(parents=True)
    if manifest is not None:
        (folder / "manifest.json").write_text(document_of(replace(manifest, rank=rank, groups=(GROUP,))))
    (folder / "steps.jsonl").write_text("".join(map(line_of, steps)))
    (folder / "comm.jsonl").write_text("".join(map(line_of, calls)))
    return folder


def kineto_window(folder: Path, number: int, events: Sequence[tuple[str, str, float, float, int]], elements: int = 1000) -> None:
    """A window of events (category, name, start ms, end ms, thread); gloo spans carry the shape [elements]."""
    rows = []
    for category, name, start, end, thread in events:
        args = {"Input Dims": [[elements]], "Input type": ["float"]} if name.startswith("gloo:") else {}
        rows.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "ts": start * 1000,
                "dur": (end - start) * 1000,
                "pid": 1,
                "tid": thread,
                "args": args,
            }
        )
    document = {"baseTimeNanoseconds": T0, "distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}, "traceEvents": rows}
    (folder / f"trace-w{number:03d}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
