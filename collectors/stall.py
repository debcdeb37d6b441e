"""A report of a loop that no longer moves: open collectives, torch's flight recorder, the stack of every thread."""

import faulthandler
import json
import time
from typing import Any

from c3prof.collectors.folder import RankFolder
from c3prof.collectors.internals import recorded_flight_text
from c3prof.records import STACKS_FILE, STALL_FILE


def stall_report(folder: RankFolder, step: int, seconds: float, open_operations: list[dict[str, Any]]) -> None:
    """Writes stall.json and stacks.txt, replacing those of an earlier stall."""
    now = time.time_ns()
    report = {
        "at_ns": now,
        "step": step,
        "seconds_without_step": round(seconds, 3),
        "open": [{**operation, "open_for_ns": now - operation["call_ns"]} for operation in open_operations],
        "flight_recorder": json.loads(recorded_flight_text(only_active=True) or "null"),
    }
    with (folder.path / STALL_FILE).open("w", encoding="utf-8") as file:
        json.dump(report, file, indent=1, default=str)
    with (folder.path / STACKS_FILE).open("w", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)
