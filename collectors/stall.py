"""A report of a loop that no longer moves: open collectives, torch's flight recorder, the stack of every thread."""

import faulthandler
import json
import time
from typing import Any

from c3prof.collectors.folder import RankFolder
from c3prof.records import STACKS_FILE, STALL_FILE


def stall_report(folder: RankFolder, step: int, seconds: float, open_operations: list[dict[str, Any]]) -> None:
    """Writes stall.json and stacks.txt, replacing those of an earlier stall."""
    now = time.time_ns()
    report = {
        "at_ns": now,
        "step": step,
        "seconds_without_step": round(seconds, 3),
        "open": [{**operation, "open_for_ns": now - operation["call_ns"]} for operation in open_operations],
        "flight_recorder": recorded_flight(only_active=True),
    }
    with open(folder.file(STALL_FILE), "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1, default=str)
    with open(folder.file(STACKS_FILE), "w", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)


def recorded_flight(*, only_active: bool) -> dict[str, Any] | None:
    """torch's flight recorder as decoded JSON; None when this torch has none (before 2.6)."""
    from torch._C import _distributed_c10d as c10d  # noqa: PLC0415  # a job has it; importing c3prof must not load it

    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(c10d, name, None)
        if dump is None:
            continue
        try:
            text = dump(includeCollectives=True, onlyActive=only_active)
            decoded: dict[str, Any] = json.loads(text)
        except (RuntimeError, ValueError, TypeError):
            continue
        return decoded
    return None
